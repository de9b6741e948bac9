"""Properties of every panel: keyboard, accessible names, contrast, a phone's width, a token."""

import pytest
from mockraft import Controller
from playwright.async_api import Page, expect

from .asking import ask, create_topic, register
from .conftest import PANELS, PHONE, Opens, Scheme

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

NAMELESS = """() => {
  const named = (one) => one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length
    || one.getAttribute("aria-labelledby");
  const controls = document.querySelectorAll("button, a, input, select, textarea, [role=grid], dialog, canvas");
  return [...controls].filter((one) => one.checkVisibility() && !named(one)).map((one) => one.outerHTML);
}"""

TWICE = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  return ids.filter((id, at) => ids.indexOf(id) !== at);
}"""

PALE = """() => {
  const part = (value) => { const c = value / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const shine = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const worst = [];
  for (const one of document.querySelectorAll("body *")) {
    const says = [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!says || !one.checkVisibility() || one.closest("#announcement, :disabled, option, noscript")) continue;
    const [light, dark] = [shine(numbers(getComputedStyle(one).color)), shine(ground(one))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) worst.push(`${one.className || one.tagName} ${one.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return worst;
}"""


async def some_of_everything(controller: Controller) -> None:
    register(controller, 20)
    create_topic(controller, "whole", [1, 2], 1)
    create_topic(controller, "short", [], -1)
    controller.script.faults.add("latency", latency_ms=1)
    await ask(controller, 3)


async def each_panel(page: Page) -> list[str]:
    """Go through the panels by the keyboard; gives each as it is reached."""
    await expect(page.locator("#health")).to_contain_text("live")
    return [str(number) for number in range(1, len(PANELS) + 1)]


async def test_a_number_key_leads_to_each_panel(opens: Opens) -> None:
    page = await opens()
    for key, name in zip(await each_panel(page), PANELS, strict=True):
        await page.keyboard.press(key)
        await expect(page.locator("#panels [aria-current=page]")).to_have_attribute("href", f"#/{name}")
        await expect(page.locator("#panel > section:visible")).to_have_count(1)


async def test_back_to_the_address_without_a_panel_leads_to_the_overview(opens: Opens) -> None:
    page = await opens()
    await page.goto(page.url.partition("#")[0])
    current = page.locator("#panels [aria-current=page]")
    await page.locator("#panels a[href='#/brokers']").click()
    await expect(current).to_have_attribute("href", "#/brokers")
    await page.go_back()
    await expect(current).to_have_attribute("href", "#/overview")


async def test_bar_shows_health_and_a_missing_controller(opens: Opens, controller: Controller) -> None:
    register(controller, 20)
    page = await opens()
    bar = page.locator("#health")
    for text in ("live", "leader 3000", "brokers 20", "fenced 2", controller.cluster_id):
        await expect(bar).to_contain_text(text)
    await page.context.set_offline(True)
    await expect(bar).to_contain_text("does not answer")


async def test_slash_searches_and_escape_ends_the_search(opens: Opens, controller: Controller) -> None:
    register(controller, 3)
    page = await opens("brokers")
    brokers = page.get_by_role("grid", name="Brokers").locator("[data-key]")
    await expect(brokers).to_have_count(3)
    await page.keyboard.press("/")
    await expect(page.get_by_label("Search brokers")).to_be_focused()
    await page.keyboard.type("rack-2")
    await expect(brokers).to_have_count(1)
    await page.keyboard.press("Escape")
    await expect(brokers).to_have_count(3)
    await page.keyboard.press("4")
    await expect(page.locator("#panels [aria-current=page]")).to_have_text("Topics")


async def test_arrow_keys_move_in_the_list_of_a_panel_chosen_by_its_key(opens: Opens, controller: Controller) -> None:
    register(controller, 3)
    page = await opens()
    await page.keyboard.press("3")
    await expect(page.get_by_role("grid", name="Brokers").locator("[data-key]")).to_have_count(3)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("j")
    await expect(page.locator("[aria-selected=true]:visible")).to_have_attribute("data-key", "2")


async def test_question_mark_shows_the_keys_and_escape_closes_them(opens: Opens) -> None:
    page = await opens()
    await expect(page.locator("#panel > section")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard")).to_contain_text("Page Down")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize(
    ("key", "focused"), [("/", "Search requests"), ("p", ""), ("n", "A stub as JSON")], ids=["search", "pause", "new"]
)
async def test_keys_work_on_a_panel_without_their_subject(opens: Opens, key: str, focused: str) -> None:
    page = await opens()
    await expect(page.locator("#health")).to_contain_text("live")
    await page.keyboard.press(key)
    if focused:
        await expect(page.get_by_label(focused)).to_be_focused()
    else:
        await expect(page.get_by_role("button", name="Resume")).to_be_visible()


async def test_the_theme_is_the_systems_until_it_is_chosen_and_then_stays(opens: Opens) -> None:
    page = await opens(scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    await expect(page.locator("#panel > section")).to_be_visible()
    dark = await page.evaluate(ground)
    await page.keyboard.press("t")
    await page.keyboard.press("t")
    await expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    light = await page.evaluate(ground)
    await page.reload()
    await expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    assert (light, await page.evaluate(ground)) == ("rgb(245, 246, 247)", "rgb(245, 246, 247)")
    assert dark == "rgb(15, 18, 21)"


async def test_tab_key_moves_from_skip_link_through_bar_to_panels_with_visible_focus(opens: Opens) -> None:
    page = await opens("requests")
    await expect(page.locator("#health")).to_contain_text("live")
    focused = "(() => { const at = document.activeElement, { outlineStyle, outlineWidth } = getComputedStyle(at);"
    focused += " return [at.getAttribute('aria-label') || at.textContent, at.role, outlineStyle, outlineWidth] })()"
    names, hidden, role = [], [], None
    while role != "grid":
        await page.keyboard.press("Tab")
        name, role, *outline = await page.evaluate(focused)
        names.append(name)
        hidden += [name] if outline != ["solid", "2px"] else []
    assert names[0] == "Skip to the panel"
    order = ["Theme: system", "Keyboard shortcuts", "Overview", "Faults", "Search requests", "API", "Pause", "Requests"]
    places = [len(names) - 1 - names[::-1].index(name) for name in order]
    assert places == sorted(places)
    assert hidden == []
    await page.keyboard.press("Home")
    await page.evaluate("document.querySelector('.skip').focus()")
    await page.keyboard.press("Enter")
    await expect(page.locator("#panel")).to_be_focused()
    await expect(page.get_by_role("grid", name="Requests")).to_be_visible()


async def test_every_control_has_a_name_and_every_id_is_one_elements(opens: Opens, controller: Controller) -> None:
    await some_of_everything(controller)
    page = await opens()
    for key in await each_panel(page):
        await page.keyboard.press(key)
        await page.wait_for_timeout(100)
    await page.evaluate("document.querySelectorAll('.kind').forEach((one) => one.click())")
    assert [await page.evaluate(NAMELESS), await page.evaluate(TWICE)] == [[], []]
    for landmark in ("banner", "main", "navigation"):
        await expect(page.get_by_role(landmark)).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_text_stands_out_from_its_ground(opens: Opens, controller: Controller, scheme: Scheme) -> None:
    await some_of_everything(controller)
    page = await opens(scheme=scheme)
    pale = []
    for key in await each_panel(page):
        await page.keyboard.press(key)
        await page.wait_for_timeout(300)
        pale += await page.evaluate(PALE)
    assert pale == []


async def test_phone_layout_has_no_horizontal_scroll(opens: Opens, controller: Controller) -> None:
    await some_of_everything(controller)
    page = await opens(size=PHONE)
    widths = []
    for key in await each_panel(page):
        await page.keyboard.press(key)
        await page.wait_for_timeout(200)
        widths.append(
            await page.evaluate(
                "Math.max(...[...document.querySelectorAll('html, main, .panel, .grid')].map((one) => one.scrollWidth))"
            )
        )
    assert widths == [PHONE["width"]] * len(PANELS)


async def test_phone_layout_has_the_sender_of_each_request(opens: Opens, controller: Controller) -> None:
    await ask(controller)
    page = await opens("requests", size=PHONE)
    headers = page.get_by_role("grid", name="Requests").get_by_role("columnheader")
    await expect(headers.filter(visible=True)).to_have_text(["Answered", "API", "Sender", "Error", "ms"])


async def test_token_is_prompted_until_valid_and_kept_for_the_tab(opens: Opens) -> None:
    page = await opens("requests", token="open-sesame")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Token").fill("guess")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("That token was refused.")
    await dialog.get_by_label("Token").fill("open-sesame")
    await page.keyboard.press("Enter")
    await expect(page.locator("#health")).to_contain_text("live")
    await page.reload()
    await expect(page.locator("#health")).to_contain_text("live")
    await expect(page.get_by_role("dialog")).to_have_count(0)

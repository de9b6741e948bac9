"""Every panel judged by axe-core, and its layout on a phone: with brokers, stubs, faults and an open request."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mockraft import Controller
from playwright.async_api import Page, ViewportSize, expect

from ..languages.tools import run
from .asking import ask, create_topic, register
from .conftest import DESK, PANELS, PHONE, Opens, Scheme

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LONG_NAME = "a_name_without_a_break_that_is_longer_than_the_screen_of_a_phone_is_wide"
FOLDER = Path(__file__).parent

VIOLATIONS = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false });
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target}: ${node.failureSummary}`));
}"""

OUTSIDE = """() => {
  const clips = (one) => getComputedStyle(one).overflowX !== "visible";
  const isClipped = (one) => Boolean(one) && (clips(one) || isClipped(one.parentElement));
  const width = document.documentElement.clientWidth;
  const wide = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility()
    && !isClipped(one.parentElement) && one.getBoundingClientRect().right > width + 0.5);
  const boxes = ".card, .box, .kinds > li, .detail-body, .panel.columns, .panel.overview, dialog";
  const cut = [...document.querySelectorAll(boxes)]
    .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1);
  return [...wide, ...cut].map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 40)}`);
}"""


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_source(tmp_path_factory.mktemp("axe"))


def axe_source(folder: Path) -> str:
    """The source of axe-core, as npm installs it."""
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_text((FOLDER / name).read_text())
    run(folder, "npm", "ci", package="npm")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def crowded(controller: Controller) -> None:
    """Give every panel something to show, with long names."""
    register(controller, 20)
    create_topic(controller, LONG_NAME, [1, 2], 1)
    create_topic(controller, "short", [], -1)
    controller.stub("Vote", client_id=LONG_NAME).named(LONG_NAME).inject_error("NOT_CONTROLLER").once()
    controller.faults.latency(latency_ms=1, client_id=LONG_NAME, name=LONG_NAME)
    controller.faults.registration_never_succeeds(broker_id=7)
    controller.strict = True
    await ask(controller, 3, LONG_NAME)


async def each_view(page: Page) -> AsyncIterator[str]:
    """Go through the panels, with a row, a form and the help opened; yield the name of each view."""
    await expect(page.locator("#health")).to_contain_text("live")
    for number, panel in enumerate(PANELS, 1):
        await page.keyboard.press(str(number))
        await expect(page.locator("#panels [aria-current=page]")).to_have_attribute("href", f"#/{panel}")
        if panel in ("requests", "brokers", "topics", "log"):
            rows = page.locator(".rows:visible [role=row]")
            await expect(rows.first).to_be_visible()
            yield panel
            await rows.first.click()
        if panel == "stubs":
            await expect(page.get_by_role("list", name="Active stubs").get_by_role("listitem").first).to_be_visible()
        if panel == "faults":
            await expect(page.locator(".kind").first).to_be_visible()
            yield panel
            await page.evaluate("document.querySelectorAll('.kind').forEach((one) => one.click())")
            await expect(page.get_by_role("form").last).to_be_visible()
        if panel in ("requests", "brokers", "log"):
            await expect(page.locator(".detail:visible dl").first).to_be_visible()
        yield f"{panel}, opened"
        await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    yield "help"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
async def test_axe_finds_no_violation(
    opens: Opens, controller: Controller, axe: str, size: ViewportSize, scheme: Scheme
) -> None:
    await crowded(controller)
    page = await opens(size=size, scheme=scheme)
    await page.evaluate(axe)
    found = {view: await page.evaluate(VIOLATIONS) async for view in each_view(page)}
    assert len(found) == 13
    assert {view: violations for view, violations in found.items() if violations} == {}


async def test_nothing_leaves_the_screen_of_a_phone(opens: Opens, controller: Controller) -> None:
    await crowded(controller)
    page = await opens(size=PHONE)
    found = {view: await page.evaluate(OUTSIDE) async for view in each_view(page)}
    assert {view: elements for view, elements in found.items() if elements} == {}

"""The page in Chromium, from a file: it loads nothing else and works by keyboard."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from mockraft.spark_replay.report.page import write_report
from playwright.async_api import Browser, Page, async_playwright, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SHOWN = "found => found.closest('.tools').nextElementSibling.querySelectorAll('tbody tr:not([hidden])').length"
WIDTHS = {"desk": 1280, "phone": 390}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    path = shutil.which("chromium")
    assert path is not None, "chromium is missing here and needed (Debian package chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        yield browser
        await browser.close()


@pytest.fixture(scope="module")
def address(tables: Path, replayed: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("browser") / "report.html"
    write_report(out, tables, replay=replayed)
    return out.as_uri()


async def opened(
    browser: Browser, address: str, width: int = 1280, scheme: Literal["light", "dark"] = "light"
) -> tuple[Page, list[str]]:
    """The page, with its console errors and requests; more may follow."""
    page = await browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    result: list[str] = []
    page.on("console", lambda said: result.append(said.text))
    page.on("pageerror", lambda error: result.append(str(error)))
    page.on("request", lambda asked: result.append(asked.url) if asked.url.partition("#")[0] != address else None)
    await page.goto(address)
    return page, result


@pytest.mark.parametrize("shape", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page_fits_and_loads_without_requests_or_errors(
    browser: Browser, address: str, shape: str, scheme: Literal["light", "dark"]
) -> None:
    page, result = await opened(browser, address, WIDTHS[shape], scheme)
    assert await page.evaluate("document.documentElement.scrollWidth") == WIDTHS[shape]
    for name in ("timeline", "latency", "heartbeats"):
        drawn = page.locator(f"#{name} figure svg:visible")
        assert await drawn.count() == 1
        box = await drawn.bounding_box()
        assert box is not None
        assert 0.8 * min(WIDTHS[shape], 1152) < box["width"] < WIDTHS[shape]
    # Rules with a child combinator apply, so the style sheet came through as it is.
    assert await page.locator(".diff > span").first.evaluate("e => getComputedStyle(e).whiteSpace") == "pre-wrap"
    colours = await page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).background]")
    assert ("rgb(255, 255, 255)" in colours[1]) == (scheme == "light")
    assert result == []
    await page.close()


async def test_details_open_by_keyboard_and_search_filters_rows(browser: Browser, address: str) -> None:
    page, result = await opened(browser, address)
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("Skip to the report")).to_be_focused()
    rules = page.locator("details").filter(has_text="rules never fired").last
    assert await rules.get_attribute("open") is None
    await rules.locator("summary").focus()
    await page.keyboard.press("Enter")
    await expect(rules).to_have_attribute("open", "")
    await page.keyboard.press("/")
    search = page.locator("input[type=search]:focus")
    await expect(search).to_have_count(1)
    await page.keyboard.type("nothing is called so")
    assert await search.evaluate(SHOWN) == 0
    await page.evaluate("document.activeElement.blur()")
    everything = page.get_by_role("button", name="open or close all")
    await everything.click()
    await expect(page.locator("#replay details[open]")).to_have_count(0)
    await everything.click()
    await expect(page.locator("#replay details[open]")).to_have_count(await page.locator("#replay details").count())
    assert result == []
    await page.close()


async def test_a_difference_leads_to_its_example_with_the_command_beneath(browser: Browser, address: str) -> None:
    page, result = await opened(browser, address)
    await page.get_by_role("link", name="#2").click()
    example = page.locator("details:target")
    await expect(example).to_have_attribute("open", "")
    await expect(example.locator("del").filter(has_text='"isFenced": true')).to_be_visible()
    await expect(example.locator("ins").filter(has_text='"isFenced": false')).to_be_visible()
    command = example.locator("pre.cmd").first
    await expect(command).to_contain_text("mockraft decode --response BrokerHeartbeat --version 2 --frame")
    await example.get_by_role("button", name="copy").first.click()
    await expect(
        example.get_by_role("button", name="selected").or_(example.get_by_role("button", name="copied"))
    ).to_be_visible()
    assert result == []
    await page.close()

"""The site in Chromium, from files and offline: keyboard, search, themes, a phone, and what axe-core finds."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Page, async_playwright, expect

from ..admin_page.conftest import FLAGS
from ..admin_page.test_accessibility import VIOLATIONS, axe_source
from .blocks import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.one_python, pytest.mark.asyncio(loop_scope="module")]

PAGES = (
    "index.html",
    "tutorials/pytest.html",
    "how-to/faults/stubs.html",
    "reference/serve-options.html",
    "evidence/matrix.html",
)
PHONE_WIDTH = 390


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"NO_MKDOCS_2_WARNING": "1"})
    assert built.returncode == 0, f"{built.stderr}\n`make docs` installs what is missing"
    return folder


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_source(tmp_path_factory.mktemp("axe"))


@pytest_asyncio.fixture(loop_scope="module")
async def page() -> AsyncIterator[Page]:
    """A tab that fails the test if a page complains, or asks another host for something."""
    path = shutil.which("chromium")
    assert path is not None, "chromium is missing here and needed (Debian package chromium)"
    complaints: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        page = await browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if asked.url.startswith("http") else None)
        yield page
        await browser.close()
    assert complaints == []


async def test_the_first_tab_stop_skips_to_the_content(site: Path, page: Page) -> None:
    await page.goto((site / "tutorials/pytest.html").as_uri())
    await page.keyboard.press("Tab")
    await expect(page.locator(":focus")).to_have_text("Skip to content")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("#test-a-service-in-python$"))


@pytest.mark.parametrize("key", ["/", "s"])
async def test_a_key_opens_the_search_which_works_offline(site: Path, page: Page, key: str) -> None:
    await page.context.set_offline(True)
    await page.goto((site / "index.html").as_uri())
    await page.keyboard.press(key)
    await expect(page.get_by_role("textbox", name="Search")).to_be_focused()
    await page.keyboard.type("cordoned directories")
    first = page.locator(".md-search-result__link").first
    await expect(first).to_contain_text("Cordoned log directories")
    await page.keyboard.press("ArrowDown")
    await expect(first).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_title("Cordoned log directories - mockraft")


async def test_the_theme_is_switched_by_keyboard_and_kept(site: Path, page: Page) -> None:
    await page.emulate_media(color_scheme="light")
    await page.goto((site / "index.html").as_uri())
    body = page.locator("body")
    await expect(body).to_have_attribute("data-md-color-scheme", "default")
    await page.get_by_title("Dark", exact=True).focus()
    await page.keyboard.press("Enter")
    await expect(body).to_have_attribute("data-md-color-scheme", "slate")
    await page.goto((site / "tutorials/pytest.html").as_uri())
    await expect(body).to_have_attribute("data-md-color-scheme", "slate")


async def test_no_page_is_wider_than_a_phone(site: Path, page: Page) -> None:
    await page.set_viewport_size({"width": PHONE_WIDTH, "height": 844})
    wide = []
    pages = sorted({*site.rglob("*.html")} - {site / "404.html"})  # which servers alone show
    for path in pages:
        await page.goto(path.as_uri())
        width = await page.evaluate("document.documentElement.scrollWidth")
        wide += [f"{path.relative_to(site)}: {width}"] if width != PHONE_WIDTH else []
    assert len(pages) > 60
    assert wide == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
async def test_axe_finds_no_violation(
    site: Path, page: Page, axe: str, name: str, scheme: Literal["light", "dark"]
) -> None:
    await page.emulate_media(color_scheme=scheme)
    await page.goto((site / name).as_uri())
    await page.evaluate(axe)
    assert await page.evaluate(VIOLATIONS) == []

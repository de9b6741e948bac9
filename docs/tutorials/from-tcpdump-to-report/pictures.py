"""The pictures of from-tcpdump-to-report.md out of a page: `python pictures.py night.html` (Playwright, Chromium)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import FloatRect, Page, sync_playwright

HERE = Path(__file__).parent
WIDTH, MARGIN = 1120, 12


def shoot(page: Page, name: str, first: str, last: str) -> None:
    """Everything between two elements, the upper edge of one and the lower of the other."""
    upper, lower = (page.locator(each).first.bounding_box() for each in (first, last))
    assert upper is not None
    assert lower is not None
    top = max(0, upper["y"] - MARGIN)
    clip: FloatRect = {"x": 0, "y": top, "width": WIDTH, "height": lower["y"] + lower["height"] - top + MARGIN}
    page.screenshot(path=HERE / f"{name}.png", full_page=True, clip=clip)


def main(report: Path) -> None:
    """Write the pictures beside this file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(report.resolve().as_uri())
        page.add_style_tag(content="nav { display: none !important; }")
        shoot(page, "overview", "header", "header")
        shoot(page, "timeline", "#timeline h2", "#timeline figure")
        shoot(page, "heartbeats", "#heartbeats h2", "#heartbeats figure")
        shoot(page, "differences", "h3:text('Differences by API and path')", ".diff")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

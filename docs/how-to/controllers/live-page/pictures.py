"""The pictures of live-page.md: `python pictures.py` (extra `admin`, Playwright, Chromium), in three minutes."""

from __future__ import annotations

import shutil
from pathlib import Path

from mockraft import Controller
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
HISTORY_MS = 150_000


def shoot(page: Page, name: str, width: int, height: int) -> None:
    """Write a picture of what the page shows at this size."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(1_500)
    page.screenshot(path=HERE / f"{name}.png")


def main() -> None:
    """Write the pictures beside this file."""
    with (
        Controller.sync(
            brokers=6, admin_port=0, broker_heartbeat_interval_ms=2000, session_timeout_ms=9000
        ) as controller,
        sync_playwright() as playwright,
    ):
        controller.stub("BrokerHeartbeat", broker_id=2).named("late heartbeats").delay_on(3, jitter_ms=2)
        controller.stub("BrokerHeartbeat", broker_id=5).named("a standby").with_probability(0.2, seed=7).inject_error(
            "NOT_CONTROLLER"
        )
        controller.faults.fence(broker_id=3)
        controller.state.create_topic("orders", partitions=6, replication_factor=3)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1120, "height": 520}, color_scheme="light")
        page.goto(controller.admin_url)
        page.wait_for_timeout(HISTORY_MS)
        shoot(page, "overview", 1120, 620)
        page.emulate_media(color_scheme="dark")
        page.goto(f"{controller.admin_url}/#/requests")
        page.keyboard.press("/")
        page.keyboard.type("BrokerHeartbeat")
        page.wait_for_timeout(1_000)
        page.locator(".rows:visible [role=row]").filter(has_text="stub-1").nth(1).click()
        shoot(page, "requests", 1200, 720)
        page.goto(f"{controller.admin_url}/#/faults")
        page.locator(".kind").filter(has_text="slow close").first.click()
        shoot(page, "faults", 1200, 720)
        page.emulate_media(color_scheme="light")
        page.goto(f"{controller.admin_url}/#/requests")
        shoot(page, "phone", 360, 640)
        browser.close()


if __name__ == "__main__":
    main()

"""The page in Debian's Chromium before a controller that runs: browser, server and controller share one event loop."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

import pytest
import pytest_asyncio
from mockraft import Controller
from mockraft.server.admin.serving import AdminServer
from mockraft.server.admin.settings import AdminSettings
from mockraft.testing.recorder import LocalRecorder
from playwright.async_api import ConsoleMessage, Error, Page, Request, ViewportSize, async_playwright, expect

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}
PANELS = ("overview", "requests", "brokers", "topics", "log", "stubs", "faults")

expect.set_options(timeout=60_000)

Opens = Callable[..., Awaitable[Page]]
Scheme = Literal["light", "dark"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tab() -> AsyncIterator[Page]:
    """One tab for all tests, for a new one takes a second; each test's page is of a host of its own (its port)."""
    path = shutil.which("chromium")
    assert path is not None, "chromium is missing here and needed (Debian package chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        tab = await browser.new_page()
        tab.set_default_timeout(60_000)
        yield tab
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def controller(request: pytest.FixtureRequest) -> AsyncIterator[Controller]:
    async with Controller(**getattr(request, "param", {})) as controller:
        controller.is_judged = True  # tests show what is unused and unexpected
        yield controller


@pytest_asyncio.fixture(loop_scope="session")
async def opens(tab: Page, controller: Controller) -> AsyncIterator[Opens]:
    """Opens the page at a panel. What the page complains of, and whom else it asks for something, fails the test."""
    servers: list[AdminServer] = []
    complaints: list[str] = []

    def hear(said: ConsoleMessage) -> None:
        # Chromium itself tells of each refusal, which the page shows, and of a controller that is gone.
        if said.type == "error" and "Failed to load resource" not in said.text:
            complaints.append(said.text)

    def see(asked: Request) -> None:
        if not asked.url.startswith((servers[0].url, "data:")):
            complaints.append(asked.url)

    async def open_page(
        panel: str = "overview", *, token: str | None = None, size: ViewportSize = DESK, scheme: Scheme = "light"
    ) -> Page:
        settings = AdminSettings(token=token)
        servers.append(await AdminServer.start(controller, settings, LocalRecorder()))
        await tab.set_viewport_size(size)
        await tab.emulate_media(color_scheme=scheme)
        await tab.goto(f"{servers[0].url}/#/{panel}")
        return tab

    def fail(error: Error) -> None:
        complaints.append(str(error))

    tab.on("pageerror", fail)
    tab.on("console", hear)
    tab.on("request", see)
    yield open_page
    for event, listener in (("pageerror", fail), ("console", hear), ("request", see)):
        tab.remove_listener(event, listener)
    await tab.context.set_offline(False)
    await tab.goto("about:blank")
    for server in servers:
        await server.stop()
    assert complaints == []

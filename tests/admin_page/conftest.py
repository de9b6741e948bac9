"""The page in Debian's Chromium before a controller that runs: browser, server and controller share one event loop."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from mockraft import Controller
from mockraft.server.admin.serving import AdminServer
from mockraft.server.admin.settings import AdminSettings
from playwright.async_api import Browser, Page, async_playwright, expect

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
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
PANELS = ("overview", "requests", "brokers", "topics", "log", "stubs", "faults")

expect.set_options(timeout=20_000)

Opens = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = shutil.which("chromium")
    assert path is not None, "chromium is missing here and needed (Debian package chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def controller(request: pytest.FixtureRequest) -> AsyncIterator[Controller]:
    async with Controller(**getattr(request, "param", {})) as controller:
        yield controller


@pytest_asyncio.fixture(loop_scope="session")
async def opens(browser: Browser, controller: Controller) -> AsyncIterator[Opens]:
    """Opens the page at a panel, in a browser that knows nothing yet. What the page complains of fails the test."""
    contexts, servers = [], []
    complaints: list[str] = []

    async def open_page(
        panel: str = "overview", *, token: str | None = None, size: dict[str, int] = DESK, **options: str
    ) -> Page:
        server = await AdminServer.start(controller.double, AdminSettings(token=token))
        servers.append(server)
        context = await browser.new_context(viewport=size, **options)
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = await context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((server.url, "data:")) else complaints.append(asked.url),
        )
        await page.goto(f"{server.url}/#{panel}")
        return page

    yield open_page
    for context in contexts:
        await context.close()
    for server in servers:
        await server.stop()
    # A problem that the page shows, or a token that it asks for, is told on the console by Chromium itself.
    assert [told for told in complaints if "Failed to load resource" not in told] == []

"""The requests: thousands of them, and one of them."""

import re

import pytest
from mockraft import Controller, stub
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from playwright.async_api import Locator, Page, expect

from .asking import ask
from .conftest import Opens

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

HOSTILE = '<script>document.title="taken"</script><img src=x onerror=alert(1)>'
ROWS_MAX = 60


def rows(page: Page) -> Locator:
    return page.get_by_role("grid", name="Requests").locator(".rows [role=row]")


async def test_two_thousand_lines_are_all_there_and_few_are_in_the_document(
    opens: Opens, controller: Controller
) -> None:
    await ask(controller, 2_000)
    page = await opens("requests")
    grid = page.get_by_role("grid", name="Requests")
    await expect(grid).to_have_attribute("aria-rowcount", "2001")
    await expect(rows(page).first).to_contain_text("ApiVersions")
    top = await rows(page).count()
    await grid.focus()
    await page.keyboard.press("End")
    await expect(page.locator("[aria-rowindex='2001']")).to_have_attribute("aria-selected", "true")
    assert max(top, await rows(page).count()) <= ROWS_MAX
    assert await page.evaluate("document.querySelectorAll('*').length") < 1_500


async def test_new_lines_come_on_top_until_they_are_paused(opens: Opens, controller: Controller) -> None:
    page = await opens("requests")
    await expect(page.locator("#health")).to_contain_text("live")
    await ask(controller, 1, "early")
    await expect(rows(page).filter(has_text="early")).to_have_count(1)
    await page.keyboard.press("p")
    await ask(controller, 1, "late")
    await expect(page.locator(".count:visible")).to_contain_text("1 new")
    await expect(rows(page).filter(has_text="late")).to_have_count(0)
    await page.keyboard.press("p")
    await expect(page.locator("[aria-rowindex='2']:visible")).to_contain_text("late")


async def test_scroll_position_is_kept_when_lines_arrive(opens: Opens, controller: Controller) -> None:
    await ask(controller, 200)
    page = await opens("requests")
    await expect(rows(page).first).to_be_visible()
    viewport = page.locator(".viewport:visible")
    await viewport.evaluate("(one) => { one.scrollTop = 28 * 50 }")
    read = page.locator("[aria-rowindex='60']:visible")
    key = await read.get_attribute("data-key")
    await ask(controller, 20, "newer")
    await expect(page.locator(f"[data-key='{key}']")).to_have_attribute("aria-rowindex", "80")
    assert await viewport.evaluate("(one) => one.scrollTop") == 28 * 70


async def test_lines_are_filtered_by_api_client_and_source(opens: Opens, controller: Controller) -> None:
    await ask(controller, 2, "one")
    await ask(controller, 1, "other")
    page = await opens("requests")
    await expect(rows(page)).to_have_count(3)
    await page.get_by_label("Client id contains").fill("other")
    await expect(rows(page)).to_have_count(1)
    await page.get_by_label("Client id contains").fill("")
    await page.get_by_label("Search requests").fill("one")
    await expect(rows(page)).to_have_count(2)
    await expect(page.locator(".count:visible")).to_have_text("2 of 3 lines")
    await page.get_by_label("Answered by").select_option("stub")
    await expect(page.get_by_text("No requests yet, or none that match.")).to_be_visible()


async def test_a_line_shows_microseconds(opens: Opens, controller: Controller) -> None:
    await ask(controller)
    (exchange,) = controller.journal.exchanges()
    exchange.took_us = 142
    page = await opens("requests")
    await expect(rows(page).get_by_role("gridcell").last).to_have_text("0.142")
    await rows(page).first.click()
    await expect(page.get_by_role("complementary", name="Request")).to_contain_text("Took0.142 ms")


async def test_bodies_are_searched_by_the_server(opens: Opens, controller: Controller) -> None:
    await ask(controller, 2)
    page = await opens("requests")
    await expect(rows(page)).to_have_count(2)
    await page.get_by_label("Search requests").fill("clientSoftwareName")
    await expect(rows(page)).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(rows(page)).to_have_count(2)


async def test_arrows_and_enter_open_a_line_with_its_bodies_and_escape_gives_the_list_back(
    opens: Opens, controller: Controller
) -> None:
    await ask(controller, 3)
    page = await opens("requests")
    grid = page.get_by_role("grid", name="Requests")
    await expect(rows(page)).to_have_count(3)
    await grid.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    active = page.locator("[aria-selected=true]:visible")
    await expect(grid).to_have_attribute("aria-activedescendant", str(await active.get_attribute("id")))
    await page.keyboard.press("Enter")
    detail = page.get_by_role("complementary", name="Request")
    for text in ("ApiVersions", "controller", "User:ANONYMOUS", "clientSoftwareName", "apiKeys"):
        await expect(detail).to_contain_text(text)
    await page.keyboard.press("ArrowDown")
    await expect(detail).to_contain_text("Correlation")
    await detail.get_by_role("button", name="Close").focus()
    await page.keyboard.press("Escape")
    await expect(detail).to_be_hidden()
    await expect(grid).to_be_focused()


async def test_client_text_is_escaped(opens: Opens, controller: Controller) -> None:
    await ask(controller, 1, HOSTILE)
    page = await opens("requests")
    await expect(rows(page).first).to_contain_text(HOSTILE)
    await rows(page).first.click()
    await expect(page.get_by_role("complementary")).to_contain_text(HOSTILE)
    assert await page.locator("#panel script, #panel img").count() == 0
    assert await page.title() == "Requests · mockraft"


async def test_a_request_is_made_a_stub_and_its_next_answer_names_it(opens: Opens, controller: Controller) -> None:
    await ask(controller)
    page = await opens("requests")
    await rows(page).first.click()
    await page.get_by_role("button", name="Make a stub of it").click()
    await expect(page.get_by_label("A stub as JSON")).to_have_value(re.compile('"api": "ApiVersions"'))
    await page.get_by_role("button", name="Activate").click()
    await expect(page.get_by_role("list", name="Active stubs").get_by_role("listitem")).to_have_count(1)
    assert [stub.match.to_json() for stub in controller.script.stubs.stubs] == [{"api": "ApiVersions"}]


async def test_unexpected_request_shows_nearest_stub_and_its_mismatch(opens: Opens, controller: Controller) -> None:
    rack = controller.script.stubs
    rack.strict = True
    rack.add(stub("DescribeCluster", client_id="expected").inject_error("UNSUPPORTED_VERSION"))
    await controller.ask(DescribeClusterRequest(endpoint_type=2), client_id="somebody")
    page = await opens("requests")
    await rows(page).filter(has_text="unmatched").first.click()
    missed = page.get_by_role("complementary").locator(".near-miss")
    await expect(missed).to_contain_text('clientId: "expected" but was "somebody"')


async def test_clearing_empties_the_journal_too(opens: Opens, controller: Controller) -> None:
    await ask(controller, 3)
    page = await opens("requests")
    await expect(rows(page)).to_have_count(3)
    await page.get_by_role("button", name="Clear").click()
    await expect(rows(page)).to_have_count(0)
    assert controller.journal.exchanges() == []

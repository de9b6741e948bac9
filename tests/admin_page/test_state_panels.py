"""Brokers, topics, the metadata log and the overview, as the state has them."""

import re

import pytest
from mockraft import Controller
from mockraft.kafka_api.clock import VirtualClock
from playwright.async_api import expect

from .asking import ask, create_topic, register
from .conftest import Opens

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_thousand_brokers_are_a_list_of_few_elements_and_a_map(opens: Opens, controller: Controller) -> None:
    register(controller, 1_000)
    page = await opens()
    drawn = page.get_by_role("group", name="1,000 brokers: 900 running, 100 fenced, 0 shutting down")
    await expect(drawn.get_by_role("button")).to_have_count(1_000)
    await page.get_by_role("link", name="All brokers").click()
    grid = page.get_by_role("grid", name="Brokers")
    await expect(grid).to_have_attribute("aria-rowcount", "1001")
    assert await grid.locator(".rows [role=row]").count() <= 60
    await page.get_by_label("State", exact=True).select_option("fenced")
    await expect(page.locator(".count:visible")).to_have_text("100 of 1,000 brokers")


async def test_a_square_of_the_map_opens_its_broker_and_tells_by_what_it_was_fenced(
    opens: Opens, controller: Controller
) -> None:
    register(controller, 3)
    controller.state.fence(3)
    page = await opens()
    events = page.get_by_role("list", name="Events, newest first").locator(":scope:visible")
    await expect(events.get_by_role("listitem").first).to_contain_text("broker 3 fenced")
    await page.get_by_role("button", name="Broker 1: running").focus()
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Broker 3")).to_be_visible()
    await expect(events.get_by_role("listitem").first).to_contain_text("a command")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("complementary", name="Broker")).to_be_hidden()
    assert page.url.endswith("#/brokers")


async def test_a_broker_shows_its_listeners_and_directories_and_is_fenced_by_hand(
    opens: Opens, controller: Controller
) -> None:
    register(controller, 3)
    page = await opens("brokers")
    row = page.get_by_role("grid", name="Brokers").locator("[data-key='2']")
    await expect(row).to_contain_text("PLAINTEXT://broker-2.example:9092")
    await expect(row.get_by_role("img", name="Directories: 2 online, 1 cordoned")).to_be_visible()
    await row.click()
    await page.get_by_role("button", name="Fence", exact=True).click()
    await expect(row).to_contain_text("fenced")
    await expect(page.locator("#announcement")).to_have_text("Broker 2 is fenced.")
    assert [broker.broker_id for broker in controller.state.brokers() if broker.fenced] == [2]


async def test_topics_open_into_partitions_and_those_in_need_stand_out(opens: Opens, controller: Controller) -> None:
    register(controller, 2)
    create_topic(controller, "whole", [1, 2], 1)
    create_topic(controller, "alone", [1], -1)
    page = await opens("topics")
    grid = page.get_by_role("grid", name="Topics")
    await expect(grid.locator(".row.bad")).to_contain_text("1 leaderless")
    await page.get_by_label("Only under-replicated or leaderless").check()
    await expect(grid.locator(".rows .row")).to_have_count(1)
    await grid.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(grid.locator(".rows .row").nth(1)).to_contain_text("alone-0")
    await expect(grid.locator(".rows .row").nth(1)).to_contain_text("1 (1 of 2)")


async def test_the_log_grows_on_top_is_filtered_by_type_and_decoded(opens: Opens, controller: Controller) -> None:
    register(controller, 600)
    page = await opens("log")
    grid = page.get_by_role("grid", name="Records")
    newest = grid.locator("[aria-rowindex='2']")
    await expect(newest).to_contain_text("RegisterBrokerRecord")
    create_topic(controller, "new", [1, 2], 1)
    await expect(newest).to_contain_text("PartitionRecord")
    await page.get_by_label("Type of record").select_option("TopicRecord")
    await expect(grid.locator(".rows .row")).to_have_count(1)
    await newest.click()
    await expect(page.get_by_role("complementary", name="Record")).to_contain_text('name"new"')


async def test_older_records_are_fetched_on_request(opens: Opens, controller: Controller) -> None:
    register(controller, 1_200)
    page = await opens("log")
    await expect(page.locator(".count:visible")).to_contain_text("500 records")
    await page.get_by_label("Go to offset").fill("3")
    await page.keyboard.press("Enter")
    await expect(page.locator("[aria-selected=true]:visible [role=gridcell]").first).to_have_text("3")
    await expect(page.get_by_role("button", name="Older")).to_be_disabled()


async def test_overview_shows_quorum_rate_and_latency(opens: Opens, controller: Controller) -> None:
    page = await opens()
    await ask(controller, 50)
    await expect(page.get_by_role("region", name="Quorum")).to_contain_text("Leader3000")
    await expect(page.get_by_role("region", name="Requests by API")).to_contain_text("ApiVersions")
    rate = page.get_by_role("img", name="Requests (per second):")
    await expect(rate).to_have_attribute("aria-label", re.compile(r"at most [2-5]\d "))  # in one second or two
    await expect(page.get_by_role("img", name="Response time (ms")).to_be_visible()
    await expect(page.get_by_role("button", name="Advance")).to_be_hidden()


@pytest.mark.parametrize("controller", [{"clock": VirtualClock(1_000)}], indirect=True)
async def test_a_virtual_clock_is_advanced_by_hand(opens: Opens, controller: Controller) -> None:
    page = await opens()
    card = page.get_by_role("region", name="Clock")
    await card.get_by_role("button", name="+9 s").click()
    await expect(page.locator("#announcement")).to_have_text("The clock was advanced by 9,000 ms.")
    await expect(card).to_contain_text(":10.000")
    assert controller.now_ms == 10_000

"""Stubs and faults, put in the way and taken away by hand."""

import json

import pytest
from mockraft import Controller
from mockraft.wire.json_form import Json
from playwright.async_api import expect

from .asking import ask
from .conftest import Opens

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

REFUSAL = {"match": {"api": "Vote"}, "actions": [{"injectError": "NOT_CONTROLLER"}]}


async def test_a_stub_is_written_as_json_counts_is_switched_off_and_deleted(
    opens: Opens, controller: Controller
) -> None:
    page = await opens("stubs")
    editor = page.get_by_label("A stub as JSON")
    await editor.fill(
        json.dumps({"match": {"clientId": "nobody"}, "actions": [{"passThrough": True}], "name": "<b>passes</b>"})
    )
    await editor.press("Control+Enter")
    card = page.get_by_role("list", name="Active stubs").get_by_role("listitem")
    await expect(card).to_contain_text("<b>passes</b>")
    await expect(card).to_contain_text("clientId nobody")
    await expect(card).to_contain_text("called 0 times")
    await ask(controller, 1, "nobody")
    await expect(card).to_contain_text("called 1 time")
    switch = card.get_by_role("switch", name="Stub <b>passes</b> enabled")
    await expect(switch).to_be_checked()
    await switch.focus()
    await page.keyboard.press("Space")
    await expect(switch).not_to_be_checked()
    assert [stub.enabled for stub in controller.script.stubs.stubs] == [False]
    await card.get_by_role("button", name="Delete").click()
    await expect(card).to_have_count(0)
    assert list(controller.script.stubs.stubs) == []


async def test_invalid_stub_names_the_field_and_suggestions(opens: Opens, controller: Controller) -> None:
    page = await opens("stubs")
    editor = page.get_by_label("A stub as JSON")
    await editor.fill(
        json.dumps({"match": {"api": "BrokerHeartbeat", "where": {"wantFenc": True}}, "actions": [{"drop": True}]})
    )
    await page.get_by_role("button", name="Activate").click()
    await expect(page.get_by_role("alert")).to_contain_text("wantFence")
    await expect(editor).to_have_attribute("aria-invalid", "true")
    await editor.fill("{")
    await page.get_by_role("button", name="Activate").click()
    await expect(page.get_by_role("alert")).to_contain_text("JSON")
    assert list(controller.script.stubs.stubs) == []


async def test_a_stub_is_edited_in_place(opens: Opens, controller: Controller) -> None:
    page = await opens("stubs")
    editor = page.get_by_label("A stub as JSON")
    await editor.fill(json.dumps(REFUSAL | {"name": "before"}))
    await page.get_by_role("button", name="Activate").click()
    await page.get_by_role("button", name="Edit stub before").click()
    await editor.fill((await editor.input_value()).replace("before", "after"))
    await page.get_by_role("button", name="Activate").click()
    await expect(page.get_by_role("list", name="Active stubs")).to_contain_text("after")
    assert [stub.name for stub in controller.script.stubs.stubs] == ["after"]


async def test_a_fault_is_switched_on_by_the_form_of_its_kind_fires_and_is_switched_off(
    opens: Opens, controller: Controller
) -> None:
    page = await opens("faults")
    await page.keyboard.press("/")
    await page.keyboard.type("latency")
    await page.get_by_role("button", name="latency").first.click()
    form = page.get_by_role("form", name="Switch on latency")
    await form.get_by_label("latencyMs").fill("1")
    await form.get_by_label("Client id").fill("slow")
    await form.get_by_role("button", name="Switch it on").click()
    card = page.get_by_role("list", name="Faults", exact=True).get_by_role("listitem")
    await expect(card).to_contain_text("clientId slow")
    await expect(card).to_contain_text("fired 0 times")
    await ask(controller, 1, "slow")
    await expect(card.locator(".calls.some")).to_be_visible()
    await card.get_by_role("switch", name="Fault latency on").click()
    await expect(card.get_by_role("switch")).not_to_be_checked()
    assert [fault.enabled for fault in controller.script.faults.all] == [False]
    await card.get_by_role("button", name="Delete fault latency").click()
    await expect(card).to_have_count(0)


async def test_every_kind_of_fault_has_a_form_that_arrow_keys_reach(opens: Opens, controller: Controller) -> None:
    page = await opens("faults")
    kinds = page.get_by_role("list", name="Kinds of fault").locator(".kind")
    names = list(controller.script.faults.kinds)
    await expect(kinds).to_have_count(len(names))
    await kinds.first.focus()
    for _ in names:
        await page.keyboard.press("Enter")
        await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("button", name="Switch it on")).to_have_count(len(names))
    await expect(kinds.first).to_be_focused()


@pytest.mark.parametrize("controller", [{"clock": "virtual"}], indirect=True)
async def test_a_plan_is_shown_step_by_step_and_stopped_by_hand(opens: Opens, controller: Controller) -> None:
    latency: Json = {"kind": "latency", "params": {"latencyMs": 5}}
    controller.faults.run([{"duration": 500, "fault": latency}, {"at": 1_000, "fault": {"kind": "down"}}])
    page = await opens("faults")
    steps = page.get_by_role("list", name="The plan's steps").get_by_role("listitem")
    await expect(steps).to_have_text(
        ["latency at 0 ms for 500 ms: on, fired 0 times", "down at 1,000 ms: waiting"], use_inner_text=True
    )
    controller.advance(600)
    await expect(steps.first).to_have_text("latency at 0 ms for 500 ms: over, fired 0 times")
    await page.get_by_role("button", name="Stop the plan").click()
    await expect(page.get_by_role("button", name="Stop the plan")).to_be_hidden()
    assert controller.script.faults.active == []


async def test_strict_mode_is_switched_by_hand_and_recordings_are_listed(opens: Opens, controller: Controller) -> None:
    page = await opens("stubs")
    strict = page.get_by_role("switch", name="Strict")
    await expect(strict).not_to_be_checked()
    await strict.click()
    await expect(strict).to_be_checked()
    assert controller.strict
    url = page.url.partition("#")[0]
    made = await page.request.post(f"{url}v1/recordings", data={"upstream": controller.bootstrap})
    assert made.ok
    await expect(page.get_by_text(f"recording-1: {controller.bootstrap} at")).to_be_visible()
    await page.request.delete(f"{url}v1/recordings")
    await expect(page.get_by_text("Recordings")).to_be_hidden()

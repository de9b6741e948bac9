"""Answers that stubs give, edit frame by frame, or draw."""

import json
from pathlib import Path
from typing import Any

import pytest
from mockraft import Stub, stub
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.node import Node
from mockraft.server.stubs.actions import ACTIONS
from mockraft.server.stubs.match import SCOPES
from mockraft.server.stubs.predicates import OPERATORS
from mockraft.server.stubs.script import Script
from mockraft.server.stubs.triggers import TRIGGERS
from mockraft.wire import error_codes
from mockraft.wire.client import DisconnectedError
from mockraft.wire.connection import write_request
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

from ...rows import each_row

UNKNOWN_BROKER = error_codes.STALE_BROKER_EPOCH
"""The controller's own answer to the heartbeat of an unknown broker."""


async def test_error_is_answered_as_often_as_triggered(stubs: Any, asker: Any) -> None:
    live = stubs.add(stub("BrokerHeartbeat", want_fence=True).times(2).inject_error("NOT_CONTROLLER"))
    codes = [await asker.code(want_fence=fence) for fence in (True, False, True, True)]
    refused = error_codes.NOT_CONTROLLER
    assert codes == [refused, UNKNOWN_BROKER, refused, UNKNOWN_BROKER]
    assert (live.call_count, live.match_count, len(live.calls), live.called) == (2, 3, 2, True)


async def test_journal_records_the_source_and_reason(controller: Any, stubs: Any, asker: Any) -> None:
    stubs.add(stub("BrokerHeartbeat").named("moved", id="s").once().inject_error("NOT_CONTROLLER"))
    await asker.code()
    await asker.code()
    first, second = controller.journal.exchanges(63)
    assert (first.served_by, first.matched, first.unmatched, first.reason) == ("stub s", "s", False, None)
    assert (second.served_by, second.matched) == ("controller", None)


async def test_controller_response_is_patched(stubs: Any, asker: Any) -> None:
    change = {"isFenced": False, "errorCode": "NONE", "should_shut_down": True}
    stubs.add(stub("BrokerHeartbeat").change(response=change).unknown_tagged_field(9000, "cafe"))
    response = await asker.heartbeat()
    assert (response.is_fenced, response.error_code, response.should_shut_down) == (False, 0, True)
    assert response.unknown_tagged_fields == [(9000, b"\xca\xfe")]


async def test_answers_come_one_after_the_other_and_the_last_one_sticks(stubs: Any, asker: Any) -> None:
    stubs.add(stub("BrokerHeartbeat").answers(["NOT_CONTROLLER", {"errorCode": 5}, lambda request: None, 7]))
    with pytest.raises(ValueError, match="expected a response"):
        stub("BrokerHeartbeat").answers([object()])
    with pytest.raises(ValueError, match=r"expected a response or its fields, got <function .* is for answers\(…\)"):
        stubs.add(stub("BrokerHeartbeat").answer(lambda request: None))
    assert [await asker.code() for _ in range(5)] == [41, 5, UNKNOWN_BROKER, 7, 7]


async def test_iterable_starts_again_for_each_stub(stubs: Any, asker: Any) -> None:
    said = stub("BrokerHeartbeat").answers(range(7, 9), exhausted="pass_through")
    live = stubs.add(said)
    assert [await asker.code() for _ in range(3)] == [7, 8, UNKNOWN_BROKER]
    stubs.remove(live)
    stubs.add(said)
    assert await asker.code() == 7


async def test_answer_function_takes_request_and_optional_context_and_may_return_a_function(
    stubs: Any, asker: Any
) -> None:
    def of_both(request: Any, asked: Any) -> Any:
        return lambda again: {"errorCode": asked.api_version + (again is request)}

    live = stubs.add(stub("BrokerHeartbeat").answers([lambda request: request.broker_id, of_both]))
    assert [await asker.code() for _ in range(2)] == [1, live.calls[0].api_version + 1]


async def test_raising_answer_function_is_recorded_in_the_journal(controller: Any, stubs: Any, asker: Any) -> None:
    stubs.add(stub("BrokerHeartbeat").once().answers(lambda request: 1 / 0))
    assert await asker.code() == error_codes.UNKNOWN_SERVER_ERROR
    assert await asker.code() == UNKNOWN_BROKER
    (exchange, _) = controller.journal.exchanges(63)
    assert "ZeroDivisionError" in exchange.failure


async def test_a_reset_breaks_the_connection_off(controller: Any, stubs: Any, asker: Any) -> None:
    stubs.add(stub("BrokerHeartbeat").reset())
    with pytest.raises(DisconnectedError, match="reset by peer"):
        await asker.code()
    (exchange,) = controller.journal.exchanges(63)
    assert (exchange.response_frame, exchange.reason) == (b"", "reset (stub stub-1)")


def sent(rig: Any, edit: Stub | None = None) -> bytes:
    """Bytes sent for a heartbeat, correlation id 101 in a frame of 17 bytes."""
    stubs = rig.node.script.stubs
    stubs.reset()
    if edit is not None:
        stubs.add(edit)
    rig._correlation_id = 100
    rig.send(rig.connect(), rig.frame(BrokerHeartbeatRequest(broker_id=1), 1))
    return b"".join(rig.sends())


def test_bytes_are_edited_at_the_given_offset(rig: Any) -> None:
    heartbeat = stub("BrokerHeartbeat")
    whole = sent(rig)
    length, correlation = whole[:4], whole[4:8]
    assert (int.from_bytes(length, "big"), int.from_bytes(correlation, "big")) == (len(whole) - 4, 101)
    assert sent(rig, heartbeat.wrong_correlation_id()) == length + (102).to_bytes(4, "big") + whole[8:]
    assert sent(rig, heartbeat.wrong_correlation_id(-102))[4:8] == b"\xff\xff\xff\xff"
    assert sent(rig, heartbeat.wrong_length(3)) == (len(whole) - 1).to_bytes(4, "big") + whole[4:]
    assert sent(rig, heartbeat.truncate(6)) == whole[:6]
    assert sent(rig, heartbeat.duplicate(3)) == whole * 3
    assert sent(rig, heartbeat.raw("0000 0001 ff")) == b"\0\0\0\1\xff"
    assert sent(rig, heartbeat.truncate(2).wrong_length().wrong_correlation_id().corrupt(2)) == whole[:2]


def test_corruption_repeats_with_its_seed_and_spares_length_and_correlation_id(rig: Any) -> None:
    whole = sent(rig)
    corrupt = [sent(rig, stub("BrokerHeartbeat").corrupt(2, seed=seed)) for seed in (1, 1, 2)]
    assert corrupt[0] == corrupt[1] != corrupt[2]
    assert corrupt[0][:8] == whole[:8]
    assert corrupt[0] != whole
    assert len(corrupt[0]) == len(whole)


def test_a_cut_answer_and_then_the_end(rig: Any) -> None:
    whole = sent(rig)
    assert sent(rig, stub("BrokerHeartbeat").truncate(9).disconnect_on()) == whole[:9]
    assert rig.closes() != []


def test_journal_contains_the_sent_bytes_and_the_edit(rig: Any) -> None:
    data = sent(rig, stub("BrokerHeartbeat").truncate(9))
    exchange = rig.node.journal.exchanges()[-1]
    assert (exchange.response_frame, exchange.reason) == (data, "truncate (stub stub-1)")
    assert exchange.to_json()["responseHex"] == data.hex()


def test_unwritable_answer_is_an_error_in_the_journal_and_the_node_continues(rig: Any) -> None:
    broken = stub("BrokerHeartbeat").once().change(response=lambda response: setattr(response, "throttle_time_ms", "x"))
    assert sent(rig, broken)[13:15] == b"\xff\xff"
    assert "throttle_time_ms" in rig.node.journal.exchanges()[-1].failure
    assert sent(rig) != b""


def test_raising_condition_is_an_error_in_the_journal_and_the_node_continues(rig: Any) -> None:
    assert sent(rig, stub("BrokerHeartbeat", broker_epoch=lambda epoch: 1 / 0))[13:15] == b"\xff\xff"
    assert "ZeroDivisionError" in rig.node.journal.exchanges()[-1].failure
    assert sent(rig) != b""


def test_one_rack_serves_every_node_and_a_node_is_a_scope(make_controller: Any) -> None:
    script = Script()
    nodes = [Node(make_controller(ControllerConfig(node_id=each)), APIS, script=script) for each in (3000, 3001)]
    one = script.stubs.add(stub("BrokerHeartbeat", node=3001).named("", id="one").inject_error("NOT_CONTROLLER"))
    script.stubs.add(stub("BrokerHeartbeat").named("", id="both").with_priority(-1))
    for node in nodes:
        node.connected(1, "127.0.0.1:50000", 0)
        node.step(1, write_request(BrokerHeartbeatRequest(broker_id=1), 1, 1, "test"), 0)
    assert [each.matched for node in nodes for each in node.journal.exchanges()] == ["both", "one"]
    assert [each.node_id for each in one.calls] == [3001]


PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "faults" / "stubs.md").read_text()
IN_PYTHON = {
    "everyTime": "every_time()",
    "once": "once()",
    "times": "times(n)",
    "onCall": "on_call(n)",
    "withProbability": "with_probability(p, seed)",
}


def rows() -> list[str]:
    found = [f"| `{name}` | {summary} |" for name, summary in SCOPES.items()]
    found += [f"| `{operator.name}` | {operator.summary} |" for operator in OPERATORS.values()]
    found += [f"| `{IN_PYTHON[name]}` | `{name}` | {kind.summary} |" for name, kind in TRIGGERS.items()]
    for name, kind in ACTIONS.items():
        example = f'"{name}"' if kind.example is True else json.dumps({name: kind.example})
        found.append(f"| `{example}` | {kind.summary} |")
    return found


@each_row("row", rows())
def test_the_page_has_a_row_for_each_match_operator_trigger_and_action(row: str) -> None:
    assert row in PAGE


def test_every_trigger_and_action_has_a_method_of_that_name() -> None:
    names = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in (*TRIGGERS, *ACTIONS)}
    assert {name for name in names if not callable(getattr(Stub, name, None))} == set()

"""Damaged answers, byte by byte."""

from typing import Any

import pytest
from mockraft import Stub, stub
from mockraft.server.apis.registry import APIS
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest


@pytest.fixture
def rig(make_rig: Any, make_controller: Any) -> Any:
    return make_rig(*APIS.values(), controller=make_controller())


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

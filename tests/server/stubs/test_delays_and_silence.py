"""Late answers, no answers, and no connection, by the node's clock alone."""

from typing import Any

import pytest
from mockraft import stub
from mockraft.server.apis.registry import APIS
from mockraft.server.effects import Close, PauseReading, Reset
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic


@pytest.fixture
def rig(make_rig: Any, make_controller: Any) -> Any:
    return make_rig(*APIS.values(), controller=make_controller())


@pytest.fixture
def stubs(rig: Any) -> Any:
    return rig.node.script.stubs


def heartbeat(rig: Any) -> bytes:
    frame: bytes = rig.frame(BrokerHeartbeatRequest(broker_id=1), 1)
    return frame


def test_delayed_answer_delays_only_its_connection(rig: Any, stubs: Any) -> None:
    stubs.add(stub("BrokerHeartbeat").once().delay_on(500))
    slow, other = rig.connect(), rig.connect()
    assert rig.send(slow, heartbeat(rig) + heartbeat(rig)) == [PauseReading(slow)]
    rig.send(other, heartbeat(rig))
    assert rig.correlation_ids() == [103]
    assert rig.node.next_tick_ms(rig.now_ms) <= rig.now_ms + 500
    assert [rig.tick(rig.now_ms + 499), rig.correlation_ids()] == [[], []]
    rig.tick(rig.now_ms + 1)
    assert rig.correlation_ids(slow) == [101, 102]
    (first, *_) = [each for each in rig.node.journal.exchanges(63) if each.matched]
    assert (first.answered_ms - first.received_ms, first.served_by) == (500, "controller")


@pytest.mark.parametrize(("before", "answered_as"), [(False, "then"), (True, "now")])
def test_a_delay_comes_before_or_after_the_controller_sees_the_request(
    rig: Any, stubs: Any, before: bool, answered_as: str
) -> None:
    seen: list[int] = []
    look = stub("BrokerHeartbeat").delay_on(100, before=before).change(request=lambda request: seen.append(rig.now_ms))
    stubs.add(look)
    began_ms = rig.now_ms
    rig.send(rig.connect(), heartbeat(rig))
    rig.tick(began_ms + 100)
    assert seen == [began_ms + 100 if answered_as == "now" else began_ms]
    assert len(rig.sends()) == 1


def test_jitter_repeats_with_its_seed(rig: Any, stubs: Any) -> None:
    def answered_after(seed: int) -> list[int]:
        stubs.reset()
        stubs.add(stub("BrokerHeartbeat").delay_on(100, 50, seed=seed))
        rig.node.journal.clear()
        for _ in range(4):
            connection = rig.connect()
            rig.send(connection, heartbeat(rig))
            while not rig.correlation_ids(connection):
                rig.tick(rig.now_ms + 1)
        return [each.answered_ms - each.received_ms for each in rig.node.journal.exchanges(63)]

    first = answered_after(1)
    assert first == answered_after(1) != answered_after(2)
    assert all(50 <= ms <= 150 for ms in first)


def test_a_dropped_request_is_not_seen_unless_the_chain_lets_it_pass_first(rig: Any, stubs: Any) -> None:
    seen: list[Any] = []
    stubs.add(stub("BrokerHeartbeat").on_call(2).change(request=seen.append).drop())
    stubs.add(stub("BrokerHeartbeat").once().drop())
    connection = rig.connect()
    rig.send(connection, heartbeat(rig))
    assert (rig.sends(), seen) == ([], [])
    rig.send(connection, heartbeat(rig))
    assert len(rig.sends()) == 1
    rig.send(connection, heartbeat(rig))
    assert rig.sends() == []
    assert len(seen) == 1
    assert [each.reason for each in rig.node.journal.exchanges(63)] == [
        "dropped (stub stub-2)",
        None,
        "dropped (stub stub-1)",
    ]


@pytest.mark.parametrize(("end", "effect"), [("disconnect_on", Close), ("reset", Reset)])
def test_a_connection_ends_with_or_without_an_answer(rig: Any, stubs: Any, end: str, effect: Any) -> None:
    live = stubs.add(getattr(stub("BrokerHeartbeat"), end)())
    connection = rig.connect()
    ended = rig.send(connection, heartbeat(rig) * 2)
    assert [type(each) for each in ended] == [effect]
    stubs.replace(live.id, getattr(stub("BrokerHeartbeat").pass_through(), end)())
    rig.send(rig.connect(), heartbeat(rig))
    assert len(rig.sends()) == 1
    assert type(rig.effects[-1]) is effect
    assert rig.node.connections == 0


def test_a_fetch_that_waits_is_changed_when_it_is_answered(rig: Any, stubs: Any) -> None:
    stubs.add(stub("Fetch").change(response={"throttleTimeMs": 7}))
    log = rig.controller.log
    topic_id = b"\0" * 15 + b"\1"
    partition = FetchPartition(partition=0, fetch_offset=log.end_offset, last_fetched_epoch=1, current_leader_epoch=1)
    partition.high_watermark = log.high_watermark
    request = FetchRequest(
        max_wait_ms=200, max_bytes=1 << 20, topics=[FetchTopic(topic_id=topic_id, partitions=[partition])]
    )
    connection = rig.connect()
    rig.send(connection, rig.frame(request, 17))
    assert rig.sends() == []
    while not rig.sends():
        rig.tick(rig.now_ms + 50)
    (exchange,) = rig.node.journal.exchanges(1)
    assert (exchange.response.throttle_time_ms, exchange.served_by) == (7, "stub stub-1")
    assert exchange.answered_ms > exchange.received_ms


@pytest.mark.parametrize("before", [False, True])
def test_delayed_request_of_a_closed_client_is_in_the_journal(rig: Any, stubs: Any, before: bool) -> None:
    live = stubs.add(stub("BrokerHeartbeat").delay_on(500, before=before))
    slow = rig.connect()
    rig.send(slow, heartbeat(rig))
    rig.node.disconnected(slow, "the peer closed", rig.now_ms + 100)
    (lost,) = rig.node.journal.exchanges(63)
    assert (lost.response_frame, lost.matched, lost.served_by) == (b"", live.id, "controller")
    assert lost.reason == f"the connection ended before the answer (stub {live.id})"
    assert list(live.calls) == [lost]


def test_randomness_of_an_answer_is_independent_of_other_requests(rig: Any, stubs: Any) -> None:
    def answer(others: int) -> bytes:
        stubs.reset()
        rig.node.journal.clear()
        stubs.add(stub("BrokerHeartbeat").delay_on(500).corrupt(5, seed=3))
        slow = rig.connect()
        rig.send(slow, heartbeat(rig))
        for _ in range(others):
            rig.send(rig.connect(), heartbeat(rig))
        rig.tick(rig.now_ms + 500)
        (exchange,) = [each for each in rig.node.journal.exchanges(63) if each.connection_id == slow]
        body: bytes = exchange.response_frame[8:]
        return body

    assert answer(0) == answer(3)

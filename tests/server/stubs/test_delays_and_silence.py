"""Stubs that delay, stay silent, or meet envelopes and log-ins."""

from typing import Any

import pytest
from mockraft import stub
from mockraft.kafka_api.effects import Close, PauseReading, Reset, Send
from mockraft.wire import error_codes
from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.create_topics_response import CreateTopicsResponse
from mockraft.wire.messages.envelope_request import EnvelopeRequest

from ...fetches import fetch_request


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
    assert rig.correlation_ids(slow) == [101]
    rig.effects = rig.node.sent(slow, rig.now_ms)
    assert rig.correlation_ids(slow) == [102]
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
    request = fetch_request(log.end_offset, high_watermark=log.high_watermark, max_wait_ms=200)
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


ANONYMOUS = b"\0\0\x05User\x0aANONYMOUS\0\0"


def forward(rig: Any, connection: int, name: str = "t") -> None:
    """A broker (its client id says it is broker 1) forwards somebody's CreateTopics."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    carried = write_request(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7, 77, "admin")[4:]
    envelope = EnvelopeRequest(request_data=carried, request_principal=ANONYMOUS, client_host_address=b"\x7f\0\0\1")
    rig.send(connection, rig.frame(envelope, 0, client_id="1"))


def answered(rig: Any) -> tuple[int, Any]:
    """The envelope's error code, and the response that it carries."""
    (data,) = [effect.data for effect in rig.effects if isinstance(effect, Send)]
    (frame,) = FrameReader().receive_data(data)
    envelope = read_response(frame, 58, 0)
    inner = envelope.response_data
    return envelope.error_code, None if inner is None else CreateTopicsResponse.read(inner[5:], 7)


def test_a_forwarded_request_is_met_by_its_own_api_and_its_brokers_id(rig: Any, stubs: Any) -> None:
    live = stubs.add(stub("CreateTopics", broker_id=1, client_id="admin").inject_error("POLICY_VIOLATION", "no"))
    forward(rig, rig.connect())
    code, response = answered(rig)
    (topic,) = response.topics
    assert (code, topic.error_code, topic.error_message) == (0, error_codes.POLICY_VIOLATION, "no")
    (exchange,) = rig.node.journal.exchanges()
    assert (exchange.api, exchange.forwarded_by, exchange.client_id) == ("CreateTopics", 1, "admin")
    assert (exchange.error_code, exchange.served_by) == (error_codes.POLICY_VIOLATION, f"stub {live.id}")
    assert list(live.calls) == [exchange]


@pytest.mark.parametrize("met", [stub("CreateTopics"), stub("Envelope", broker_id=1)], ids=["inner", "envelope"])
def test_not_controller_is_the_envelopes_error_whichever_of_the_two_is_met(rig: Any, stubs: Any, met: Any) -> None:
    stubs.add(met.inject_error("NOT_CONTROLLER"))
    forward(rig, rig.connect())
    assert answered(rig) == (error_codes.NOT_CONTROLLER, None)


def test_a_forwarded_request_is_delayed_changed_and_dropped(rig: Any, stubs: Any) -> None:
    live = stubs.add(stub("CreateTopics").delay_on(100).change(response={"throttleTimeMs": 9}))
    connection = rig.connect()
    forward(rig, connection)
    assert rig.sends() == []
    rig.tick(rig.now_ms + 100)
    assert answered(rig)[1].throttle_time_ms == 9
    for dropped, after_ms in ((stub("CreateTopics").drop(), 0), (stub("CreateTopics").delay_on(100).drop(), 100)):
        stubs.replace(live.id, dropped)
        forward(rig, rig.connect())
        rig.tick(rig.now_ms + after_ms)
        assert rig.sends() == []
        exchange = rig.node.journal.exchanges()[-1]
        assert (exchange.failure, exchange.reason) == (None, f"dropped (stub {live.id})")
    stubs.replace(live.id, stub("CreateTopics").disconnect_on())
    forward(rig, connection)
    assert [type(effect) for effect in rig.effects] == [Close]


def test_a_forwarded_request_of_a_strict_script_is_unmatched_unless_either_part_is_met(rig: Any, stubs: Any) -> None:
    stubs.strict = True
    connection = rig.connect()
    forward(rig, connection, "a")
    stubs.add(stub("CreateTopics", topics__name="b"))
    forward(rig, connection, "b")
    assert [each.unmatched for each in rig.node.journal.exchanges()] == [True, False]

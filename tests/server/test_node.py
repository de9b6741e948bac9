import struct
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.kafka_api.api import Parked
from mockraft.kafka_api.connections import DEADLINES_KEPT
from mockraft.kafka_api.effects import AwaitSent, Close, Effect, PauseReading, ResumeReading
from mockraft.kafka_api.journal import Failure
from mockraft.kafka_api.listener import BURST_REQUESTS_MAX
from mockraft.server.apis.api import AnyApi, Api, RequestContext
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

from .conftest import allocation_api

Handle = Callable[[Any, Any, Any], Any]


def heartbeat_api(handle: Handle) -> AnyApi:
    return Api(BrokerHeartbeatRequest, BrokerHeartbeatResponse, handle)


def fenced(request: Any, ctx: Any, controller: Any) -> Any:
    return BrokerHeartbeatResponse(is_fenced=request.want_fence)


def until_log_grows(request: Any, ctx: Any, controller: Any) -> Parked[AllocateProducerIdsResponse]:
    seen = controller.log.end_offset

    def retry(now_ms: int, expired: bool) -> Any:
        if controller.log.end_offset == seen and not expired:
            return None
        return AllocateProducerIdsResponse(producer_id_start=controller.log.end_offset)

    return Parked(ctx.now_ms + 500, retry)


@pytest.fixture
def rig(make_rig: Any) -> Any:
    return make_rig(heartbeat_api(fenced), allocation_api(until_log_grows))


def test_handler_receives_client_and_connection(make_rig: Any) -> None:
    seen: list[RequestContext] = []

    def handle(request: Any, ctx: RequestContext, controller: Any) -> BrokerHeartbeatResponse:
        seen.append(ctx)
        return BrokerHeartbeatResponse()

    rig = make_rig(heartbeat_api(handle))
    connection = rig.connect()
    rig.send(connection, rig.frame(BrokerHeartbeatRequest(), 1, client_id=None))
    (ctx,) = seen
    assert (ctx.api_key, ctx.api_version, ctx.connection_id, ctx.now_ms) == (63, 1, connection, rig.now_ms)
    assert (ctx.client_id, ctx.principal, ctx.client_address) == ("", "User:ANONYMOUS", "127.0.0.1:50000")
    assert (ctx.listener, ctx.forwarded) == ("CONTROLLER", False)


def test_a_request_in_single_bytes_is_answered_once_whole(rig: Any) -> None:
    connection = rig.connect()
    frame = rig.frame(BrokerHeartbeatRequest(), 1)
    for offset in range(len(frame) - 1):
        assert rig.send(connection, frame[offset : offset + 1]) == []
    assert rig.node.received_bytes == len(frame) - 1
    rig.send(connection, frame[-1:])
    assert len(rig.sends()) == 1
    assert rig.node.received_bytes == 0


def test_pipelined_requests_are_answered_in_order(rig: Any) -> None:
    connection = rig.connect()
    rig.send(connection, b"".join(rig.frame(BrokerHeartbeatRequest(), 1) for _ in range(5)))
    assert rig.correlation_ids() == [101, 102, 103, 104, 105]


def test_a_parked_request_holds_back_its_connection_and_no_other(rig: Any) -> None:
    waiting, other = rig.connect(), rig.connect()
    parked = rig.frame(AllocateProducerIdsRequest(), 0) + rig.frame(BrokerHeartbeatRequest(), 1)
    assert rig.send(waiting, parked) == [PauseReading(waiting)]
    assert rig.ask(other, BrokerHeartbeatRequest(), 1).is_fenced is False
    rig.controller.log.end_offset = 11
    rig.send(other, rig.frame(BrokerHeartbeatRequest(), 1))
    assert rig.correlation_ids(waiting) == [101]
    assert AwaitSent(waiting) in rig.effects
    rig.effects = rig.node.sent(waiting, rig.now_ms)
    assert rig.correlation_ids(waiting) == [102]
    assert ResumeReading(waiting) in rig.effects


def test_a_parked_request_is_answered_at_its_deadline(rig: Any) -> None:
    connection = rig.connect()
    assert rig.send(connection, rig.frame(AllocateProducerIdsRequest(), 0)) == []
    deadline_ms = rig.now_ms + 500
    assert rig.node.next_tick_ms(rig.now_ms) == deadline_ms
    assert rig.tick(deadline_ms - 1) == []
    rig.tick(deadline_ms)
    assert rig.correlation_ids(connection) == [101]
    (exchange,) = rig.node.journal.exchanges()
    assert (exchange.received_ms, exchange.answered_ms) == (deadline_ms - 500, deadline_ms)
    assert exchange.took_us == 500_000
    assert rig.node.next_tick_ms(rig.now_ms) > deadline_ms


def test_answers_are_measured_by_the_clock_of_the_listener(rig: Any) -> None:
    times_us = iter([1_000, 1_142, 2_000, 2_000, 2_000, 502_500])
    rig.node.now_us = lambda: next(times_us)
    rig.ask(rig.connect(), BrokerHeartbeatRequest(), 1)
    rig.send(rig.connect(), rig.frame(AllocateProducerIdsRequest(), 0))
    rig.tick(rig.now_ms + 500)
    assert [exchange.took_us for exchange in rig.node.journal.exchanges()] == [142, 500_500]


def test_a_parked_request_is_answered_when_a_tick_lets_the_log_grow(rig: Any) -> None:
    connection = rig.connect()
    rig.send(connection, rig.frame(AllocateProducerIdsRequest(), 0))

    def grow(now_ms: int) -> None:
        rig.controller.log.end_offset += 1

    rig.controller.on_tick = grow
    rig.tick(rig.now_ms + 1)
    assert rig.correlation_ids(connection) == [101]


def test_followers_get_a_change_before_its_client_gets_the_response(make_rig: Any) -> None:
    """A client that reads from a broker right after a change would else often miss it, more often than with Kafka."""

    def grow(request: Any, ctx: Any, controller: Any) -> BrokerHeartbeatResponse:
        controller.log.end_offset += 1
        return BrokerHeartbeatResponse()

    rig = make_rig(heartbeat_api(grow), allocation_api(until_log_grows))
    follower, client = rig.connect(), rig.connect()
    rig.send(follower, rig.frame(AllocateProducerIdsRequest(), 0))
    rig.send(client, rig.frame(BrokerHeartbeatRequest(), 1))
    assert rig.correlation_ids() == [101, 102]


def test_two_parked_requests_of_one_connection_wait_in_turn(rig: Any) -> None:
    connection = rig.connect()
    rig.send(connection, rig.frame(AllocateProducerIdsRequest(), 0) * 2)
    rig.tick(rig.now_ms + 500)
    assert len(rig.sends()) == 1
    rig.node.sent(connection, rig.now_ms)
    rig.tick(rig.now_ms + 500)
    assert len(rig.sends()) == 1


def test_the_next_tick_is_the_controllers_when_the_connection_of_a_parked_request_closed(rig: Any) -> None:
    connection = rig.connect()
    rig.send(connection, rig.frame(AllocateProducerIdsRequest(), 0))
    rig.node.disconnected(connection, "the peer closed", rig.now_ms)
    assert rig.tick(rig.now_ms + 500) == []
    assert rig.node.connections == 0
    rig.controller.next_ms = rig.now_ms + 77
    assert rig.node.next_tick_ms(rig.now_ms) == rig.now_ms + 77


def test_parked_requests_of_closed_connections_do_not_accumulate(make_rig: Any) -> None:
    waiting: weakref.WeakSet[Callable[[int, bool], Any]] = weakref.WeakSet()

    def for_weeks(request: Any, ctx: Any, controller: Any) -> Parked[AllocateProducerIdsResponse]:
        def retry(now_ms: int, expired: bool) -> Any:
            return None

        waiting.add(retry)
        return Parked(ctx.now_ms + 2_000_000_000, retry)

    rig = make_rig(allocation_api(for_weeks))
    for _ in range(2 * DEADLINES_KEPT):
        connection = rig.connect()
        rig.send(connection, rig.frame(AllocateProducerIdsRequest(), 0))
        rig.node.disconnected(connection, "the peer closed", rig.now_ms)
    patient = rig.connect()
    rig.send(patient, rig.frame(AllocateProducerIdsRequest(), 0))
    assert rig.node.parked == 1
    assert len(waiting) <= DEADLINES_KEPT + 4


def test_refusal_has_the_apis_error_form(make_rig: Any) -> None:
    def refuse(request: Any, ctx: Any, controller: Any) -> Any:
        raise ApiError(error_codes.STALE_BROKER_EPOCH, "no")

    rig = make_rig(heartbeat_api(refuse))
    assert rig.ask(rig.connect(), BrokerHeartbeatRequest(), 1).error_code == error_codes.STALE_BROKER_EPOCH
    assert rig.node.journal.exchanges()[0].failure is None


def break_down(request: Any, ctx: Any, controller: Any) -> Any:
    raise KeyError("our bug")


@pytest.mark.parametrize(
    ("handle", "failure"),
    [
        (break_down, "KeyError: 'our bug'"),
        (lambda request, ctx, controller: BrokerHeartbeatResponse(error_code=1 << 20), "WireError"),
    ],
    ids=["raises", "answers what cannot be written"],
)
def test_a_handler_that_breaks_is_journalled_and_survived(make_rig: Any, handle: Handle, failure: str) -> None:
    rig = make_rig(heartbeat_api(handle))
    connection = rig.connect()
    for _ in range(2):
        response = rig.ask(connection, BrokerHeartbeatRequest(), 1)
        assert response.error_code == error_codes.UNKNOWN_SERVER_ERROR
    assert failure in rig.node.journal.exchanges()[0].failure
    assert rig.node.journal.counters()["failures"] == 2


def test_a_time_out_of_pytest_passes_by_the_handler_that_it_interrupts(make_rig: Any) -> None:
    rig = make_rig(heartbeat_api(lambda request, ctx, controller: pytest.fail("Timeout")))
    with pytest.raises(pytest.fail.Exception):
        rig.ask(rig.connect(), BrokerHeartbeatRequest(), 1)


@pytest.mark.parametrize("outcome", ["silent", "raises"])
def test_a_parked_request_that_breaks_is_answered_as_our_bug(make_rig: Any, outcome: str) -> None:
    def retry(now_ms: int, expired: bool) -> Any:
        if outcome == "raises":
            raise ZeroDivisionError
        return None

    rig = make_rig(allocation_api(lambda request, ctx, controller: Parked(ctx.now_ms + 5, retry)))
    rig.send(rig.connect(), rig.frame(AllocateProducerIdsRequest(), 0))
    rig.tick(rig.now_ms + 5)
    (exchange,) = rig.node.journal.exchanges()
    assert exchange.response.error_code == error_codes.UNKNOWN_SERVER_ERROR
    assert exchange.failure is not None


def test_periodic_work_that_breaks_is_journalled_and_not_repeated_at_once(rig: Any) -> None:
    def break_down(now_ms: int) -> None:
        raise ValueError("broken")

    rig.controller.on_tick = break_down
    rig.controller.next_ms = rig.now_ms
    rig.tick(rig.now_ms)
    (broken,) = rig.node.journal.entries
    assert isinstance(broken, Failure)
    assert "ValueError: broken" in broken.failure
    assert rig.node.next_tick_ms(rig.now_ms) == rig.now_ms + 100
    rig.tick(rig.now_ms + 1)
    assert len(rig.controller.ticks) == 1


def test_a_tick_that_breaks_is_the_failure_until_one_succeeds(rig: Any) -> None:
    def break_down(now_ms: int) -> Any:
        raise OverflowError("no offset is left")

    healthy, rig.controller.tick = rig.controller.tick, break_down
    rig.tick(rig.now_ms)
    assert rig.controller.tick_failure == "OverflowError: no offset is left"
    rig.controller.tick = healthy
    rig.tick(rig.now_ms + 200)
    assert rig.controller.tick_failure is None


def test_a_poll_of_raft_that_breaks_is_the_failure_until_one_succeeds(rig: Any) -> None:
    def break_down(now_ms: int) -> Any:
        raise OverflowError("no epoch is left")

    healthy = rig.controller.raft.poll
    rig.controller.raft.poll = break_down
    for number in range(3):
        rig.tick(rig.now_ms + 100 * number)
        rig.controller.failure = rig.controller.raft_failure
    assert rig.controller.raft_failure == "OverflowError: no epoch is left"
    assert len(rig.node.journal.entries) == 1, "it is reported once"
    rig.controller.raft.poll = healthy
    rig.tick(rig.now_ms + 300)
    assert rig.controller.raft_failure is None


@pytest.mark.parametrize("more", [b"", b"\xff\xff\xff\xff"], ids=["one reason", "two reasons"])
@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (struct.pack(">hhih", 3, 12, 1, -1) + b"\0", "API Metadata (3) is not served on this listener"),
        (struct.pack(">hhih", 63, 9, 1, -1) + b"\0", "BrokerHeartbeat (63) has no version 9 here"),
        (struct.pack(">hhih", 63, -1, 1, -1), "BrokerHeartbeat (63) has no version -1 here"),
        (struct.pack(">hhih", 999, 0, 1, -1), "there is no request with the api key 999"),
        (struct.pack(">hhih", 63, 1, 1, -1) + b"\0\0\0", "BrokerHeartbeatRequest"),
        (b"\0", "has no API key and version"),
        (b"", "has no API key and version"),
    ],
)
def test_closes_on_a_request_it_cannot_take_and_journals_why(rig: Any, frame: bytes, reason: str, more: bytes) -> None:
    bad, good = rig.connect(), rig.connect()
    rig.send(bad, rig.frame(BrokerHeartbeatRequest(), 1) + struct.pack(">i", len(frame)) + frame + more)
    assert rig.correlation_ids(bad) == [101]
    (close,) = rig.closes()
    assert close.connection_id == bad
    (line,) = rig.node.journal.closed()
    assert reason in line.reason
    assert line.reason == close.reason
    assert (line.refused, line.refused_frame) == (True, frame)
    assert rig.send(bad, rig.frame(BrokerHeartbeatRequest(), 1)) == []
    rig.node.disconnected(bad, "the peer closed", rig.now_ms)
    assert len(rig.node.journal.closed()) == 1
    assert rig.ask(good, BrokerHeartbeatRequest(want_fence=True), 1).is_fenced is True


@pytest.mark.parametrize("parks", [False, True])
@pytest.mark.parametrize("length", [-1, 1 << 30])
def test_a_bad_length_closes_after_earlier_requests_are_answered(rig: Any, length: int, parks: bool) -> None:
    connection = rig.connect()
    earlier = rig.frame(AllocateProducerIdsRequest(), 0) if parks else rig.frame(BrokerHeartbeatRequest(), 1)
    rig.send(connection, earlier + struct.pack(">i", length))
    if parks:
        assert rig.effects == []
        rig.tick(rig.now_ms + 500)
    assert rig.correlation_ids() == [101]
    assert isinstance(rig.effects[-1], Close)
    assert rig.node.journal.counters()["closed"] == {"frame": 1}


def test_refuses_connections_beyond_the_limit(make_rig: Any) -> None:
    rig = make_rig(connections_max=2)
    first = rig.connect()
    rig.connect()
    third = rig.connect()
    assert rig.effects == [Close(third, "refused: 2 connections are open, connections_max=2")]
    assert rig.send(third, rig.frame(ApiVersionsRequest(), 0)) == []
    assert [line.connection_id for line in rig.node.journal.closed()] == [third]
    rig.node.disconnected(first, "the peer closed", rig.now_ms)
    rig.connect()
    assert rig.effects == []


def test_bounds_the_bytes_of_all_unfinished_frames(make_rig: Any) -> None:
    rig = make_rig(received_bytes_max=1000, frame_bytes_max=900)
    first, second = rig.connect(), rig.connect()
    part = struct.pack(">i", 900) + bytes(400)
    assert rig.send(first, part + bytes(200)) == []
    rig.send(second, part)
    (close,) = rig.closes()
    assert close.connection_id == first  # it holds most
    assert rig.node.received_bytes == len(part)
    assert rig.node.journal.counters()["closed"] == {"received_bytes_max": 1}


def test_a_flood_is_answered_in_bursts_that_wait_for_the_socket(rig: Any) -> None:
    connection = rig.connect()
    count = BURST_REQUESTS_MAX * 2 + 10
    rig.send(connection, b"".join(rig.frame(BrokerHeartbeatRequest(), 1) for _ in range(count)))
    answered = rig.correlation_ids()
    assert len(answered) == BURST_REQUESTS_MAX
    assert rig.effects[-2:] == [AwaitSent(connection), PauseReading(connection)]
    while AwaitSent(connection) in rig.effects:
        rig.effects = rig.node.sent(connection, rig.now_ms)
        answered += rig.correlation_ids()
    assert answered == list(range(101, 101 + count))
    assert rig.effects[-1] == ResumeReading(connection)
    assert rig.node.sent(connection, rig.now_ms) == []


def test_large_answers_are_held_back_sooner(make_rig: Any) -> None:
    large = AllocateProducerIdsResponse(unknown_tagged_fields=[(7, bytes(600_000))])
    rig = make_rig(allocation_api(lambda request, ctx, controller: large))
    connection = rig.connect()
    rig.send(connection, rig.frame(AllocateProducerIdsRequest(), 0) * 50)
    assert len(rig.sends()) == 1


def test_connection_closed_inside_a_frame_is_reported(rig: Any) -> None:
    connection = rig.connect()
    rig.send(connection, b"\0\0\0\x10abc")
    rig.node.disconnected(connection, "the peer closed", rig.now_ms + 5)
    (line,) = rig.node.journal.closed()
    assert line.reason == "the peer closed, in a frame (7 of 20 bytes)"
    assert (line.refused, line.opened_ms, line.closed_ms) == (False, rig.now_ms, rig.now_ms + 5)
    assert rig.node.received_bytes == 0


def test_the_shell_can_have_a_connection_closed(rig: Any) -> None:
    connection = rig.connect()
    assert rig.node.close(connection, "write_stuck_ms", "it reads nothing", rig.now_ms) == [
        Close(connection, "it reads nothing")
    ]
    assert rig.node.close(connection, "write_stuck_ms", "it reads nothing", rig.now_ms) == []
    assert rig.node.journal.counters()["closed"] == {"write_stuck_ms": 1}


def test_the_same_inputs_give_the_same_effects(make_rig: Any) -> None:
    def run() -> list[Effect]:
        rig = make_rig(heartbeat_api(fenced), allocation_api(until_log_grows))
        first, second = rig.connect(), rig.connect()
        effects: list[Effect] = []
        effects += rig.send(first, rig.frame(AllocateProducerIdsRequest(), 0))
        effects += rig.send(second, rig.frame(BrokerHeartbeatRequest(), 2) + b"\xff\xff\xff\xfe")
        effects += rig.tick(rig.now_ms + 500)
        return effects

    assert run() == run()

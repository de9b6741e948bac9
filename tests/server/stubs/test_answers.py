"""Effects of stubs as seen from a client's socket."""

from typing import Any

import pytest
from mockraft import stub
from mockraft.wire import error_codes
from mockraft.wire.client import DisconnectedError

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

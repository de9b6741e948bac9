"""The transaction coordinator over its log: what waits, what the markers end, what the next leader knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.brokers.apis import write_txn_markers
from mockraft.brokers.coordinators.transaction import Producer, Transaction
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError, DisconnectedError
from mockraft.wire.messages.write_txn_markers_request import WriteTxnMarkersRequest

from .conftest import IDS, Led

ORDERS = ("orders", 0)
TIMEOUT_MS = 60_000
STATE = (IDS["__transaction_state"], 0)


def begun(led: Led, transactional_id: str = "tx") -> Producer:
    """Initialize a producer."""
    waiting = led.transactions.initialize(transactional_id, TIMEOUT_MS, None)
    led.run()
    producer = waiting.result()
    assert producer is not None
    return producer


def ongoing(led: Led, transactional_id: str = "tx") -> Producer:
    """Begin a transaction in `orders`."""
    producer = begun(led, transactional_id)
    led.transactions.add(transactional_id, producer, frozenset((ORDERS,)), 2)
    led.run()
    return producer


def ended(led: Led, producer: Producer, *, is_commit: bool = True, version: int = 2) -> Waiting[Transaction]:
    waiting = led.transactions.end("tx", producer, version, is_commit=is_commit)
    led.run()
    return waiting


def state(led: Led, transactional_id: str = "tx") -> str:
    known = led.transactions.find(transactional_id)
    return "none" if known is None else known.state.title


def code(call: Callable[..., object], *arguments: Any, **named: Any) -> int:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **named)
    return refused.value.error_code


def answer_markers(led: Led, error_code: int = error_codes.NONE) -> WriteTxnMarkersRequest:
    """Answer the one request for markers; return it."""
    (sent,) = led.sent
    request = sent.request
    assert isinstance(request, WriteTxnMarkersRequest)
    led.answer(write_txn_markers.error(request, error_code, None))
    return request


def test_epoch_is_given_once_it_is_replicated(led: Led) -> None:
    led.hosts.find(STATE).state.isr = frozenset((1, 2))
    waiting = led.transactions.initialize("tx", TIMEOUT_MS, None)
    led.run()
    assert waiting.result() is None
    assert code(led.transactions.initialize, "tx", TIMEOUT_MS, None) == error_codes.CONCURRENT_TRANSACTIONS
    led.replicate(STATE)
    assert waiting.result() == Producer(1_000, 0)


def test_change_that_is_never_replicated_is_given_up(led: Led) -> None:
    led.hosts.find(STATE).state.isr = frozenset((1, 2))
    waiting = led.transactions.initialize("tx", TIMEOUT_MS, None)
    led.run(30_001)
    assert code(waiting.result) == error_codes.COORDINATOR_NOT_AVAILABLE
    led.hosts.find(STATE).state.isr = frozenset((1,))
    assert begun(led) == Producer(1_000, 0)


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "error_code"),
    [
        ("", TIMEOUT_MS, error_codes.INVALID_REQUEST),
        ("tx", 0, error_codes.INVALID_TRANSACTION_TIMEOUT),
        ("tx", 900_001, error_codes.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_invalid_producers_are_refused(led: Led, transactional_id: str, timeout_ms: int, error_code: int) -> None:
    assert code(led.transactions.initialize, transactional_id, timeout_ms, None) == error_code


def test_producer_waits_for_an_id(led: Led) -> None:
    led.producer_ids = iter([None, 7])
    waiting = led.transactions.initialize("tx", TIMEOUT_MS, None)
    assert code(waiting.result) == error_codes.COORDINATOR_LOAD_IN_PROGRESS
    assert begun(led) == Producer(7, 0)


def test_ended_transaction_is_complete_once_the_markers_are_written(led: Led) -> None:
    producer = ongoing(led)
    result = ended(led, producer).result()
    assert result is not None
    assert (result.producer_epoch, state(led)) == (1, "PrepareCommit")
    assert code(led.transactions.initialize, "tx", TIMEOUT_MS, None) == error_codes.CONCURRENT_TRANSACTIONS
    (marker,) = answer_markers(led).markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (1_000, 1, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (0, 2)
    assert (state(led), led.sent) == ("CompleteCommit", [])


@pytest.mark.parametrize("error_code", [error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.UNKNOWN_TOPIC_OR_PARTITION])
def test_refused_markers_are_sent_again(led: Led, error_code: int) -> None:
    ended(led, ongoing(led))
    answer_markers(led, error_code)
    assert led.sent == []
    led.run(100)
    answer_markers(led)
    assert state(led) == "CompleteCommit"


def test_markers_are_sent_again_after_a_disconnect(led: Led) -> None:
    ended(led, ongoing(led))
    led.answer(DisconnectedError("closed"))
    led.run(100)
    answer_markers(led)
    assert state(led) == "CompleteCommit"


@pytest.mark.parametrize("error_code", [error_codes.INVALID_PRODUCER_EPOCH, error_codes.TRANSACTION_COORDINATOR_FENCED])
def test_markers_of_an_older_coordinator_are_given_up(led: Led, error_code: int) -> None:
    ended(led, ongoing(led))
    answer_markers(led, error_code)
    led.run(10_000)
    assert (led.sent, state(led)) == ([], "PrepareCommit")


def test_markers_follow_the_leader(led: Led) -> None:
    ended(led, ongoing(led))
    led.lead("orders", 3)
    answer_markers(led, error_codes.NOT_LEADER_OR_FOLLOWER)
    led.run(100)
    (sent,) = led.sent
    assert sent.link.host == "b3"


def test_markers_wait_for_a_leader(led: Led) -> None:
    producer = ongoing(led)
    led.lead("orders", -1)
    ended(led, producer)
    assert led.sent == []
    led.lead("orders", 2)
    answer_markers(led)
    assert state(led) == "CompleteCommit"


def test_deleted_partitions_need_no_marker(led: Led) -> None:
    producer = ongoing(led)
    led.delete("orders")
    ended(led, producer)
    assert (led.sent, state(led)) == ([], "CompleteCommit")


def test_one_request_has_the_markers_of_all_transactions_that_end_meanwhile(led: Led) -> None:
    producers = {name: ongoing(led, name) for name in ("a", "b", "c")}
    for name, producer in producers.items():
        led.transactions.end(name, producer, 2, is_commit=name != "b")
        led.run()
    assert [marker.transaction_result for marker in answer_markers(led).markers] == [True]
    assert [marker.transaction_result for marker in answer_markers(led).markers] == [False, True]
    assert [state(led, name) for name in producers] == ["CompleteCommit", "CompleteAbort", "CompleteCommit"]


def test_next_producer_aborts_the_transaction_of_the_first(led: Led) -> None:
    first = ongoing(led)
    waiting = led.transactions.initialize("tx", TIMEOUT_MS, None)
    led.run()
    assert code(waiting.result) == error_codes.CONCURRENT_TRANSACTIONS
    assert [marker.transaction_result for marker in answer_markers(led).markers] == [False]
    assert code(led.transactions.end, "tx", first, 0, is_commit=True) == error_codes.PRODUCER_FENCED
    assert begun(led) == Producer(1_000, 2)


def test_transaction_that_takes_too_long_is_aborted(led: Led) -> None:
    producer = ongoing(led)
    led.run(TIMEOUT_MS - 10_000)
    assert state(led) == "Ongoing"
    led.run(20_001)
    answer_markers(led)
    assert state(led) == "CompleteAbort"
    assert code(led.transactions.end, "tx", producer, 0, is_commit=True) == error_codes.PRODUCER_FENCED


@pytest.mark.parametrize("properties", [{"transactional.id.expiration.ms": "5000000"}])
def test_forgotten_ids_expire(led: Led) -> None:
    begun(led)
    led.run(3_600_000)
    assert state(led) == "Empty"
    led.run(3_600_000)
    assert state(led) == "none"
    led.forget()
    assert state(led) == "none"


def test_next_leader_knows_the_transactions(led: Led) -> None:
    producer = ongoing(led)
    before = led.transactions.find("tx")
    led.forget()
    assert before is not None
    assert led.transactions.find("tx") == before._replace(last_producer_epoch=-1)
    ended(led, producer)
    answer_markers(led)
    assert state(led) == "CompleteCommit"


def test_next_leader_sends_the_markers(led: Led) -> None:
    ended(led, ongoing(led), is_commit=False)
    led.forget()
    led.answer(DisconnectedError("closed"))
    led.run(100)
    (marker,) = answer_markers(led).markers
    assert (marker.transaction_result, marker.coordinator_epoch) == (False, 2)
    assert state(led) == "CompleteAbort"


def test_other_brokers_ids_are_refused(led: Led) -> None:
    producer = ongoing(led)
    led.lead("__transaction_state", 2)
    for call, arguments in (
        (led.transactions.find, ("tx",)),
        (led.transactions.initialize, ("tx", TIMEOUT_MS, None)),
        (led.transactions.add, ("tx", producer, frozenset((ORDERS,)), 0)),
    ):
        assert code(call, *arguments) == error_codes.NOT_COORDINATOR
    assert list(led.transactions) == []


def test_leader_that_resigns_refuses_what_is_not_replicated(led: Led) -> None:
    led.hosts.find(STATE).state.isr = frozenset((1, 2))
    waiting = led.transactions.initialize("tx", TIMEOUT_MS, None)
    led.lead("__transaction_state", 2)
    assert code(waiting.result) == error_codes.NOT_COORDINATOR

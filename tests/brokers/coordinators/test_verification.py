"""Leaders ask the transaction's coordinator: one request at a time, and errors that the client knows."""

from __future__ import annotations

import pytest
from mockraft.brokers.coordinators.transaction import Producer
from mockraft.brokers.coordinators.verification import ClientSupport, Errors
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.wire import error_codes
from mockraft.wire.errors import DisconnectedError, UnsupportedVersionError
from mockraft.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from mockraft.wire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

from .conftest import Led

ORDERS = ("orders", 0)
OLD, ABORTABLE, ADDS = ClientSupport


def verify(led: Led, support: ClientSupport = ADDS, transactional_id: str = "tx") -> Waiting[Errors]:
    waiting = led.verifier.verify(transactional_id, Producer(7, 1), frozenset((ORDERS,)), support)
    led.run()
    return waiting


def answer(led: Led, error_code: int = error_codes.NONE, whole: int = error_codes.NONE) -> AddPartitionsToTxnRequest:
    """Answer the one request with this error for each partition; return it."""
    (sent,) = led.sent
    request = sent.request
    assert isinstance(request, AddPartitionsToTxnRequest)
    result = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error_code)
    topics = [AddPartitionsToTxnTopicResult(name="orders", results_by_partition=[result])]
    led.answer(
        AddPartitionsToTxnResponse(
            error_code=whole,
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=topics)
                for each in request.transactions
            ],
        )
    )
    return request


@pytest.mark.parametrize("support", ClientSupport)
def test_partitions_are_added_for_newer_clients_only(led: Led, support: ClientSupport) -> None:
    waiting = verify(led, support)
    assert waiting.result() is None
    (transaction,) = answer(led).transactions
    assert (transaction.verify_only, transaction.producer_epoch) == (support is not ADDS, 1)
    assert waiting.result() == {ORDERS: error_codes.NONE}


@pytest.mark.parametrize(
    ("found", "support", "expected"),
    [
        (error_codes.TRANSACTION_ABORTABLE, OLD, error_codes.INVALID_TXN_STATE),
        (error_codes.TRANSACTION_ABORTABLE, ABORTABLE, error_codes.TRANSACTION_ABORTABLE),
        (error_codes.PRODUCER_FENCED, ADDS, error_codes.INVALID_PRODUCER_EPOCH),
        (error_codes.CONCURRENT_TRANSACTIONS, OLD, error_codes.CONCURRENT_TRANSACTIONS),
    ],
)
def test_client_gets_an_error_that_it_knows(led: Led, found: int, support: ClientSupport, expected: int) -> None:
    waiting = verify(led, support)
    answer(led, found)
    assert waiting.result() == {ORDERS: expected}


def test_leader_asks_again_while_the_last_transaction_ends(led: Led) -> None:
    waiting = verify(led)
    answer(led, error_codes.CONCURRENT_TRANSACTIONS)
    assert waiting.result() is None
    led.run(20)
    answer(led)
    assert waiting.result() == {ORDERS: error_codes.NONE}


def test_leader_gives_up_after_100_ms(led: Led) -> None:
    waiting = verify(led)
    led.run(100)
    answer(led, error_codes.CONCURRENT_TRANSACTIONS)
    assert waiting.result() == {ORDERS: error_codes.CONCURRENT_TRANSACTIONS}


def test_verifications_that_come_meanwhile_share_the_next_request(led: Led) -> None:
    waiting = [verify(led, transactional_id=name) for name in ("a", "b", "c", "b")]
    names = []
    while led.sent:
        names.append([each.transactional_id for each in answer(led).transactions])
    assert names == [["a"], ["b", "c"], ["b"]]
    assert [each.result() for each in waiting] == [{ORDERS: error_codes.NONE}] * 4


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (DisconnectedError("closed"), error_codes.NETWORK_EXCEPTION),
        (UnsupportedVersionError("too old"), error_codes.INVALID_TXN_STATE),
    ],
)
def test_coordinator_that_does_not_answer(led: Led, failure: Exception, expected: int) -> None:
    waiting = verify(led)
    led.answer(failure)
    assert waiting.result() == {ORDERS: expected}
    again = verify(led)
    answer(led)
    assert again.result() == {ORDERS: error_codes.NONE}


def test_refusal_of_the_whole_request(led: Led) -> None:
    waiting = verify(led)
    answer(led, whole=error_codes.CLUSTER_AUTHORIZATION_FAILED)
    assert waiting.result() == {ORDERS: error_codes.INVALID_TXN_STATE}


def test_unknown_coordinator(led: Led) -> None:
    led.lead("__transaction_state", -1)
    assert verify(led).result() == {ORDERS: error_codes.COORDINATOR_NOT_AVAILABLE}


@pytest.mark.parametrize("properties", [{"transaction.partition.verification.enable": "false"}])
def test_verification_can_be_switched_off(led: Led) -> None:
    assert verify(led, OLD).result() == {ORDERS: error_codes.NONE}
    assert (verify(led, ADDS).result(), len(led.sent)) == (None, 1)

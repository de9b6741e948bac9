"""The transitions of a transaction as pure functions: each state, each request, the current and older producers."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.brokers.coordinators import transaction as transitions
from mockraft.brokers.coordinators.transaction import (
    ENDED,
    EXHAUSTED_FROM,
    EndOfTransaction,
    Producer,
    ProducerIdNeededError,
    Transaction,
    TransactionState,
)
from mockraft.brokers.partitions.producers import EPOCH_MAX
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError

from ...rows import each_row

STATES = list(TransactionState)
ORDERS = ("orders", 0)
NEW = Transaction(7, 60_000)
PARTITIONS = frozenset((ORDERS,))


def known(state: TransactionState, **fields: Any) -> Transaction:
    """A transaction of producer 7 in epoch 4."""
    partitions = frozenset() if state in ENDED else PARTITIONS
    base = Transaction(7, 60_000, producer_epoch=4, last_producer_epoch=3, state=state, partitions=partitions)
    return base._replace(start_ms=500, **fields)


def code(call: object, *arguments: object, **named: object) -> int:
    assert callable(call)
    with pytest.raises(ApiError) as refused:
        call(*arguments, **named)
    return refused.value.error_code


# InitProducerId.


@each_row("expected", [None, Producer(7, 0), Producer(9, 3)])
def test_first_producer_has_epoch_0(expected: Producer | None) -> None:
    first = transitions.initialize(NEW, 1_000, expected, 10)
    assert (first.producer_id, first.producer_epoch, first.last_producer_epoch) == (7, 0, -1)
    assert (first.state, first.timeout_ms, first.updated_ms) == (TransactionState.EMPTY, 1_000, 10)


@each_row("state", sorted(ENDED))
@each_row(
    ("expected", "epoch", "last_epoch"),
    {
        "new producer": (None, 5, -1),
        "after an error": (Producer(7, 4), 5, 4),
        "repeated request": (Producer(7, 3), 4, 3),
    },
)
def test_next_epoch(state: TransactionState, expected: Producer | None, epoch: int, last_epoch: int) -> None:
    after = transitions.initialize(known(state), 1_000, expected, 10)
    assert (after.producer_id, after.producer_epoch, after.last_producer_epoch) == (7, epoch, last_epoch)
    assert (after.state, after.partitions, after.start_ms) == (TransactionState.EMPTY, frozenset(), -1)


@each_row("expected", [Producer(7, 2), Producer(7, 5), Producer(6, 4), Producer(6, EXHAUSTED_FROM)])
def test_other_producers_are_fenced(expected: Producer) -> None:
    state = known(TransactionState.COMPLETE_COMMIT, previous_producer_id=5)
    assert code(transitions.initialize, state, 1_000, expected, 10) == error_codes.PRODUCER_FENCED


@each_row("state", sorted(set(STATES) - ENDED))
def test_no_epoch_is_given_during_a_transaction(state: TransactionState) -> None:
    assert code(transitions.initialize, known(state), 1_000, None, 10) == error_codes.CONCURRENT_TRANSACTIONS


@each_row(("expected", "last_epoch"), [(None, -1), (Producer(7, EXHAUSTED_FROM), EXHAUSTED_FROM)])
def test_last_epoch_is_followed_by_a_new_id(expected: Producer | None, last_epoch: int) -> None:
    last = known(TransactionState.EMPTY, producer_epoch=EXHAUSTED_FROM)
    with pytest.raises(ProducerIdNeededError):
        transitions.initialize(last, 1_000, expected, 10)
    after = transitions.initialize(last, 1_000, expected, 10, 8)
    assert (after.producer_id, after.producer_epoch, after.last_producer_epoch) == (8, 0, last_epoch)
    assert after.previous_producer_id == 7


def test_producer_with_the_id_before_may_repeat_its_request() -> None:
    after = known(TransactionState.EMPTY, previous_producer_id=6, producer_epoch=0, last_producer_epoch=EXHAUSTED_FROM)
    repeated = transitions.initialize(after, 1_000, Producer(6, EXHAUSTED_FROM), 10)
    assert (repeated.producer_id, repeated.producer_epoch) == (7, 0)


# AddPartitionsToTxn.


@each_row("state", sorted(ENDED))
def test_first_partition_begins_the_transaction(state: TransactionState) -> None:
    begun = transitions.add(known(state), Producer(7, 4), PARTITIONS, 2, 10)
    assert (begun.state, begun.partitions) == (TransactionState.ONGOING, PARTITIONS)
    assert (begun.start_ms, begun.updated_ms, begun.client_version) == (10, 10, 2)


def test_further_partitions_leave_the_start() -> None:
    ongoing = known(TransactionState.ONGOING)
    assert transitions.add(ongoing, Producer(7, 4), PARTITIONS, 0, 10) is ongoing
    more = transitions.add(ongoing, Producer(7, 4), frozenset((("bills", 1),)), 0, 10)
    assert (more.partitions, more.start_ms) == (PARTITIONS | {("bills", 1)}, 500)


@each_row("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_nothing_is_added_to_a_transaction_that_ends(state: TransactionState) -> None:
    for call in (transitions.add, transitions.verify):
        more = (0, 10) if call is transitions.add else ()
        assert code(call, known(state), Producer(7, 4), PARTITIONS, *more) == error_codes.CONCURRENT_TRANSACTIONS


@each_row(
    ("producer", "error_code"),
    [
        (Producer(8, 4), error_codes.INVALID_PRODUCER_ID_MAPPING),
        (Producer(7, 3), error_codes.PRODUCER_FENCED),
        (Producer(7, 5), error_codes.PRODUCER_FENCED),
    ],
)
@each_row("state", STATES)
def test_other_producers_add_and_verify_nothing(state: TransactionState, producer: Producer, error_code: int) -> None:
    assert code(transitions.add, known(state), producer, PARTITIONS, 0, 10) == error_code
    assert code(transitions.verify, known(state), producer, PARTITIONS) == error_code


def test_partitions_are_verified_one_by_one() -> None:
    other = ("bills", 1)
    errors = transitions.verify(known(TransactionState.ONGOING), Producer(7, 4), PARTITIONS | {other})
    assert errors == {ORDERS: error_codes.NONE, other: error_codes.TRANSACTION_ABORTABLE}


# EndTxn.

DONE, BEGINS = "done", "begins"
CONCURRENT, INVALID, FENCED = "CONCURRENT_TRANSACTIONS", "INVALID_TXN_STATE", "PRODUCER_FENCED"


def outcome(state: Transaction, producer: Producer, version: int, *, is_commit: bool) -> str:
    try:
        ended = transitions.end(state, EndOfTransaction(producer, version, is_commit), 10)
    except ApiError as refused:
        return error_codes.name(refused.error_code)
    return DONE if ended is state else BEGINS


@each_row(
    ("state", "abort", "commit"),
    [
        (TransactionState.EMPTY, INVALID, INVALID),
        (TransactionState.ONGOING, BEGINS, BEGINS),
        (TransactionState.PREPARE_COMMIT, INVALID, CONCURRENT),
        (TransactionState.PREPARE_ABORT, CONCURRENT, INVALID),
        (TransactionState.COMPLETE_COMMIT, INVALID, DONE),
        (TransactionState.COMPLETE_ABORT, DONE, INVALID),
    ],
)
def test_end_without_an_epoch_per_transaction(state: TransactionState, abort: str, commit: str) -> None:
    for is_commit, expected in ((False, abort), (True, commit)):
        assert outcome(known(state), Producer(7, 4), 0, is_commit=is_commit) == expected
        for epoch in (3, 5):
            assert outcome(known(state), Producer(7, epoch), 0, is_commit=is_commit) == FENCED
        assert outcome(known(state), Producer(8, 4), 0, is_commit=is_commit) == "INVALID_PRODUCER_ID_MAPPING"


@each_row(
    ("state", "current", "repeated"),
    [
        # Kafka's comment at TransactionCoordinator.endTransaction; each (abort, commit).
        (TransactionState.EMPTY, (BEGINS, INVALID), (FENCED, FENCED)),
        (TransactionState.ONGOING, (BEGINS, BEGINS), (FENCED, FENCED)),
        (TransactionState.PREPARE_COMMIT, (FENCED, FENCED), (INVALID, CONCURRENT)),
        (TransactionState.PREPARE_ABORT, (FENCED, FENCED), (CONCURRENT, INVALID)),
        (TransactionState.COMPLETE_COMMIT, (BEGINS, INVALID), (INVALID, DONE)),
        (TransactionState.COMPLETE_ABORT, (BEGINS, INVALID), (DONE, INVALID)),
    ],
)
def test_end_with_an_epoch_per_transaction(
    state: TransactionState, current: tuple[str, str], repeated: tuple[str, str]
) -> None:
    for is_commit in (False, True):
        assert outcome(known(state), Producer(7, 4), 2, is_commit=is_commit) == current[is_commit]
        assert outcome(known(state), Producer(7, 3), 2, is_commit=is_commit) == repeated[is_commit]
        for epoch in (2, 5):
            assert outcome(known(state), Producer(7, epoch), 2, is_commit=is_commit) == FENCED
        assert outcome(known(state), Producer(8, 4), 2, is_commit=is_commit) == "INVALID_PRODUCER_ID_MAPPING"


@each_row("version", [0, 2])
@each_row("state", STATES)
def test_nothing_but_the_producer_is_checked_while_a_change_is_pending(state: TransactionState, version: int) -> None:
    found = {
        code(transitions.end, known(state), EndOfTransaction(Producer(7, epoch), version, True), 10, is_pending=True)
        for epoch in (2, 3, 4)
    }
    assert found == {error_codes.CONCURRENT_TRANSACTIONS, error_codes.PRODUCER_FENCED}


@each_row(("version", "epochs"), [(0, (4, 3)), (2, (5, 4))])
@each_row("is_commit", [True, False])
def test_ended_transaction_keeps_its_partitions_until_the_markers_are_written(
    version: int, epochs: tuple[int, int], is_commit: bool
) -> None:
    ended = transitions.end(known(TransactionState.ONGOING), EndOfTransaction(Producer(7, 4), version, is_commit), 10)
    assert ended.state.title == ("PrepareCommit" if is_commit else "PrepareAbort")
    assert (ended.producer_epoch, ended.last_producer_epoch) == epochs
    assert (ended.partitions, ended.start_ms, ended.updated_ms) == (PARTITIONS, 500, 10)
    completed = transitions.complete(ended, 20)
    assert completed.state.title == ("CompleteCommit" if is_commit else "CompleteAbort")
    assert (completed.partitions, completed.start_ms, completed.updated_ms) == (frozenset(), 500, 20)
    assert (completed.producer_epoch, completed.last_producer_epoch) == epochs


def test_abort_without_partitions_starts_now() -> None:
    assert transitions.end(known(TransactionState.EMPTY), EndOfTransaction(Producer(7, 4), 2, False), 10).start_ms == 10


def test_last_epoch_of_a_transaction_is_followed_by_a_new_id_once_the_markers_are_written() -> None:
    last = known(TransactionState.ONGOING, producer_epoch=EXHAUSTED_FROM)
    producer = Producer(7, EXHAUSTED_FROM)
    with pytest.raises(ProducerIdNeededError):
        transitions.end(last, EndOfTransaction(producer, 2, True), 10)
    ended = transitions.end(last, EndOfTransaction(producer, 2, True), 10, new_producer_id=8)
    assert (ended.producer_id, ended.producer_epoch, ended.next_producer_id) == (7, EPOCH_MAX, 8)
    completed = transitions.complete(ended, 20)
    assert (completed.producer_id, completed.producer_epoch, completed.next_producer_id) == (8, 0, -1)
    assert outcome(completed, producer, 2, is_commit=True) == DONE
    assert outcome(completed, producer, 2, is_commit=False) == INVALID


@each_row(("version", "epochs"), [(0, (5, -1)), (2, (5, 4))])
def test_fenced_transaction_is_aborted_in_the_next_epoch(version: int, epochs: tuple[int, int]) -> None:
    fenced = transitions.fence(known(TransactionState.ONGOING), version, 10)
    assert (fenced.state, fenced.partitions) == (TransactionState.PREPARE_ABORT, PARTITIONS)
    assert (fenced.producer_epoch, fenced.last_producer_epoch) == epochs


@each_row("version", [0, 2])
def test_epoch_never_overflows(version: int) -> None:
    broken = known(TransactionState.ONGOING, producer_epoch=EPOCH_MAX)
    assert transitions.fence(broken, version, 10).producer_epoch == EPOCH_MAX

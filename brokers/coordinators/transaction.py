"""The transaction of one transactional id as a value, and its transitions as pure functions (KIP-98, KIP-360, KIP-890).

Mirrors Kafka's TransactionMetadata and the decisions of TransactionCoordinator. A transition is the next value, which
takes effect once it is replicated, or raises ApiError. There is no PrepareEpochFence here: that state of Kafka's is
never written, and `fenced` goes straight to PrepareAbort.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final, NamedTuple

from mockraft.brokers.partitions.partition import NO_EPOCH
from mockraft.brokers.partitions.producers import EPOCH_MAX
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError

NO_PRODUCER_ID: Final = -1
NO_TIME: Final = -1
EXHAUSTED_FROM: Final = EPOCH_MAX - 1
"""The last epoch that a producer may have: the coordinator can still fence it."""
EPOCH_PER_TRANSACTION_FROM: Final = 2
"""The transaction.version from which each transaction has an epoch of its own (KIP-890)."""

TopicPartition = tuple[str, int]


class TransactionState(IntEnum):
    """Kafka's TransactionState; the numbers are those of the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def title(self) -> str:
        """The name in DescribeTransactions and ListTransactions."""
        return self.name.title().replace("_", "")


ENDED: Final = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""The states without a transaction: a new one may begin."""


class ProducerIdNeededError(Exception):
    """The epochs of the producer id are used up: the transition needs a new producer id."""


class Transaction(NamedTuple):
    """The latest transaction of a transactional id. Times are ms since the epoch.

    `last_producer_epoch` is the one before; InitProducerId may be repeated with it. `next_producer_id` follows once the
    markers of the last epoch are written. `client_version` is the transaction.version by which the client acts.
    """

    producer_id: int
    timeout_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    client_version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """True if the producer id has no further epoch for a producer."""
        return self.producer_epoch >= EXHAUSTED_FROM


class Producer(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


# InitProducerId.


def initialize(
    known: Transaction, timeout_ms: int, expected: Producer | None, now_ms: int, new_producer_id: int | None = None
) -> Transaction:
    """Give the producer its next epoch, or a new id after the last one; `expected` is what it has (KIP-360).

    ApiError: PRODUCER_FENCED, CONCURRENT_TRANSACTIONS. ProducerIdNeededError without `new_producer_id`. An ongoing
    transaction must be aborted first (`fence`).
    """
    check_successor(known, expected)
    if known.state not in ENDED:
        raise ApiError(error_codes.CONCURRENT_TRANSACTIONS)
    fresh = known._replace(
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        start_ms=NO_TIME,
        updated_ms=now_ms,
    )
    if known.is_exhausted and (expected is None or expected.epoch == known.producer_epoch):
        if new_producer_id is None:
            raise ProducerIdNeededError
        last_epoch = NO_EPOCH if expected is None else known.producer_epoch
        return fresh._replace(producer_id=new_producer_id, producer_epoch=0, last_producer_epoch=last_epoch)
    if expected is None:
        return fresh._replace(producer_epoch=known.producer_epoch + 1, last_producer_epoch=NO_EPOCH)
    if known.producer_epoch in (NO_EPOCH, expected.epoch):
        return fresh._replace(producer_epoch=known.producer_epoch + 1, last_producer_epoch=known.producer_epoch)
    if expected.epoch == known.last_producer_epoch:
        # A repeated request: its response was lost.
        return fresh
    raise ApiError(error_codes.PRODUCER_FENCED)


def check_successor(known: Transaction, expected: Producer | None) -> None:
    """Raise ApiError (PRODUCER_FENCED) for a producer that may not ask for the next epoch; its own is checked later."""
    if expected is None or known.producer_epoch == NO_EPOCH or expected.producer_id == known.producer_id:
        return
    if expected.producer_id != known.previous_producer_id or expected.epoch < EXHAUSTED_FROM:
        raise ApiError(error_codes.PRODUCER_FENCED)


# AddPartitionsToTxn.


def add(
    known: Transaction, producer: Producer, partitions: frozenset[TopicPartition], version: int, now_ms: int
) -> Transaction:
    """Add partitions to the transaction, which begins with the first; return the same value if it has them all."""
    check_producer(known, producer)
    if known.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        raise ApiError(error_codes.CONCURRENT_TRANSACTIONS)
    is_ongoing = known.state is TransactionState.ONGOING
    if is_ongoing and partitions <= known.partitions:
        return known
    return known._replace(
        previous_producer_id=known.producer_id,
        state=TransactionState.ONGOING,
        partitions=known.partitions | partitions,
        start_ms=known.start_ms if is_ongoing else now_ms,
        updated_ms=now_ms,
        client_version=version,
    )


def verify(known: Transaction, producer: Producer, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the error by partition: NONE for those in the transaction (KIP-890). ApiError for the whole."""
    check_producer(known, producer)
    if known.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        raise ApiError(error_codes.CONCURRENT_TRANSACTIONS)
    missing = error_codes.TRANSACTION_ABORTABLE
    return {each: error_codes.NONE if each in known.partitions else missing for each in partitions}


def check_producer(known: Transaction, producer: Producer) -> None:
    """Raise ApiError for another producer: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED."""
    if producer.producer_id != known.producer_id:
        raise ApiError(error_codes.INVALID_PRODUCER_ID_MAPPING)
    if producer.epoch != known.producer_epoch:
        raise ApiError(error_codes.PRODUCER_FENCED)


# EndTxn.


class Ending(Enum):
    """The outcome of EndTxn in one state."""

    BEGINS = "the end is written, then the markers"
    DONE = "nothing to do: this is a repeated request"
    CONCURRENT = error_codes.CONCURRENT_TRANSACTIONS
    INVALID = error_codes.INVALID_TXN_STATE
    FENCED = error_codes.PRODUCER_FENCED


_B, _D, _C, _I, _F = Ending.BEGINS, Ending.DONE, Ending.CONCURRENT, Ending.INVALID, Ending.FENCED

ENDINGS: Final = {
    # state: version 0, version 2 in the transaction's epoch, and in the one before (a repeated request);
    # each (abort, commit)
    TransactionState.EMPTY: ((_I, _I), (_B, _I), (_F, _F)),
    TransactionState.ONGOING: ((_B, _B), (_B, _B), (_F, _F)),
    TransactionState.PREPARE_COMMIT: ((_I, _C), (_F, _F), (_I, _C)),
    TransactionState.PREPARE_ABORT: ((_C, _I), (_F, _F), (_C, _I)),
    TransactionState.COMPLETE_COMMIT: ((_I, _D), (_B, _I), (_I, _D)),
    TransactionState.COMPLETE_ABORT: ((_D, _I), (_B, _I), (_D, _I)),
}
"""The table of TransactionCoordinator.endTransaction."""


class EndOfTransaction(NamedTuple):
    """A request to commit or abort: EndTxn and its version."""

    producer: Producer
    version: int
    is_commit: bool


def end(
    known: Transaction,
    request: EndOfTransaction,
    now_ms: int,
    *,
    is_pending: bool = False,
    new_producer_id: int | None = None,
) -> Transaction:
    """Commit or abort; return the same value for a repeated request. ApiError, ProducerIdNeededError.

    While a change is pending, or the markers are written, nothing but the producer is checked.
    """
    producer, version, is_commit = request
    has_epochs = version >= EPOCH_PER_TRANSACTION_FROM
    outcome = _ending(known, producer, has_epochs=has_epochs, is_commit=is_commit)
    if is_pending and outcome is not Ending.FENCED:
        outcome = Ending.CONCURRENT
    if outcome is Ending.DONE:
        return known
    if outcome is not Ending.BEGINS:
        raise ApiError(outcome.value)
    next_id = NO_PRODUCER_ID
    if has_epochs and known.is_exhausted:
        if new_producer_id is None:
            raise ProducerIdNeededError
        next_id = new_producer_id
    return _ended(known, version, now_ms, is_commit=is_commit)._replace(next_producer_id=next_id)


def _ending(known: Transaction, producer: Producer, *, has_epochs: bool, is_commit: bool) -> Ending:
    of_version_0, current, repeated = ENDINGS[known.state]
    is_own = producer.producer_id == known.producer_id
    if not has_epochs:
        check_producer(known, producer)
        return of_version_0[is_commit]
    # The response with the new producer id was lost.
    overflowed = (
        producer == (known.previous_producer_id, EXHAUSTED_FROM)
        and known.producer_epoch == 0
        and known.state in ENDED - {TransactionState.EMPTY}
    )
    if not is_own and not overflowed:
        raise ApiError(error_codes.INVALID_PRODUCER_ID_MAPPING)
    if overflowed or producer.epoch + 1 == known.producer_epoch:
        return repeated[is_commit]
    return current[is_commit] if producer.epoch == known.producer_epoch else Ending.FENCED


def fence(known: Transaction, version: int, now_ms: int) -> Transaction:
    """Abort an ongoing transaction from here: it took too long, or its producer began anew. Fences the producer."""
    if version >= EPOCH_PER_TRANSACTION_FROM:
        return _ended(known, version, now_ms, is_commit=False)
    epoch = min(known.producer_epoch + 1, EPOCH_MAX)
    fenced = known._replace(producer_epoch=epoch, last_producer_epoch=NO_EPOCH)
    return _ended(fenced, version, now_ms, is_commit=False)


def _ended(known: Transaction, version: int, now_ms: int, *, is_commit: bool) -> Transaction:
    is_empty = known.state is not TransactionState.ONGOING
    ended = known._replace(
        previous_producer_id=known.producer_id,
        state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
        start_ms=now_ms if is_empty else known.start_ms,
        updated_ms=now_ms,
        client_version=version if version >= EPOCH_PER_TRANSACTION_FROM else 0,
    )
    if version < EPOCH_PER_TRANSACTION_FROM:
        return ended
    epoch = min(known.producer_epoch + 1, EPOCH_MAX)
    return ended._replace(producer_epoch=epoch, last_producer_epoch=known.producer_epoch)


def complete(known: Transaction, now_ms: int) -> Transaction:
    """End a transaction whose markers are written."""
    is_commit = known.state is TransactionState.PREPARE_COMMIT
    completed = known._replace(
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        state=TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
    if known.next_producer_id == NO_PRODUCER_ID:
        return completed
    return completed._replace(producer_id=known.next_producer_id, producer_epoch=0)

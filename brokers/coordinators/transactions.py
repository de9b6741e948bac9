"""The transaction coordinator (Kafka's TransactionCoordinator and TransactionStateManager; KIP-98, KIP-360, KIP-890).

Each change is a transition of `transaction`, written to the id's partition of `__transaction_state`; it takes effect
once it is replicated. Until then, and until the markers of an ended transaction are written, other requests for the id
are refused with CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from mockraft.brokers.config import REQUEST_TIMEOUT_MS
from mockraft.brokers.coordinators import transaction as transitions
from mockraft.brokers.coordinators.markers import Markers
from mockraft.brokers.coordinators.state_log import StateLog, StateTopic, Written, to_client
from mockraft.brokers.coordinators.state_records import (
    Record,
    encode,
    read_records,
    read_transaction,
    transaction_record,
)
from mockraft.brokers.coordinators.transaction import (
    EndOfTransaction,
    Producer,
    ProducerIdNeededError,
    TopicPartition,
    Transaction,
    TransactionState,
)
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.core import Core
from mockraft.brokers.partitions.producer_ids import ProducerIds
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.record_batch import BatchHeader
from mockraft.wire.topic_names import TRANSACTION_STATE

MAX_TIMEOUT_MS: Final = ("transaction.max.timeout.ms", 900_000)
ABORT_INTERVAL_MS: Final = ("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000)
EXPIRATION_MS: Final = ("transactional.id.expiration.ms", 604_800_000)
EXPIRATION_INTERVAL_MS: Final = ("transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000)
PARTITION_COUNT: Final = ("transaction.state.log.num.partitions", 50)
COMPLETION_RETRY_MS: Final = 100
TRANSACTION_VERSION: Final = "transaction.version"
_ENDING: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    """A transactional id; `is_pending` while a change of it is not replicated."""

    current: Transaction
    is_pending: bool = False


class TransactionCoordinator:
    """The transactions of this broker's partitions of `__transaction_state`, by transactional id."""

    def __init__(self, core: Core, replicas: Replicas, producer_ids: ProducerIds, changed: Callable[[], None]) -> None:
        assert core.image is not None
        self._core = core
        self._image = core.image
        self._producer_ids = producer_ids
        self._entries: dict[int, dict[str, _Entry]] = {}
        timeout_ms = self._setting(REQUEST_TIMEOUT_MS)
        topic = StateTopic(TRANSACTION_STATE, self._setting(PARTITION_COUNT), timeout_ms)
        self.log = StateLog(core, replicas, topic, self, changed)
        self.markers = Markers(core, replicas, timeout_ms, self._marked, self._complete)
        self._changed = changed

    def start(self) -> None:
        """Start the periodic searches for transactions that take too long, and for forgotten ids."""
        kernel = self._core.kernel
        kernel.after("transaction-abort", self._setting(ABORT_INTERVAL_MS), self._abort_timed_out)
        kernel.after("transactionalId-expiration", self._setting(EXPIRATION_INTERVAL_MS), self._expire)

    # Requests.

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Waiting[Producer]:
        """Return the producer's id and epoch, and fence earlier producers of the transactional id. Raises ApiError."""
        if not transactional_id:
            raise ApiError(error_codes.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._setting(MAX_TIMEOUT_MS):
            raise ApiError(error_codes.INVALID_TRANSACTION_TIMEOUT)
        waiting: Waiting[Producer] = Waiting()
        self._initialize(transactional_id, timeout_ms, expected, waiting, None)
        return waiting

    def _initialize(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        waiting: Waiting[Producer],
        new_id: int | None,
    ) -> None:
        entries = self._entries[self.log.find(transactional_id)]
        again = functools.partial(self._initialize, transactional_id, timeout_ms, expected, waiting)
        entry = entries.get(transactional_id)
        if entry is None:
            if new_id is None:
                self._with_producer_id(again, waiting)
                return
            entry = entries[transactional_id] = _Entry(Transaction(new_id, timeout_ms, updated_ms=self._now_ms()))
        if entry.is_pending:
            raise ApiError(error_codes.CONCURRENT_TRANSACTIONS)
        if entry.current.state is TransactionState.ONGOING:
            transitions.check_successor(entry.current, expected)
            self._fence(transactional_id, entry, waiting.refuse)
            return
        try:
            target = transitions.initialize(entry.current, timeout_ms, expected, self._now_ms(), new_id)
        except ProducerIdNeededError:
            self._with_producer_id(again, waiting)
            return
        producer = Producer(target.producer_id, target.producer_epoch)
        self._write(transactional_id, entry, target, functools.partial(waiting.settle, producer))

    def add(
        self, transactional_id: str, producer: Producer, partitions: frozenset[TopicPartition], version: int
    ) -> Waiting[Transaction]:
        """Add partitions to the transaction, which begins with the first. Raises ApiError."""
        entry = self._entry(transactional_id)
        transitions.check_producer(entry.current, producer)
        if entry.is_pending:
            raise ApiError(error_codes.CONCURRENT_TRANSACTIONS)
        target = transitions.add(entry.current, producer, partitions, version, self._now_ms())
        return self._moved(transactional_id, entry, target)

    def verify(
        self, transactional_id: str, producer: Producer, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the error by partition: NONE for those in the transaction. Raises ApiError for the whole."""
        return transitions.verify(self._entry(transactional_id).current, producer, partitions)

    def end(self, transactional_id: str, producer: Producer, version: int, *, is_commit: bool) -> Waiting[Transaction]:
        """Commit or abort; the result comes before the markers are written. Raises ApiError."""
        waiting: Waiting[Transaction] = Waiting()
        self._end(transactional_id, EndOfTransaction(producer, version, is_commit), waiting, None)
        return waiting

    def _end(
        self, transactional_id: str, request: EndOfTransaction, waiting: Waiting[Transaction], new_id: int | None
    ) -> None:
        entry = self._entry(transactional_id)
        try:
            target = transitions.end(
                entry.current, request, self._now_ms(), is_pending=entry.is_pending, new_producer_id=new_id
            )
        except ProducerIdNeededError:
            again = functools.partial(self._end, transactional_id, request, waiting)
            self._with_producer_id(again, waiting)
            return
        self._moved(transactional_id, entry, target, waiting)

    def find(self, transactional_id: str) -> Transaction | None:
        """Return the latest transaction of an id; None for an unknown id. Raises ApiError."""
        entry = self._entries[self.log.find(transactional_id)].get(transactional_id)
        return None if entry is None else entry.current

    def __iter__(self) -> Iterator[tuple[str, Transaction]]:
        for entries in self._entries.values():
            yield from ((transactional_id, entry.current) for transactional_id, entry in entries.items())

    # The state of the log.

    def replay(self, index: int, header: BatchHeader, batch: bytes) -> bool:
        """Apply the records of a batch; return False if some are not understood."""
        if header.is_control:
            return True
        entries = self._entries.setdefault(index, {})
        read, is_understood = read_records(header, batch, read_transaction)
        for transactional_id, found in read:
            if found is not None:
                entries[transactional_id] = _Entry(found)
            else:
                entries.pop(transactional_id, None)
        return is_understood

    def loaded(self, index: int) -> None:
        """Coordinate, and write the markers of transactions that have ended."""
        for transactional_id, entry in self._entries.setdefault(index, {}).items():
            if entry.current.state in _ENDING:
                self._mark(index, transactional_id, entry)

    def unloaded(self, index: int) -> None:
        """Forget the partition's transactions."""
        for transactional_id in self._entries.pop(index, {}):
            self.markers.cancel(transactional_id)

    def records(self, index: int) -> list[Record]:
        """Return the latest transactions of the partition as records."""
        entries, version = self._entries[index], self._version()
        return [transaction_record(name, entry.current, version) for name, entry in entries.items()]

    # Changes.

    def _moved(
        self, transactional_id: str, entry: _Entry, target: Transaction, waiting: Waiting[Transaction] | None = None
    ) -> Waiting[Transaction]:
        """Write a transition, if it is one."""
        waiting = waiting or Waiting()
        if target is entry.current:
            waiting.resolve(target)
        else:
            self._write(transactional_id, entry, target, functools.partial(waiting.settle, target))
        return waiting

    def _write(self, transactional_id: str, entry: _Entry, target: Transaction, written: Callable[[int], None]) -> None:
        """Write the next state, the current one once it is replicated; the markers of an ended transaction follow."""
        index = self.log.partition_of(transactional_id)
        entry.is_pending = True

        def replicated(code: int) -> None:
            entry.is_pending = False
            if code == error_codes.NONE:
                entry.current = target
                if target.state in _ENDING:
                    self._mark(index, transactional_id, entry)
            written(code)

        self._append(index, transactional_id, target, to_client(replicated))

    def _append(self, index: int, transactional_id: str, target: Transaction | None, written: Written) -> None:
        now_ms = self._now_ms()
        batch = encode([transaction_record(transactional_id, target, self._version())], now_ms)
        self.log.append(index, lambda hosted: hosted.append_state(batch, now_ms), written)

    def _mark(self, index: int, transactional_id: str, entry: _Entry) -> None:
        """Write the markers; meanwhile the completion is pending, as in Kafka."""
        entry.is_pending = True
        self.markers.send(transactional_id, entry.current, self.log.epoch(index))

    def _marked(self, transactional_id: str, partition: TopicPartition) -> None:
        """Note a written marker: DescribeTransactions shows the partitions that are left."""
        entry = self._known(transactional_id)
        if entry is not None:
            entry.current = entry.current._replace(partitions=entry.current.partitions - {partition})

    def _complete(self, transactional_id: str) -> None:
        """Complete a transaction that has all its markers; try again while the log takes no append."""
        entry = self._known(transactional_id)
        if entry is None or entry.current.state not in _ENDING:
            return

        def written(code: int) -> None:
            if code == error_codes.COORDINATOR_NOT_AVAILABLE:
                entry.is_pending = True
                again = functools.partial(self._complete, transactional_id)
                self._core.kernel.after(("complete", transactional_id), COMPLETION_RETRY_MS, again)

        self._write(transactional_id, entry, transitions.complete(entry.current, self._now_ms()), written)

    def _fence(self, transactional_id: str, entry: _Entry, refuse: Callable[[int], None]) -> None:
        """Abort an ongoing transaction; `refuse` is called with the error that the next producer gets meanwhile."""
        target = transitions.fence(entry.current, self._version(), self._now_ms())
        self._write(transactional_id, entry, target, lambda code: refuse(code or error_codes.CONCURRENT_TRANSACTIONS))

    def _abort_timed_out(self) -> None:
        now_ms = self._now_ms()
        for entries in self._entries.values():
            for transactional_id, entry in entries.items():
                known = entry.current
                is_late = known.state is TransactionState.ONGOING and known.start_ms + known.timeout_ms < now_ms
                if is_late and not entry.is_pending:
                    _log.info("the transaction of %s is aborted after %d ms", transactional_id, known.timeout_ms)
                    self._fence(transactional_id, entry, lambda _code: None)
        self._core.kernel.after("transaction-abort", self._setting(ABORT_INTERVAL_MS), self._abort_timed_out)

    def _expire(self) -> None:
        """Remove the ids that were not used for `transactional.id.expiration.ms`."""
        now_ms = self._now_ms()
        since_ms = now_ms - self._setting(EXPIRATION_MS)
        for index, entries in self._entries.items():
            for transactional_id, entry in entries.items():
                known = entry.current
                if not entry.is_pending and known.state in transitions.ENDED and known.updated_ms <= since_ms:
                    entry.is_pending = True
                    expired = functools.partial(self._expired, entries, transactional_id)
                    self._append(index, transactional_id, None, expired)
        self._core.kernel.after("transactionalId-expiration", self._setting(EXPIRATION_INTERVAL_MS), self._expire)

    def _expired(self, entries: dict[str, _Entry], transactional_id: str, code: int) -> None:
        if code == error_codes.NONE:
            del entries[transactional_id]
        else:
            entries[transactional_id].is_pending = False

    # Internals.

    def _with_producer_id(
        self, again: Callable[[int], None], waiting: Waiting[Producer] | Waiting[Transaction]
    ) -> None:
        """Call `again` with an unused producer id; without one, or when it raises ApiError, refuse the request."""

        def came(producer_id: int | None) -> None:
            try:
                if producer_id is None:
                    raise ApiError(error_codes.COORDINATOR_LOAD_IN_PROGRESS)
                again(producer_id)
            except ApiError as refused:
                waiting.refuse(refused.error_code)
            self._changed()

        self._producer_ids.next_id(came)

    def _entry(self, transactional_id: str) -> _Entry:
        if not transactional_id:
            raise ApiError(error_codes.INVALID_REQUEST)
        entry = self._entries[self.log.find(transactional_id)].get(transactional_id)
        if entry is None:
            raise ApiError(error_codes.INVALID_PRODUCER_ID_MAPPING)
        return entry

    def _known(self, transactional_id: str) -> _Entry | None:
        return self._entries.get(self.log.partition_of(transactional_id), {}).get(transactional_id)

    def _version(self) -> int:
        """The cluster's transaction.version."""
        return self._image.features.get(TRANSACTION_VERSION, 0)

    def _setting(self, setting: tuple[str, int]) -> int:
        return int(self._core.config.properties.get(*setting))

    def _now_ms(self) -> int:
        return int(self._core.kernel.now_ms)

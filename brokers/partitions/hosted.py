"""A replica on this broker: its state, its log, and the requests that wait for either (Kafka's purgatories).

Methods return at once; callers wait for what takes time (a slow disk, other brokers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.batch_headers import read_header, read_headers
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import read_produced
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.log_dirs.transaction_markers import Marker, encode, read_marker
from mockraft.brokers.partitions.partition import NO_EPOCH, Assignment, CommittedIsr, IsrChange, Partition
from mockraft.brokers.partitions.producers import Ended, Producers
from mockraft.brokers.partitions.settings import TopicSettings
from mockraft.wire import error_codes
from mockraft.wire.record_batch import HEADER_BYTES

REPLAYED_OFFSETS = 100_000
"""Number of offsets at the end of a log from which the state of producers is read: batch by batch, so that a log of
millions of small batches would stop the broker for seconds. Kafka reads its snapshots of this state instead.
"""


class Appended(NamedTuple):
    """The result of an append; acks=all waits for `end_offset`. A time of -1 means that the producer's own counts.

    For a batch that was written before, the time is that of its records, as in Kafka.
    """

    base_offset: int
    end_offset: int
    log_start_offset: int
    log_append_time_ms: int = -1


class FollowerFetch(NamedTuple):
    """A fetching follower; the epoch is its broker epoch, -1 when the request has none."""

    replica_id: int
    broker_epoch: int
    log_start_offset: int


class Read(NamedTuple):
    """The result of a read; `diverging` is (epoch, end offset) where the reader's log diverges from this one.

    `aborted` are the aborted transactions that a reader of committed records must skip.
    """

    records: bytes
    high_watermark: int
    log_start_offset: int
    last_stable_offset: int
    diverging: tuple[int, int] | None = None
    aborted: Sequence[Ended] = ()


class PartitionHost(NamedTuple):
    """Functions of the broker that hosts a replica.

    `find_log` returns its log, None while its directory is offline; never keep the log. `propose` is called with each
    ISR change that is to be sent, `changed` with each change that a parked request may wait for.
    """

    find_log: Callable[[ReplicaKey], ReplicaLog | None]
    propose: Callable[[HostedPartition, IsrChange], None]
    changed: Callable[[], None]


class ReadBy(NamedTuple):
    """The rules of a reader: a follower, or a client that needs the leader or not."""

    only_leader: bool = True
    read_committed: bool = False
    follower: FollowerFetch | None = None


CLIENT: Final = ReadBy()


class HostedPartition:
    """One replica. `settings` are the topic's current ones.

    `changes` counts the changes that a parked request may wait for.
    """

    def __init__(
        self, key: ReplicaKey, topic: str, state: Partition, settings: Callable[[], TopicSettings], host: PartitionHost
    ) -> None:
        self.key = key
        self.topic = topic
        self.state = state
        self.changes = 0
        self._settings = settings
        self._find_log, self._propose, self._changed = host
        self._proposed: IsrChange | None = None
        self._producers: Producers | None = None

    @property
    def name(self) -> str:
        """`topic-partition`, as Kafka writes it."""
        return f"{self.topic}-{self.key[1]}"

    @property
    def log(self) -> ReplicaLog:
        """Return the log. Raises LogError (KAFKA_STORAGE_ERROR) while there is none."""
        log = self._find_log(self.key)
        if log is None:
            raise LogError(error_codes.KAFKA_STORAGE_ERROR, f"Partition {self.name} is in an offline log directory")
        return log

    def wake(self) -> None:
        """Let every parked request check its condition again."""
        self.changes += 1
        self._changed()

    # Changes of the metadata log.

    def lead(self, assignment: Assignment, now_ms: int) -> None:
        """Become leader, or apply a change as leader. LogError when the disk fails."""
        log, state = self.log, self.state
        if assignment.leader_epoch > state.leader_epoch and assignment.partition_epoch >= state.partition_epoch:
            log.assign_epoch(assignment.leader_epoch)
        if not state.lead(assignment, log.end_offset, log.high_watermark, now_ms):
            return
        self._advanced(log)

    def follow(self, assignment: Assignment) -> bool:
        """Become follower, or apply a change as follower; return True when fetching has to restart."""
        restarts = self.state.follow(assignment)
        self.wake()
        return restarts

    # Requests of clients and other brokers.

    def append(self, records: bytes, acks: int, now_ms: int, *, is_verified: bool = False) -> Appended:
        """Append a producer's batch as the leader. Raises LogError when it is refused; nothing is written then.

        The first batch of a transaction must be `is_verified`: the coordinator has this partition in the transaction
        (KIP-890).
        """
        log = self.log
        self._refuse(self.state.check_append(acks))
        headers = read_produced(records)
        if len(headers) != 1:
            raise LogError(error_codes.INVALID_RECORD, f"exactly one record batch is expected, not {len(headers)}")
        header = headers[0]
        written = self.producers.check(header, is_verified=is_verified)
        if written is not None:
            end_offset = written[0] + header.last_offset - header.base_offset + 1
            return Appended(written[0], end_offset, log.start_offset, written[1])
        log.config = self._settings().log
        base_offset, end_offset = log.append_as_leader(records, self.state.leader_epoch, now_ms)
        self.producers.written(header._replace(base_offset=base_offset, last_offset=end_offset - 1))
        self.state.appended(end_offset, now_ms)
        self._advanced(log)
        append_time_ms = now_ms if log.config.is_log_append_time else -1
        return Appended(base_offset, end_offset, log.start_offset, append_time_ms)

    def append_state(self, records: bytes, now_ms: int) -> int:
        """Append a coordinator's batch as the leader; return the offset that must be replicated. Raises LogError."""
        log, producers = self.log, self.producers
        self._refuse(self.state.check_append(-1))
        (header,) = read_headers(records, check_crc=False)
        producers.check_epoch(header)
        base_offset, end_offset = log.append_state(records, self.state.leader_epoch)
        written = header._replace(base_offset=base_offset, last_offset=end_offset - 1)
        producers.written(written, read_marker(header, records))
        self.state.appended(end_offset, now_ms)
        self._advanced(log)
        return end_offset

    def append_marker(self, marker: Marker, now_ms: int) -> int:
        """Append a transaction's marker as `append_state` does. Raises LogError."""
        self._refuse(self.state.check_append(-1))
        self.producers.check_marker(marker)
        return self.append_state(encode(marker, now_ms), now_ms)

    @property
    def producers(self) -> Producers:
        """The state of producers: read from the log when it is first needed, then kept up to date. Raises LogError."""
        if self._producers is None:
            log, producers = self.log, Producers()
            log.replay(
                log.end_offset - REPLAYED_OFFSETS,
                lambda header, batch: producers.written(header, read_marker(header, batch)),
            )
            self._producers = producers
        return self._producers

    @property
    def last_stable_offset(self) -> int:
        """The end of what readers of committed records may see. Raises LogError."""
        log = self.log
        # Retention, DeleteRecords and the leader raise the start of the log.
        self.producers.forget_before(log.start_offset)
        unstable = self.producers.first_unstable_offset(log.high_watermark)
        return min(max(unstable, log.start_offset), log.high_watermark)

    def check_epoch(self, claimed_epoch: int, *, only_leader: bool) -> None:
        """Raise LogError for a request with another leader epoch, or one that needs the leader on another broker."""
        self._refuse(self.state.check_leader_epoch(claimed_epoch, only_leader=only_leader))

    def read(
        self,
        offset: int,
        bytes_max: int,
        *,
        claimed_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        at_least_one: bool = True,
        by: ReadBy = CLIENT,
    ) -> Read:
        """Return whole batches from `offset` on: all for a follower, replicated ones for others. Raises LogError.

        With `read_committed` those below the last stable offset, and the aborted transactions among them.
        """
        log, state = self.log, self.state
        only_leader, read_committed, follower = by
        self.check_epoch(claimed_epoch, only_leader=only_leader or follower is not None)
        if follower is not None:
            self._refuse(state.check_follower(follower.replica_id, claimed_epoch, follower.broker_epoch))
        high_watermark, start_offset, stable = log.high_watermark, log.start_offset, self.last_stable_offset
        if last_fetched_epoch != NO_EPOCH:
            epoch, end_offset = log.end_of_epoch(last_fetched_epoch)
            if epoch == NO_EPOCH or offset < start_offset:
                raise LogError(error_codes.OFFSET_OUT_OF_RANGE, f"no offset {offset} of epoch {last_fetched_epoch}")
            if epoch < last_fetched_epoch or end_offset < offset:
                return Read(b"", high_watermark, start_offset, stable, (epoch, end_offset))
        up_to = log.end_offset
        if follower is None:
            up_to = stable if read_committed else high_watermark
        records = log.read(offset, bytes_max, up_to, at_least_one=at_least_one)
        aborted = self._aborted(offset, records) if read_committed and follower is None else ()
        return Read(records, high_watermark, start_offset, stable, None, aborted)

    def fetched(self, offset: int, follower: FollowerFetch, now_ms: int) -> None:
        """Record that a follower fetched from `offset`, which was in the log."""
        before = self.state.followers[follower.replica_id].log_start_offset
        self.state.fetched(follower.replica_id, offset, follower.log_start_offset, follower.broker_epoch, now_ms)
        self._advanced(self.log, always_wake=follower.log_start_offset > before)

    def shrink(self, now_ms: int) -> None:
        """Propose an ISR without the lagging followers, if any."""
        if self.state.shrink(now_ms):
            self._submit()

    def delete_before(self, offset: int) -> None:
        """Raise the log start offset up to `offset`, at most the high watermark (DeleteRecords). Raises LogError."""
        self.check_epoch(NO_EPOCH, only_leader=True)
        log = self.log
        if not 0 <= offset <= log.high_watermark:
            raise LogError(error_codes.OFFSET_OUT_OF_RANGE, f"{self.name}: {offset} is not below the high watermark")
        log.advance_start_offset(offset)
        self.wake()

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of the record at an offset, -1 when unknown. Raises LogError."""
        return next((epoch for epoch, start in reversed(self.log.leader_epochs) if start <= offset), NO_EPOCH)

    @property
    def low_watermark(self) -> int:
        """Return the smallest log start offset of the live replicas; DeleteRecords waits for it."""
        return min([self.log.start_offset, *self.state.live_start_offsets()])

    # Follower side.

    def append_fetched(self, records: bytes) -> None:
        """Append fetched records as a follower. Raises LogError."""
        self.log.append_as_follower(records)
        if self._producers is not None:
            for header in read_headers(records, check_crc=False):
                batch = records[header.position : header.end] if header.is_control else b""
                self._producers.written(header, read_marker(header, batch))

    def truncate_to(self, offset: int) -> None:
        """Truncate the log where the leader's differs. Raises LogError."""
        log = self.log
        if offset < log.end_offset:
            self._producers = None
        log.truncate_to(offset)

    def restart_at(self, offset: int) -> None:
        """Delete the log and continue at `offset`, where the leader's starts. Raises LogError."""
        self._producers = None
        self.log.truncate_fully_at(offset)

    # Internals.

    def _aborted(self, offset: int, records: bytes) -> Sequence[Ended]:
        """Return the aborted transactions that have a part in these records (collectAbortedTransactions)."""
        if not records or not self.producers.aborted:
            return ()
        return self.producers.aborted_between(offset, read_headers(records, check_crc=False)[-1].last_offset + 1)

    def committed_or_refused(self, change: IsrChange, answer: CommittedIsr | int, now_ms: int) -> None:
        """Process the result of an ISR change: a CommittedIsr or an error code."""
        if isinstance(answer, int):
            if self.state.refused(change, answer):
                self._propose(self, change)
            return
        self.state.committed(change, answer, now_ms)
        if self._find_log(self.key) is not None:
            self._advanced(self.log)

    def _advanced(self, log: ReplicaLog, *, always_wake: bool = True) -> None:
        """Copy the state's high watermark to the log, send its proposal, wake the waiting requests."""
        moved = self.state.high_watermark > log.high_watermark
        if moved:
            log.high_watermark = self.state.high_watermark
        if moved or always_wake:
            self.wake()
        self._submit()

    def _submit(self) -> None:
        pending = self.state.pending
        if pending is not None and pending is not self._proposed:
            self._proposed = pending
            self._propose(self, pending)

    def _refuse(self, error_code: int) -> None:
        if error_code != error_codes.NONE:
            raise LogError(error_code, f"{self.name}: {error_codes.name(error_code)}")


def whole_batches(records: bytes, epoch_max: int) -> bytes:
    """Return the whole batches at the start of fetched records, up to the first of a later epoch than the leader's.

    A real broker cuts at the end of the bytes. Batches of a newer epoch are ignored: the fetch was answered earlier,
    and the rest may have been truncated since (KAFKA-18723). Raises LogError for invalid batches.
    """
    position = 0
    while len(records) - position >= HEADER_BYTES:
        header = read_header(records, position, check_crc=False)
        if header.end > len(records) or header.leader_epoch > epoch_max:
            break
        position = header.end
    return records[:position]

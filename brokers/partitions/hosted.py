"""A replica that lives on this broker: its state beside its log, and who waits for either (Kafka's purgatories).

Everything is done at once; what takes time (a slow disk, other brokers) is waited for by whoever asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.batch_headers import HEADER_BYTES, read_header, read_headers
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import read_produced
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.partitions.partition import NO_EPOCH, Assignment, CommittedIsr, IsrChange, Partition
from mockraft.brokers.partitions.producers import Producers
from mockraft.brokers.partitions.settings import TopicSettings
from mockraft.wire import error_codes

REPLAYED_OFFSETS = 100_000
"""So far back from its end a log is searched for the batches of idempotent producers."""


class Appended(NamedTuple):
    """Where records went; acks=all waits for `end_offset`. A time of -1 means that the producer's own counts.

    For a batch that was written before the time is that of its records, as in Kafka.
    """

    base_offset: int
    end_offset: int
    log_start_offset: int
    log_append_time_ms: int = -1


class FollowerFetch(NamedTuple):
    """Who fetches as a follower; the epoch is its broker epoch, -1 when it did not say."""

    replica_id: int
    broker_epoch: int
    log_start_offset: int


class Read(NamedTuple):
    """What a fetch found; `diverging` is (epoch, end offset) where the reader's log parts from this one."""

    records: bytes
    high_watermark: int
    log_start_offset: int
    diverging: tuple[int, int] | None = None


class HostedPartition:
    """One replica. `settings` are the topic's as they are now.

    `find_log` gives its log, None while its directory is offline; never keep the log over an await.

    `propose` is called with each ISR change that is to be sent. `waiting` are the events of requests that wait for
    something to happen to this partition: there are as many as requests under way.
    """

    def __init__(
        self,
        key: ReplicaKey,
        topic: str,
        state: Partition,
        settings: Callable[[], TopicSettings],
        find_log: Callable[[ReplicaKey], ReplicaLog | None],
        propose: Callable[[HostedPartition, IsrChange], None],
    ) -> None:
        self.key = key
        self.topic = topic
        self.state = state
        self.producers = Producers()
        self.waiting: set[asyncio.Event] = set()
        self._settings = settings
        self._find_log = find_log
        self._propose = propose
        self._proposed: IsrChange | None = None
        self._is_replayed = False

    @property
    def name(self) -> str:
        """`topic-partition`, as Kafka writes it."""
        return f"{self.topic}-{self.key[1]}"

    @property
    def log(self) -> ReplicaLog:
        """The log. LogError (KAFKA_STORAGE_ERROR) while there is none."""
        log = self._find_log(self.key)
        if log is None:
            raise LogError(error_codes.KAFKA_STORAGE_ERROR, f"Partition {self.name} is in an offline log directory")
        return log

    def wake(self) -> None:
        """Something happened: every request that waits looks again."""
        for event in self.waiting:
            event.set()

    # What the metadata log says.

    def lead(self, assignment: Assignment, now_ms: int) -> None:
        """Become leader, or hear of a change as leader. LogError when the disk fails."""
        log, state = self.log, self.state
        if assignment.leader_epoch > state.leader_epoch and assignment.partition_epoch >= state.partition_epoch:
            log.assign_epoch(assignment.leader_epoch)
        if not state.lead(assignment, log.end_offset, log.high_watermark, now_ms):
            return
        if not self._is_replayed:
            # Once: from now on it hears of every batch, as follower too.
            self.producers = Producers()
            for header in log.batches(max(log.start_offset, log.end_offset - REPLAYED_OFFSETS)):
                self.producers.written(header)
            self._is_replayed = True
        self._advanced(log)

    def follow(self, assignment: Assignment) -> bool:
        """Become follower, or hear of a change as follower; True when fetching starts anew."""
        restarts = self.state.follow(assignment)
        self.wake()
        return restarts

    # What clients and other brokers ask.

    def append(self, records: bytes, acks: int, now_ms: int, wall_clock_ms: int) -> Appended:
        """Append a producer's batch as the leader. LogError says what is refused, and nothing is written then."""
        log = self.log
        self._refuse(self.state.check_append(acks))
        headers = read_produced(records)
        if len(headers) != 1:
            raise LogError(error_codes.INVALID_RECORD, f"exactly one record batch is expected, not {len(headers)}")
        header = headers[0]
        written = self.producers.check(header)
        if written is not None:
            end_offset = written[0] + header.last_offset - header.base_offset + 1
            return Appended(written[0], end_offset, log.start_offset, written[1])
        log.config = self._settings().log
        base_offset, end_offset = log.append_as_leader(records, self.state.leader_epoch, wall_clock_ms)
        self.producers.written(header._replace(base_offset=base_offset, last_offset=end_offset - 1))
        self.state.appended(end_offset, now_ms)
        self._advanced(log)
        append_time_ms = wall_clock_ms if log.config.is_log_append_time else -1
        return Appended(base_offset, end_offset, log.start_offset, append_time_ms)

    def check_epoch(self, claimed_epoch: int, *, only_leader: bool) -> None:
        """LogError for a request that names another leader epoch, or needs the leader and this is none."""
        self._refuse(self.state.check_leader_epoch(claimed_epoch, only_leader=only_leader))

    def read(
        self,
        offset: int,
        bytes_max: int,
        *,
        claimed_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        at_least_one: bool = True,
        only_leader: bool = True,
        follower: FollowerFetch | None = None,
    ) -> Read:
        """Whole batches from `offset` on: all for a follower, what is committed for others. LogError."""
        log, state = self.log, self.state
        self.check_epoch(claimed_epoch, only_leader=only_leader or follower is not None)
        if follower is not None:
            self._refuse(state.check_follower(follower.replica_id, claimed_epoch, follower.broker_epoch))
        high_watermark, start_offset = log.high_watermark, log.start_offset
        if last_fetched_epoch != NO_EPOCH:
            epoch, end_offset = log.end_of_epoch(last_fetched_epoch)
            if epoch == NO_EPOCH or offset < start_offset:
                raise LogError(error_codes.OFFSET_OUT_OF_RANGE, f"no offset {offset} of epoch {last_fetched_epoch}")
            if epoch < last_fetched_epoch or end_offset < offset:
                return Read(b"", high_watermark, start_offset, (epoch, end_offset))
        up_to = log.end_offset if follower is not None else high_watermark
        return Read(log.read(offset, bytes_max, up_to, at_least_one=at_least_one), high_watermark, start_offset)

    def fetched(self, offset: int, follower: FollowerFetch, now_ms: int) -> None:
        """A follower fetched from `offset`, which was in the log."""
        before = self.state.followers[follower.replica_id].log_start_offset
        self.state.fetched(follower.replica_id, offset, follower.log_start_offset, follower.broker_epoch, now_ms)
        self._advanced(self.log, always_wake=follower.log_start_offset > before)

    def shrink(self, now_ms: int) -> None:
        """Propose an ISR without those that lag, if any."""
        if self.state.shrink(now_ms):
            self._submit()

    def delete_before(self, offset: int) -> None:
        """Raise the start of the log up to `offset`, at most the high watermark (DeleteRecords). LogError."""
        self.check_epoch(NO_EPOCH, only_leader=True)
        log = self.log
        if not 0 <= offset <= log.high_watermark:
            raise LogError(error_codes.OFFSET_OUT_OF_RANGE, f"{self.name}: {offset} is not below the high watermark")
        log.advance_start_offset(offset)
        self.wake()

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at an offset, -1 when it is not known. LogError."""
        return next((epoch for epoch, start in reversed(self.log.leader_epochs) if start <= offset), NO_EPOCH)

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the replicas that are alive; DeleteRecords waits for it."""
        return min([self.log.start_offset, *self.state.live_start_offsets()])

    # As a follower.

    def append_fetched(self, records: bytes) -> None:
        """Append what was fetched from the leader. LogError."""
        log = self.log
        log.append_as_follower(records)
        for header in read_headers(records, check_crc=False):
            self.producers.written(header)

    def truncate_to(self, offset: int) -> None:
        """Cut the log: the leader has something else from here on. LogError."""
        log = self.log
        log.truncate_to(offset)
        self.producers.truncate(log.end_offset)

    # Within.

    def committed_or_refused(self, change: IsrChange, answer: CommittedIsr | int, now_ms: int) -> None:
        """What came of an ISR change: a CommittedIsr or an error code."""
        if isinstance(answer, int):
            if self.state.refused(change, answer):
                self._propose(self, change)
            return
        self.state.committed(change, answer, now_ms)
        if self._find_log(self.key) is not None:
            self._advanced(self.log)

    def _advanced(self, log: ReplicaLog, *, always_wake: bool = True) -> None:
        """Carry the state's high watermark over to the log, send what it proposes, wake who waits."""
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
    """The whole batches at the head of a fetch's records, up to the first of a later epoch than the leader's.

    A real broker cuts where its bytes end. Nothing of a newer epoch is taken: the fetch was answered before, and what
    follows may have been truncated since (KAFKA-18723). LogError for what is no batch.
    """
    position = 0
    while len(records) - position >= HEADER_BYTES:
        header = read_header(records, position, check_crc=False)
        if header.end > len(records) or header.leader_epoch > epoch_max:
            break
        position = header.end
    return records[:position]

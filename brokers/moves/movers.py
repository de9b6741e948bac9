"""The component that moves replicas between log directories (KIP-113, Kafka's `ReplicaAlterLogDirsManager`).

A mover copies one replica at a time, piece by piece (`ReplicaAlterLogDirsThread`), in the order of Kafka's
`getFetcherId` and `LocalLeaderEndPoint`. All share one throttle, `replica.alter.log.dirs.io.max.bytes.per.second`
(`ReplicationQuotaManager` over its `SimpleRate`), and each piece is a step of its own, so that requests and heartbeats
are served in between.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.core import Component, Core
from mockraft.brokers.directories import Directories
from mockraft.brokers.log_dirs.errors import LogError, StorageError
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.moves.move import Happened, Order, Stage, step
from mockraft.brokers.replication_quota import ReplicationQuota


class MoveProgress(NamedTuple):
    """One active move. Directories are paths.

    `offset_lag` is the number of offsets that the future log is behind, as in DescribeLogDirs; `bytes_left` are still
    to be copied; `eta_ms` is an estimate from this move's rate so far, None while nothing was copied.
    """

    topic: str
    partition: int
    source: str
    target: str
    stage: Stage
    offset_lag: int
    bytes_left: int
    eta_ms: float | None


def eta_ms(bytes_left: int, copied_bytes: int, elapsed_ms: float) -> float | None:
    """Return the estimated time for the rest at the rate so far; None without a rate."""
    if bytes_left == 0:
        return 0.0
    return bytes_left * elapsed_ms / copied_bytes if copied_bytes and elapsed_ms > 0 else None


THREADS = "num.replica.alter.log.dirs.threads"
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
IDLE_MS = 20
"""The interval at which a mover checks a log that has caught up; Kafka's checks continuously."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Move:
    """A move of one replica, active or ended. Directories are uuids; `why` is the reason of an early end."""

    key: ReplicaKey
    topic: str
    source: bytes
    target: bytes
    began_ms: float
    stage: Stage = Stage.UNASKED
    copied_bytes: int = 0
    why: str = ""
    is_ended: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic name and partition."""
        return self.topic, self.key[1]


class Movers(Component):
    """The moves of one broker and the movers that copy them.

    `quota` is the throttle of the broker's config in the metadata log. Nothing runs while there are no moves.
    """

    def __init__(self, core: Core, directories: Directories) -> None:
        config = core.config
        self.quota = ReplicationQuota()
        self.threads = int(config.properties.get(THREADS, len(config.log_dirs)))
        self.core = core
        self.directories = directories
        self._moves: dict[ReplicaKey, Move] = {}
        self._moves_of: dict[int, dict[TopicPartition, Move]] = {}
        self._in_progress: dict[int, TopicPartition | None] = {}
        self._paused: set[int] = set()

    # Component of the broker.

    def metadata_advanced(self) -> None:
        """Read the throttle, and end the moves of removed replicas."""
        self._throttle()
        for move in list(self._moves.values()):
            if move.key not in self.core.view.replicas:
                self._happen(move, Happened.REPLICA_GONE, "the replica is on this broker no longer")

    def close(self) -> None:
        """End every move; the files stay for the next start."""
        for move in list(self._moves.values()):
            self._end(move, "the broker stopped")

    # Requests.

    def find(self, key: ReplicaKey) -> Move | None:
        """Return the active move of this replica."""
        return self._moves.get(key)

    def begin(self, key: ReplicaKey, topic: str, source: bytes, target: bytes) -> Move:
        """Start a move; StorageError when the future log cannot be created in the target."""
        move = Move(key, topic, source, target, self.core.kernel.now_ms)
        self._keep(move)
        self._happen(move, Happened.ASKED)
        return self._begun(move)

    def replace(self, move: Move, target: bytes) -> Move:
        """Replace this move by another of the same replica; StorageError."""
        replacing = Move(move.key, move.topic, move.source, target, self.core.kernel.now_ms)
        self._keep(replacing)
        replacing.stage = move.stage
        move.stage, move.why = Stage.OVER, f"replaced by a move to {self._path(target)}"
        move.is_ended = True
        self._happen(replacing, Happened.REPLACED)
        return self._begun(replacing)

    def cancel(self, move: Move, why: str) -> None:
        """End a move without moving the replica; the future log is deleted."""
        self._happen(move, Happened.CANCELLED, why)

    def resume(self, key: ReplicaKey, topic: str, source: bytes, target: bytes, *, agreed: bool = False) -> Move:
        """Resume a move from the broker's last run; `agreed` if the controller has the target."""
        move = Move(key, topic, source, target, self.core.kernel.now_ms)
        self._keep(move)
        if agreed:
            self.directories.moving[key] = target
        self._happen(move, Happened.RESTARTED_ACKNOWLEDGED if agreed else Happened.RESTARTED)
        return self._begun(move)

    def directory_offline(self, directory_id: bytes) -> None:
        """End the moves from and to a directory that went offline."""
        for move in list(self._moves.values()):
            if self.core.logs.directory_of(move.key) == move.target:
                continue  # Already swapped; only the old log's files could not be removed.
            if directory_id == move.source:
                self._happen(move, Happened.SOURCE_LOST, f"{self._path(directory_id)} is offline")
            elif directory_id == move.target:
                self._happen(move, Happened.TARGET_LOST, f"{self._path(directory_id)} is offline")

    def replica_lost(self, key: ReplicaKey, why: str) -> None:
        """End the move of a replica that failed although its directory works (KIP-18)."""
        if move := self._moves.get(key):
            self._happen(move, Happened.SOURCE_LOST, why)

    def progress(self) -> tuple[MoveProgress, ...]:
        """Return the active moves, by topic name and partition."""
        logs = self.core.logs
        moves = []
        for move in sorted(self._moves.values(), key=lambda move: move.topic_partition):
            current, future = logs.log(move.key), logs.future(move.key)
            if current is None or future is None:
                continue
            bytes_left = max(current.size_bytes - future.size_bytes, 0)
            moves.append(
                MoveProgress(
                    *move.topic_partition,
                    self._path(move.source),
                    self._path(move.target),
                    move.stage,
                    current.end_offset - future.end_offset,
                    bytes_left,
                    eta_ms(bytes_left, move.copied_bytes, self.core.kernel.now_ms - move.began_ms),
                )
            )
        return tuple(moves)

    # Events and actions.

    def _mover(self, move: Move) -> int:
        return mover_of(*move.topic_partition, self.threads)

    def _keep(self, move: Move) -> None:
        self._moves[move.key] = move
        self._moves_of.setdefault(self._mover(move), {})[move.topic_partition] = move

    def _begun(self, move: Move) -> Move:
        mover = self._mover(move)
        if mover not in self._in_progress and move.stage.is_under_way:
            self._in_progress[mover] = None
            self._continue(mover, 0)
        self._wake()
        return move

    def _happen(self, move: Move, happened: Happened, why: str = "") -> None:
        """Process an event and carry out its actions. StorageError only when the future log cannot be created."""
        before = move.stage
        move.stage, orders = step(move.stage, happened)
        if move.stage is not before:
            _log.info("broker %d: %s-%d: %s", self.core.config.broker_id, *move.topic_partition, move.stage.name)
        for order in orders:
            self._carry_out(move, order)
        if before.is_under_way and not move.stage.is_under_way:
            self._end(move, why)

    def _carry_out(self, move: Move, order: Order) -> None:
        directories = self.directories
        match order:
            case Order.CREATE_FUTURE:
                self._create_future(move)
            case Order.ASSIGN_TARGET:
                directories.moving[move.key] = move.target
                directories.assign(move.key, move.target, "Future replica promotion", lambda: self._acknowledged(move))
            case Order.ASSIGN_SOURCE:
                directories.moving.pop(move.key, None)
                if move.key in directories.lost:
                    return  # Failed by itself (KIP-18), which was reported to the controller.
                directories.assign(move.key, move.source, "Reverting reassignment for canceled future replica")
            case Order.SWAP:
                self._swap(move)
            case Order.DELETE_FUTURE | Order.FORGET_FUTURE:
                self._drop_future(move)
            case Order.COPY:
                pass  # The mover copies as long as the move is active.

    def _create_future(self, move: Move) -> None:
        if self.core.logs.future(move.key) is not None:
            self._drop_future(move)  # The source of this move was lost.
        try:
            self.core.logs.create(move.key, move.topic, move.target, future=True)
        except LogError as error:
            move.stage = Stage.OVER
            self._end(move, str(error))
            raise

    def _drop_future(self, move: Move) -> None:
        """Delete the future log; on a disk that fails to delete it the files stay for the next start."""
        try:
            self.core.logs.remove(move.key, future=True)
        except StorageError as error:
            _log.warning("%s-%d: the future log could not be deleted: %s", *move.topic_partition, error)

    def _acknowledged(self, move: Move) -> None:
        if self._moves.get(move.key) is move:
            self._happen(move, Happened.ACKNOWLEDGED)
            self._wake()

    def _swap(self, move: Move) -> None:
        """Swap the logs. No await between their last check and the renames: nothing is appended meanwhile."""
        try:
            self.core.logs.promote(move.key)
        except StorageError as error:
            _log.warning("%s-%d: %s", *move.topic_partition, error)
            if self.core.logs.directory_of(move.key) != move.target:
                self._lost(move, error)
                return
        self.directories.placed[move.key] = move.target
        self.directories.moving.pop(move.key, None)
        self._happen(move, Happened.RENAMED)

    def _lost(self, move: Move, error: StorageError) -> None:
        """Handle an I/O error of either log, whose directory may still be online."""
        happened = Happened.SOURCE_LOST if error.directory_id == move.source else Happened.TARGET_LOST
        self._happen(move, happened, str(error))

    def _end(self, move: Move, why: str) -> None:
        if move.is_ended:
            return
        if self._moves.get(move.key) is move:
            del self._moves[move.key]
            of_mover = self._moves_of[self._mover(move)]
            if of_mover.get(move.topic_partition) is move:
                del of_mover[move.topic_partition]
        if move.stage is not Stage.DONE:
            move.why = why
            _log.warning("%s-%d stays in %s: %s", *move.topic_partition, self._path(move.source), why)
        self.directories.moving.pop(move.key, None)
        move.is_ended = True
        self._wake()

    # Copying.

    def _run(self, mover: int) -> None:
        """Let a mover do the next thing; it ends when it has no replica left to copy."""
        self._paused.discard(mover)
        ready = self._moves_of.get(mover)
        if not ready:
            del self._in_progress[mover]
            return
        name = self._in_progress[mover] = next_to_copy(self._in_progress[mover], ready)
        assert name is not None
        wait_ms = self.quota.wait_ms(self.core.kernel.now_ms)
        if wait_ms:
            self._pause(mover, wait_ms)
            return
        move, logs = ready[name], self.core.logs
        delay_ms = sum(logs.log_dir(each).disk.delay_ms for each in (move.source, move.target))
        if delay_ms:
            self.core.kernel.after(f"mover {mover}", delay_ms, functools.partial(self._copy, mover, move))
        else:
            self._copy(mover, move)

    def _copy(self, mover: int, move: Move) -> None:
        if wait_ms := self._copied(move):
            self._pause(mover, wait_ms)
        else:
            self._continue(mover, 0)

    def _copied(self, move: Move) -> float:
        """Copy a piece; return the wait before the next in ms."""
        logs = self.core.logs
        current, future = logs.log(move.key), logs.future(move.key)
        if self._moves.get(move.key) is not move:
            return 0
        if current is None or future is None:
            lost = Happened.SOURCE_LOST if current is None else Happened.TARGET_LOST
            self._happen(move, lost, "its log is gone")
            return 0
        try:
            copied_bytes = copy_piece(current, future)
        except StorageError as error:
            if self._moves.get(move.key) is move:
                self._lost(move, error)
            return 0
        except LogError as error:
            self.cancel(move, f"it cannot be copied: {error}")
            return 0
        move.copied_bytes += copied_bytes
        self.quota.record(copied_bytes, self.core.kernel.now_ms)
        self._happen(move, Happened.CAUGHT_UP if has_caught_up(current, future) else Happened.COPIED)
        return 0 if copied_bytes else IDLE_MS

    def _pause(self, mover: int, wait_ms: float) -> None:
        """Wait for the time or the next event."""
        self._paused.add(mover)
        self._continue(mover, wait_ms)

    def _continue(self, mover: int, wait_ms: float) -> None:
        self.core.kernel.after(f"mover {mover}", wait_ms, functools.partial(self._run, mover))

    def _wake(self) -> None:
        for mover in self._paused:
            self._continue(mover, 0)
        self._paused.clear()

    def _throttle(self) -> None:
        configs = self.core.view.configs
        value = configs.get((str(self.core.config.broker_id), THROTTLE), configs.get(("", THROTTLE), ""))
        wanted = int(value) if value.isdecimal() and len(value) < 20 else None
        if wanted != self.quota.bytes_per_second:
            self.quota.bytes_per_second = wanted
            self._wake()

    def _path(self, directory_id: bytes) -> str:
        return next(log_dir.path for log_dir in self.core.config.log_dirs if log_dir.directory_id == directory_id)


TopicPartition = tuple[str, int]


def mover_of(topic: str, partition: int, movers: int) -> int:
    """Return a partition's mover (0 ≤ n < movers), by Java's hash of the topic's name as in Kafka."""
    hashed = 0
    for character in topic:
        hashed = _java_int(31 * hashed + ord(character))
    hashed = _java_int(31 * hashed + partition)
    return (0 if hashed == -(2**31) else abs(hashed)) % movers


def next_to_copy(in_progress: TopicPartition | None, ready: Collection[TopicPartition]) -> TopicPartition | None:
    """Return the partition in progress while it is ready, else the first ready one by topic name and number.

    One at a time: the sooner a replica has caught up, the fewer records are written to both directories.
    """
    return in_progress if in_progress in ready else min(ready, default=None)


def _java_int(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


PIECE_BYTES_MAX = 1_048_576
"""Kafka's replica.fetch.max.bytes: the maximum size of one read."""


def has_caught_up(current: ReplicaLog, future: ReplicaLog) -> bool:
    """Return True if the future log ends where the current one does."""
    return current.end_offset == future.end_offset


def copy_piece(current: ReplicaLog, future: ReplicaLog) -> int:
    """Copy the next batches, whole, and follow the current log's start and high watermark. Return the bytes copied.

    The future log is truncated first when the current log has been truncated meanwhile.
    """
    align(current, future)
    # The future log may begin before the current one, with the batch that contains the start offset.
    records = current.read(max(future.end_offset, current.start_offset), PIECE_BYTES_MAX)
    if records:
        future.append_as_follower(records)
    future.high_watermark = current.high_watermark
    future.advance_start_offset(min(current.start_offset, future.high_watermark))
    return len(records)


def align(current: ReplicaLog, future: ReplicaLog) -> None:
    """Truncate the future log to the part that it shares with the current one."""
    if future.end_offset < current.start_offset or future.start_offset > current.end_offset:
        batches = current.batches(current.start_offset)
        # A raised start offset may be within a batch, and batches are copied whole.
        future.truncate_fully_at(batches[0].base_offset if batches else current.start_offset)
        return
    while (end := _common_end(current, future)) < future.end_offset:
        future.truncate_to(end)


def _common_end(current: ReplicaLog, future: ReplicaLog) -> int:
    """Return the offset up to which the epochs of both logs agree, based on the future log's latest epoch."""
    epoch = future.latest_epoch
    if epoch is None:
        return min(future.end_offset, current.end_offset)
    known, end = current.end_of_epoch(epoch)
    if known < 0:
        return min(future.high_watermark, current.end_offset, future.end_offset)
    ours = end if known == epoch else future.end_of_epoch(known)[1]
    return min(end, ours, current.end_offset, future.end_offset)

"""The log of a coordinator's state: the partitions of an internal topic that this broker leads.

Mirrors what Kafka's TransactionStateManager and CoordinatorRuntime have in common: a new leader loads the partition
before it coordinates, a change takes effect once the in-sync replicas have it, and a leader that resigns forgets.

Kafka's log cleaner keeps these logs short. Here the leader does: now and then it writes its whole state again, and once
that is replicated the log begins there.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.coordinators.state_records import Record, encode
from mockraft.brokers.core import Core
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.log_dirs.batch_headers import read_headers
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.java_values import hash_code
from mockraft.wire.record_batch import BatchHeader

LOADED_BYTES: Final = 1 << 20
"""Loaded in one step; a broker does other work between two."""
REWRITTEN_BYTES: Final = 1 << 20
"""The log is rewritten after so many new bytes, or after twice the bytes of the state if that is more."""
RECORDS_PER_BATCH: Final = 500
COORDINATOR_ERRORS: Final = {
    error_codes.NONE: error_codes.NONE,
    error_codes.UNKNOWN_TOPIC_OR_PARTITION: error_codes.COORDINATOR_NOT_AVAILABLE,
    error_codes.NOT_ENOUGH_REPLICAS: error_codes.COORDINATOR_NOT_AVAILABLE,
    error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND: error_codes.COORDINATOR_NOT_AVAILABLE,
    error_codes.REQUEST_TIMED_OUT: error_codes.COORDINATOR_NOT_AVAILABLE,
    error_codes.NOT_LEADER_OR_FOLLOWER: error_codes.NOT_COORDINATOR,
    error_codes.KAFKA_STORAGE_ERROR: error_codes.NOT_COORDINATOR,
    error_codes.INVALID_PRODUCER_EPOCH: error_codes.INVALID_PRODUCER_EPOCH,
    error_codes.INVALID_TXN_STATE: error_codes.INVALID_TXN_STATE,
}
"""A client's error by that of an append; UNKNOWN_SERVER_ERROR for others (appendTransactionToLog)."""

Written = Callable[[int], None]
"""Called with the error of an append, NONE once it is replicated."""

_log = logging.getLogger(__name__)


class State(Protocol):
    """A coordinator's state by partition of its topic."""

    def replay(self, index: int, header: BatchHeader, batch: bytes) -> bool:
        """Apply one batch of the log, as it was written; return False if some of it is not understood."""

    def loaded(self, index: int) -> None:
        """Begin to coordinate: all batches of the partition were replayed."""

    def unloaded(self, index: int) -> None:
        """Forget the state of this partition: another broker coordinates."""

    def records(self, index: int) -> Sequence[Record] | None:
        """Return records that are the state of this partition; None while it has more than they can hold."""


@dataclass(slots=True)
class _Led:
    """A partition that this broker leads; `next_offset` is the next to load, None once it is loaded.

    `new_bytes` were loaded or appended since the state was last written, in `state_bytes`. A log with records that are
    not understood (of Kafka's newer groups) is not rewritten.
    """

    leader_epoch: int
    next_offset: int | None
    new_bytes: int = 0
    state_bytes: int = 0
    is_understood: bool = True


@dataclass(slots=True, eq=False)
class _Append:
    """An append that is not replicated yet."""

    partition: int
    leader_epoch: int
    end_offset: int
    deadline_ms: float
    written: Written


class StateTopic(NamedTuple):
    """An internal topic, its number of partitions while it is not created yet, and the timeout of appends to it."""

    name: str
    partition_count: int
    append_timeout_ms: int


class StateLog:
    """The partitions of an internal topic on this broker. `changed` is called after appends have results."""

    def __init__(
        self, core: Core, replicas: Replicas, topic: StateTopic, state: State, changed: Callable[[], None]
    ) -> None:
        assert core.image is not None
        self.topic = topic.name
        self._core = core
        self._image = core.image
        self._replicas = replicas
        self._state = state
        self._partition_count = topic.partition_count
        self._timeout_ms = topic.append_timeout_ms
        self._led: dict[int, _Led] = {}
        self._appends: list[_Append] = []
        self._is_behind = False
        self._changed = changed

    # Queries.

    def partition_of(self, name: str) -> int:
        """Return the partition of a group or a transactional id (partitionFor)."""
        topic = self._image.topics_by_name.get(self.topic)
        count = len(topic.partitions) if topic is not None else 0
        return abs(hash_code(name)) % (count or self._partition_count)

    def leader_of(self, name: str) -> int | None:
        """Return the broker that coordinates a group or a transactional id; None while there is none."""
        return coordinator(self._image, self.topic, name)

    def find(self, name: str) -> int:
        """Return the partition of a name that this broker coordinates.

        ApiError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        index = self.partition_of(name)
        led = self._led.get(index)
        if led is None:
            raise ApiError(error_codes.NOT_COORDINATOR)
        if led.next_offset is not None:
            raise ApiError(error_codes.COORDINATOR_LOAD_IN_PROGRESS)
        return index

    def is_loaded(self, index: int) -> bool:
        """Return True if this broker coordinates the partition's names."""
        led = self._led.get(index)
        return led is not None and led.next_offset is None

    @property
    def is_loading(self) -> bool:
        """True while any partition is being loaded."""
        return any(led.next_offset is not None for led in self._led.values())

    def epoch(self, index: int) -> int:
        """Return the coordinator's epoch, the partition's leader epoch."""
        return self._led[index].leader_epoch

    # Writing.

    def append(self, index: int, write: Callable[[HostedPartition], int], written: Written) -> None:
        """Call `write` with the partition; it returns the offset that must be replicated. Calls back with the error."""
        led = self._led.get(index)
        try:
            if led is None:
                raise LogError(error_codes.NOT_LEADER_OR_FOLLOWER, "another broker coordinates")
            hosted = self._hosted(index)
            before = hosted.log.size_bytes
            end_offset = write(hosted)
            led.new_bytes += hosted.log.size_bytes - before
        except LogError as refused:
            written(refused.error_code)
            return
        kernel = self._core.kernel
        self._appends.append(_Append(index, led.leader_epoch, end_offset, kernel.now_ms + self._timeout_ms, written))
        kernel.after(f"{self.topic}: timeout", self._timeout_ms, self._poll)
        self._poll_soon()

    def replicas_changed(self) -> None:
        """Look at the appends again: a high watermark or a leader may have changed."""
        if self._appends or self._is_behind:
            self._poll_soon()

    # Leadership.

    def metadata_advanced(self) -> None:
        """Follow the leaders of the topic's partitions."""
        topic = self._image.topics_by_name.get(self.topic)
        partitions = {} if topic is None else topic.partitions
        me = self._core.config.broker_id
        for index in [index for index in self._led if index not in partitions or partitions[index].leader != me]:
            self._resign(index)
        self._is_behind = False
        for index, partition in partitions.items():
            led = self._led.get(index)
            if partition.leader != me or (led is not None and led.leader_epoch == partition.leader_epoch):
                continue
            assert topic is not None
            hosted = self._replicas.hosted((topic.topic_id, index))
            if hosted is None or not hosted.state.is_leader or hosted.state.leader_epoch < partition.leader_epoch:
                # The replica becomes leader in a later step.
                self._is_behind = True
                continue
            if led is not None:
                self._resign(index)
            self._elect(index, hosted)

    def close(self) -> None:
        """Forget everything; nobody is called back."""
        self._led.clear()
        self._appends.clear()

    def _elect(self, index: int, hosted: HostedPartition) -> None:
        try:
            self._led[index] = _Led(hosted.state.leader_epoch, hosted.log.start_offset)
        except LogError as error:
            _log.warning("broker %d: %s is not loaded: %s", self._core.config.broker_id, hosted.name, error)
            return
        self._poll_soon()

    def _resign(self, index: int) -> None:
        del self._led[index]
        self._state.unloaded(index)
        lost = [each for each in self._appends if each.partition == index]
        self._appends = [each for each in self._appends if each not in lost]
        for each in lost:
            each.written(error_codes.NOT_LEADER_OR_FOLLOWER)
        self._changed()

    # Steps.

    def _poll_soon(self) -> None:
        self._core.kernel.after(f"{self.topic}: poll", 0, self._poll)

    def _poll(self) -> None:
        if self._is_behind:
            self.metadata_advanced()
        for index, led in list(self._led.items()):
            if led.next_offset is not None:
                self._load(index, led, led.next_offset)
        appends, self._appends = self._appends, []
        results = [(each, self._result(each)) for each in appends]
        self._appends += [each for each, code in results if code is None]
        for each, code in results:
            if code is not None:
                each.written(code)
        if len(self._appends) < len(results):
            self._changed()
        for index, led in list(self._led.items()):
            if led.new_bytes >= max(REWRITTEN_BYTES, 2 * led.state_bytes):
                self._rewrite(index, led)

    def _result(self, append: _Append) -> int | None:
        """Return the error of an append, NONE once it is replicated, None while it is not."""
        try:
            hosted = self._hosted(append.partition)
        except LogError as lost:
            return lost.error_code
        if hosted.state.leader_epoch != append.leader_epoch:
            return error_codes.NOT_LEADER_OR_FOLLOWER
        done, code = hosted.state.reached(append.end_offset)
        if done:
            return code
        return error_codes.REQUEST_TIMED_OUT if self._core.kernel.now_ms >= append.deadline_ms else None

    def _load(self, index: int, led: _Led, offset: int) -> None:
        try:
            hosted = self._hosted(index)
            log = hosted.log
            records = log.read(max(offset, log.start_offset), LOADED_BYTES)
            for header in read_headers(records, check_crc=False):
                led.is_understood &= self._state.replay(index, header, records[header.position : header.end])
                led.new_bytes += header.end - header.position
                led.next_offset = header.last_offset + 1
        except LogError as error:
            _log.warning("broker %d: %s-%d is not loaded: %s", self._replicas.broker_id, self.topic, index, error)
            return
        if records and led.next_offset is not None and led.next_offset < log.end_offset:
            self._poll_soon()
            return
        led.next_offset = None
        self._state.loaded(index)
        self._changed()

    def _rewrite(self, index: int, led: _Led) -> None:
        """Write the state again, and let the log begin there once that is replicated."""
        # What is not replicated is not in the state yet.
        is_replicated = all(each.partition != index for each in self._appends)
        if not is_replicated or not led.is_understood or led.next_offset is not None:
            return
        records = self._state.records(index)
        if records is None:
            return
        now_ms = int(self._core.kernel.now_ms)
        batches = [
            encode(records[at : at + RECORDS_PER_BATCH], now_ms) for at in range(0, len(records), RECORDS_PER_BATCH)
        ]

        start_offset = 0

        def write(hosted: HostedPartition) -> int:
            nonlocal start_offset
            start_offset = end_offset = hosted.log.end_offset
            for batch in batches:
                end_offset = hosted.append_state(batch, now_ms)
            return end_offset

        def written(code: int) -> None:
            if code == error_codes.NONE:
                with contextlib.suppress(LogError):
                    self._hosted(index).delete_before(start_offset)

        self.append(index, write, written)
        led.state_bytes, led.new_bytes = sum(map(len, batches)), 0

    def _hosted(self, index: int) -> HostedPartition:
        """Return the replica. Raises LogError."""
        topic = self._image.topics_by_name.get(self.topic)
        if topic is None:
            raise LogError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {self.topic}")
        key: ReplicaKey = (topic.topic_id, index)
        return self._replicas.find(key)


def coordinator(image: ClusterImage, topic_name: str, name: str) -> int | None:
    """Return the leader of a name's partition of an internal topic; None while there is none."""
    topic = image.topics_by_name.get(topic_name)
    if topic is None or not topic.partitions:
        return None
    partition = topic.partitions.get(abs(hash_code(name)) % len(topic.partitions))
    return None if partition is None or partition.leader < 0 else partition.leader


def to_client(written: Callable[[int], None]) -> Written:
    """Return a callback that passes the error on as the one that clients of a coordinator know."""
    return lambda code: written(COORDINATOR_ERRORS.get(code, error_codes.UNKNOWN_SERVER_ERROR))

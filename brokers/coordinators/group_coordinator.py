"""The group coordinator: consumer groups, with their offsets in `__consumer_offsets` (OffsetMetadataManager).

Offsets are replicated before they are answered, and loaded by the next coordinator. Members are not: they join again.
An offset that is committed in a transaction takes effect with the transaction's marker.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from mockraft.brokers.coordinators.consumer_groups import Group, GroupLimits
from mockraft.brokers.coordinators.members import Offset
from mockraft.brokers.coordinators.state_log import StateLog, StateTopic, to_client
from mockraft.brokers.coordinators.state_records import (
    OffsetKey,
    Record,
    encode,
    offset_record,
    read_offset,
    read_records,
)
from mockraft.brokers.coordinators.transaction import Producer, TopicPartition
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.core import Core
from mockraft.brokers.log_dirs.transaction_markers import Marker, read_marker
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.kafka_api.api import NEVER_MS
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.record_batch import BatchHeader
from mockraft.wire.topic_names import GROUP_METADATA

GROUPS_MAX = 1_000
INITIAL_DELAY: Final = "group.initial.rebalance.delay.ms"
PARTITION_COUNT: Final = ("offsets.topic.num.partitions", 50)
COMMIT_TIMEOUT_MS: Final = ("offsets.commit.timeout.ms", 5_000)


class GroupCoordinator:
    """The groups of this broker's partitions of `__consumer_offsets`. `changed` is called with each result."""

    def __init__(self, core: Core, replicas: Replicas, changed: Callable[[], None]) -> None:
        properties = core.config.properties
        count, timeout_ms = (
            int(properties.get(name, default)) for name, default in (PARTITION_COUNT, COMMIT_TIMEOUT_MS)
        )
        self._kernel = core.kernel
        self.log = StateLog(core, replicas, StateTopic(GROUP_METADATA, count, timeout_ms), self, changed)
        self.groups = Groups(properties, changed)
        # By partition and producer id: the offsets of open transactions.
        self._uncommitted: dict[int, dict[int, dict[OffsetKey, Offset]]] = {}

    # Requests.

    def find(self, group_id: str) -> Group | None:
        """Return the group if there is one. Raises ApiError when another broker coordinates it."""
        self.log.find(group_id)
        return self.groups.groups.get(group_id)

    def check_session(self, timeout_ms: int) -> None:
        """Check a member's session timeout before anything else, as Kafka does. Raises ApiError."""
        self.groups.limits.check_session(timeout_ms)

    def create(self, group_id: str) -> Group:
        """Return the group, creating it if needed. Raises ApiError as `find` does, or when there are too many."""
        self.log.find(group_id)
        return self.groups.find(group_id)

    def commit(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, Offset],
        producer: Producer | None = None,
        check: Callable[[HostedPartition], None] = lambda _hosted: None,
    ) -> Waiting[bool]:
        """Commit offsets, in a transaction with a `producer`; `check` may refuse with LogError. Raises ApiError."""
        index = self.log.find(group_id)
        keyed = {OffsetKey(group_id, *partition): offset for partition, offset in offsets.items()}
        now_ms = int(self._kernel.now_ms)
        records = [offset_record(key, offset, now_ms) for key, offset in keyed.items()]

        def apply() -> None:
            if producer is None:
                self._apply(keyed)
            else:
                self._uncommitted[index].setdefault(producer.producer_id, {}).update(keyed)

        return self._write(index, records, apply, producer, check)

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> Waiting[bool]:
        """Delete committed offsets. Raises ApiError."""
        index = self.log.find(group_id)
        keys = [OffsetKey(group_id, *partition) for partition in partitions]
        apply = functools.partial(self._apply, dict.fromkeys(keys))
        return self._write(index, [offset_record(key, None, 0) for key in keys], apply)

    def delete(self, group_id: str) -> Waiting[bool]:
        """Delete a group with its offsets. Raises ApiError."""
        group = self.find(group_id)
        assert group is not None
        index = self.log.find(group_id)
        keys = dict.fromkeys(OffsetKey(group_id, *partition) for partition in group.offsets)
        for pending in self._uncommitted[index].values():
            keys.update(dict.fromkeys(key for key in pending if key.group_id == group_id))
        # At once, as for Kafka's clients of the coordinator: a group that is being deleted takes no members.
        del self.groups.groups[group_id]
        apply = functools.partial(self._apply, keys)
        return self._write(index, [offset_record(key, None, 0) for key in keys], apply)

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Return True if a transaction that is not ended yet has committed an offset of this partition (KIP-447)."""
        key = OffsetKey(group_id, *partition)
        open_transactions = self._uncommitted.get(self.log.partition_of(group_id), {})
        return any(key in offsets for offsets in open_transactions.values())

    def end_transaction(self, index: int, marker: Marker, written: Callable[[int], None]) -> None:
        """Write a marker to a partition of groups; its offsets take effect once it is replicated."""
        if not self.log.is_loaded(index):
            # What the transaction coordinator knows to send again.
            written(error_codes.NOT_LEADER_OR_FOLLOWER)
            return
        now_ms = int(self._kernel.now_ms)

        def replicated(code: int) -> None:
            if code == error_codes.NONE:
                self._ended(index, marker)
            written(code)

        self.log.append(index, lambda hosted: hosted.append_marker(marker, now_ms), replicated)

    # The state of the log.

    def replay(self, index: int, header: BatchHeader, batch: bytes) -> bool:
        """Apply the offsets of a batch, or the end of a transaction; return False if some are not understood."""
        marker = read_marker(header, batch)
        if marker is not None:
            self._ended(index, marker)
        if header.is_control:
            return True
        read, is_understood = read_records(header, batch, read_offset)
        found = dict(read)
        if header.is_transactional:
            committed = {key: offset for key, offset in found.items() if offset is not None}
            by_producer = self._uncommitted.setdefault(index, {})
            by_producer.setdefault(header.producer_id, {}).update(committed)
        else:
            self._apply(found)
        return is_understood

    def loaded(self, index: int) -> None:
        """Coordinate the partition's groups; those without an offset were deleted."""
        self._uncommitted.setdefault(index, {})
        for group_id in [name for name, group in self.groups.groups.items() if group.is_idle]:
            if self.log.partition_of(group_id) == index:
                del self.groups.groups[group_id]

    def unloaded(self, index: int) -> None:
        """Forget the partition's groups; the members' waiting requests are refused."""
        self._uncommitted.pop(index, None)
        for group_id in [each for each in self.groups.groups if self.log.partition_of(each) == index]:
            self.groups.groups.pop(group_id).dissolve(error_codes.NOT_COORDINATOR)

    def records(self, index: int) -> list[Record] | None:
        """Return the offsets of the partition's groups as records; None during transactions, which they cannot hold."""
        if any(self._uncommitted[index].values()):
            return None
        now_ms = int(self._kernel.now_ms)
        return [
            offset_record(OffsetKey(group_id, *partition), offset, now_ms)
            for group_id, group in self.groups.groups.items()
            if self.log.partition_of(group_id) == index
            for partition, offset in group.offsets.items()
        ]

    # Internals.

    def _write(
        self,
        index: int,
        records: list[Record],
        apply: Callable[[], None],
        producer: Producer | None = None,
        check: Callable[[HostedPartition], None] = lambda _hosted: None,
    ) -> Waiting[bool]:
        """Write records; `apply` is called once they are replicated."""
        waiting: Waiting[bool] = Waiting()

        def written(code: int) -> None:
            if code != error_codes.NONE:
                waiting.refuse(code)
                return
            apply()
            waiting.resolve(True)

        if not records:
            written(error_codes.NONE)
            return waiting
        now_ms = int(self._kernel.now_ms)
        batch = encode(records, now_ms, producer)

        def write(hosted: HostedPartition) -> int:
            check(hosted)
            return hosted.append_state(batch, now_ms)

        self.log.append(index, write, to_client(written))
        return waiting

    def _apply(self, offsets: Mapping[OffsetKey, Offset | None]) -> None:
        """Commit or delete offsets, also in place of those that open transactions have for the partitions."""
        for key, offset in offsets.items():
            self._put(key, offset)
            for pending in self._uncommitted.get(self.log.partition_of(key.group_id), {}).values():
                if offset is None:
                    pending.pop(key, None)
                elif key in pending:
                    pending[key] = offset

    def _put(self, key: OffsetKey, offset: Offset | None) -> None:
        partition = (key.topic, key.partition)
        if offset is not None:
            self.groups.load(key.group_id).offsets[partition] = offset
        elif (group := self.groups.groups.get(key.group_id)) is not None:
            group.offsets.pop(partition, None)

    def _ended(self, index: int, marker: Marker) -> None:
        offsets = self._uncommitted.get(index, {}).pop(marker.producer_id, {})
        if marker.is_commit:
            for key, offset in offsets.items():
                self._put(key, offset)


class Groups:
    """The groups that this broker coordinates, by id."""

    def __init__(self, properties: Mapping[str, str], changed: Callable[[], None] = lambda: None) -> None:
        self.groups: dict[str, Group] = {}
        self._changed = changed
        self.limits = GroupLimits.of(properties)
        self._initial_delay_ms = int(properties.get(INITIAL_DELAY, "0"))

    def find(self, group_id: str) -> Group:
        """Return the group, creating it if needed. Raises ApiError when there are too many."""
        group = self.groups.get(group_id)
        if group is None:
            if len(self.groups) >= GROUPS_MAX:
                self.groups = {name: each for name, each in self.groups.items() if not each.is_idle}
            if len(self.groups) >= GROUPS_MAX:
                raise ApiError(error_codes.GROUP_MAX_SIZE_REACHED)
            group = self.load(group_id)
        return group

    def load(self, group_id: str) -> Group:
        """Return the group, creating it if needed, however many there are."""
        if group_id not in self.groups:
            self.groups[group_id] = Group(self._initial_delay_ms, self._changed, self.limits)
        return self.groups[group_id]

    def tick(self, now_ms: int) -> None:
        """Run what is due in every group."""
        for group in self.groups.values():
            if now_ms >= group.next_tick_ms():
                group.tick(now_ms)

    def next_tick_ms(self) -> int:
        """Return the time of the next `tick`."""
        return min((group.next_tick_ms() for group in self.groups.values()), default=NEVER_MS)

"""The group coordinator: consumer groups, with their offsets in `__consumer_offsets` (OffsetMetadataManager).

Offsets, and groups of the consumer protocol with their members, are replicated before they are answered, and loaded by
the next coordinator. Members of the classic protocol are not: they join again. An offset that is committed in a
transaction takes effect with the transaction's marker.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from mockraft.brokers.coordinators import classic_members, group_records
from mockraft.brokers.coordinators.consumer_groups import Group, GroupLimits
from mockraft.brokers.coordinators.consumer_protocol import (
    JOINS,
    ConsumerGroup,
    Followed,
    GroupSettings,
    MemberHeartbeat,
    ModernGroup,
)
from mockraft.brokers.coordinators.group_configs import group_config
from mockraft.brokers.coordinators.group_records import GroupRecord
from mockraft.brokers.coordinators.group_snapshot import GroupSnapshot
from mockraft.brokers.coordinators.members import CONSUMER, Offset
from mockraft.brokers.coordinators.share_groups import SHARE, ShareGroup
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

AnyGroup = Group | ConsumerGroup
"""A group of consumers of either protocol."""


class GroupCoordinator:
    """The groups of this broker's partitions of `__consumer_offsets`. `changed` is called with each result."""

    def __init__(self, core: Core, replicas: Replicas, changed: Callable[[], None]) -> None:
        properties = core.config.properties
        count, timeout_ms = (
            int(properties.get(name, default)) for name, default in (PARTITION_COUNT, COMMIT_TIMEOUT_MS)
        )
        self._kernel = core.kernel
        assert core.image is not None
        self._image, self._config = core.image, core.config
        # For member ids. One for all groups: a group that is loaded again would begin with the ids of its members.
        self._rng = random.Random(b"groups" + core.config.incarnation_id)
        self.log = StateLog(core, replicas, StateTopic(GROUP_METADATA, count, timeout_ms), self, changed)
        self.groups = Groups(properties, changed)
        # By partition and producer id: the offsets of open transactions.
        self._uncommitted: dict[int, dict[int, dict[OffsetKey, Offset]]] = {}

    # Requests.

    def find(self, group_id: str) -> AnyGroup | None:
        """Return a group of consumers if there is one. Raises ApiError as `find_any` does, or for a share group."""
        group = self.find_any(group_id)
        if isinstance(group, ShareGroup):
            raise ApiError(error_codes.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def find_any(self, group_id: str) -> AnyGroup | ShareGroup | None:
        """Return the group of any type if there is one. Raises ApiError when another broker coordinates it."""
        self.log.find(group_id)
        return self.groups.groups.get(group_id)

    def check_session(self, timeout_ms: int) -> None:
        """Check a member's session timeout before anything else, as Kafka does. Raises ApiError."""
        self.groups.limits.check_session(timeout_ms)

    def create(self, group_id: str) -> AnyGroup:
        """Return the group, creating it if needed. Raises ApiError as `find` does, or when there are too many."""
        return self.find(group_id) or self.groups.create(group_id)

    def create_classic(self, group_id: str) -> Group:
        """Create a group of the classic protocol, also in place of an empty one of the consumer protocol.

        Raises ApiError as `create` does.
        """
        index, former = self.log.find(group_id), self.find(group_id)
        if not isinstance(former, ConsumerGroup):
            return self.groups.create(group_id)
        made = self._classic_instead_of(former)
        self._write(index, group_records.tombstones(group_id, former.snapshot), lambda: None)
        return made

    @property
    def assignors(self) -> tuple[str, ...]:
        """The assignors for groups of the consumer protocol, the default first."""
        return self._settings(CONSUMER, "").assignors

    def heartbeat(self, group_id: str, beat: MemberHeartbeat) -> tuple[Followed, Waiting[bool]]:
        """Let a member of the consumer protocol join or stay; an empty classic group becomes one of that protocol."""
        group = self.find(group_id)
        if beat.epoch < JOINS:
            known = self.consumer_group(group_id)
            return known.leave(beat.member_id, beat.instance_id, beat.epoch)
        now_ms = int(self._kernel.now_ms)
        if beat.epoch > JOINS or isinstance(group, ConsumerGroup):
            return self.consumer_group(group_id).heartbeat(beat, now_ms)
        made = self._consumer_group(group_id)
        if group is None:
            self.groups.check_room()
        elif group.members:
            settings = made.settings()
            classic_members.check_upgrade(group, settings, group_id)
            made.snapshot = classic_members.upgraded(group_id, group, self._image)
            made.begin(now_ms)
        followed = made.heartbeat(beat, now_ms)
        if group is not None:
            group.dissolve(error_codes.REBALANCE_IN_PROGRESS)
        self.groups.groups[group_id] = made
        return followed

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a group of the consumer protocol. Raises ApiError as `find` does, or when there is none."""
        group = self.find(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        kind = "Consumer group {} not found." if group is None else "Group {} is not a consumer group."
        raise ApiError(error_codes.GROUP_ID_NOT_FOUND, kind.format(group_id))

    def share_heartbeat(self, group_id: str, beat: MemberHeartbeat) -> tuple[Followed, Waiting[bool]]:
        """Let a member of a share group join, stay or leave. Raises ApiError as `find_any` does, and for other groups.

        A group may have been forgotten by another coordinator: its members join again if they are told to be unknown.
        """
        group = self.find_any(group_id)
        if group is None and beat.epoch == JOINS:
            group = self.create_share_group(group_id)
        elif group is None:
            text = f"Member {beat.member_id} is not a member of group {group_id}."
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID, text)
        if not isinstance(group, ShareGroup):
            raise ApiError(error_codes.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        if beat.epoch < JOINS:
            return group.leave(beat.member_id, None, beat.epoch)
        return group.heartbeat(beat, int(self._kernel.now_ms))

    def create_share_group(self, group_id: str) -> ShareGroup:
        """Create a share group. Raises ApiError when there are too many groups."""
        self.groups.check_room()
        settings = functools.partial(self._settings, SHARE, group_id)
        made = self.groups.groups[group_id] = ShareGroup(group_id, self._image, settings, self, self._rng)
        return made

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
        group = self.find_any(group_id)
        assert group is not None
        index = self.log.find(group_id)
        keys = dict.fromkeys(OffsetKey(group_id, *partition) for partition in group.offsets)
        for pending in self._uncommitted[index].values():
            keys.update(dict.fromkeys(key for key in pending if key.group_id == group_id))
        # At once, as for Kafka's clients of the coordinator: a group that is being deleted takes no members.
        del self.groups.groups[group_id]
        apply = functools.partial(self._apply, keys)
        records = [offset_record(key, None, 0) for key in keys]
        if isinstance(group, ConsumerGroup):
            records += group_records.tombstones(group_id, group.snapshot)
        return self._write(index, records, apply)

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
        read: list[_Found]
        read, is_understood = read_records(
            header, batch, lambda key, value: read_offset(key, value) or group_records.read_group(key, value)
        )
        found: dict[OffsetKey, Offset | None] = {}
        for record in read:
            if isinstance(record, GroupRecord):
                self._replay_group(record)
            else:
                found[record[0]] = record[1]
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
        for group_id, group in list(self.groups.groups.items()):
            if self.log.partition_of(group_id) != index:
                continue
            if isinstance(group, ConsumerGroup):
                group.begin(int(self._kernel.now_ms))
            elif group.is_idle:
                del self.groups.groups[group_id]

    def unloaded(self, index: int) -> None:
        """Forget the partition's groups; the members' waiting requests are refused."""
        self._uncommitted.pop(index, None)
        for group_id in [each for each in self.groups.groups if self.log.partition_of(each) == index]:
            self.groups.groups.pop(group_id).dissolve(error_codes.NOT_COORDINATOR)

    def records(self, index: int) -> list[Record] | None:
        """Return the partition's groups and offsets as records; None during transactions, which they cannot hold."""
        if any(self._uncommitted[index].values()):
            return None
        now_ms = int(self._kernel.now_ms)
        groups = [each for each in self.groups.groups.items() if self.log.partition_of(each[0]) == index]
        records = [
            record
            for group_id, group in groups
            if isinstance(group, ConsumerGroup)
            for record in group_records.changes(group_id, GroupSnapshot(), group.snapshot)
        ]
        return records + [
            offset_record(OffsetKey(group_id, *partition), offset, now_ms)
            for group_id, group in groups
            for partition, offset in group.offsets.items()
        ]

    # Internals.

    def _consumer_group(self, group_id: str) -> ConsumerGroup:
        """Make a group of the consumer protocol; it takes the offsets of a classic group in whose place it comes."""
        settings = functools.partial(self._settings, CONSUMER, group_id)
        made = ConsumerGroup(group_id, self._image, settings, self, self._rng)
        former = self.groups.groups.get(group_id)
        made.offsets = {} if former is None else former.offsets
        return made

    def _classic_instead_of(self, former: ConsumerGroup) -> Group:
        former.dissolve(error_codes.NONE)
        made = self.groups.make(former.group_id)
        made.offsets = former.offsets
        return made

    def _settings(self, protocol: str, group_id: str) -> GroupSettings:
        """Return the configs of a group of this protocol. Raises ApiError as `group_config` does."""
        value = functools.partial(group_config, self._image, self._config.properties, group_id)
        is_consumer = protocol == CONSUMER
        return GroupSettings(
            value(f"{protocol}.session.timeout.ms"),
            value(f"{protocol}.heartbeat.interval.ms"),
            value(f"{protocol}.assignment.interval.ms"),
            value("consumer.regex.refresh.interval.ms") if is_consumer else NEVER_MS,
            value(f"{protocol}.max.size"),
            tuple(value(f"{protocol}.assignors")),
            classic_members.MIGRATIONS.get(value("consumer.migration.policy").lower(), ()) if is_consumer else (),
        )

    # What a group asks for.

    def write_group(self, group: ModernGroup, before: GroupSnapshot, after: GroupSnapshot) -> Waiting[bool]:
        """Write what has changed; on the first time also that there is no classic group any more.

        Share groups are in memory only.
        """
        records: list[Record] = []
        if isinstance(group, ShareGroup):
            return self._write(self.log.find(group.group_id), records, lambda: None)
        if self.groups.groups.get(group.group_id) is group:
            records = group_records.changes(group.group_id, before, after)
        else:
            records = [group_records.classic_tombstone(group.group_id)]
            records += group_records.changes(group.group_id, GroupSnapshot(), after)
        return self._write(self.log.find(group.group_id), records, lambda: None)

    def downgrade(self, group: ModernGroup, left: GroupSnapshot) -> Waiting[bool] | None:
        """Let the members that are left continue in a classic group, if that is allowed."""
        members_max = self.groups.limits.members_max
        if not isinstance(group, ConsumerGroup):
            return None
        if not classic_members.may_downgrade(left, group.settings(), members_max):
            return None
        index, before = self.log.find(group.group_id), group.snapshot
        made = self._classic_instead_of(group)
        classic_members.downgraded(left, made, self._image, int(self._kernel.now_ms))
        return self._write(index, group_records.tombstones(group.group_id, before), lambda: None)

    def _replay_group(self, record: GroupRecord) -> None:
        group = self.groups.groups.get(record.group_id)
        before = group.snapshot if isinstance(group, ConsumerGroup) else GroupSnapshot()
        after = record.apply(before)
        if after is None:
            if isinstance(group, ConsumerGroup):
                # Offsets that are left are those of a simple group.
                del self.groups.groups[record.group_id]
                if group.offsets:
                    self.groups.load(record.group_id).offsets = group.offsets
            return
        if after == before:
            return
        if not isinstance(group, ConsumerGroup):
            group = self.groups.groups[record.group_id] = self._consumer_group(record.group_id)
        group.snapshot = after

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
            if code == error_codes.NONE:
                apply()
            waiting.settle(True, code)

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


_Found = tuple[OffsetKey, Offset | None] | GroupRecord


class Groups:
    """The groups that this broker coordinates, by id."""

    def __init__(self, properties: Mapping[str, str], changed: Callable[[], None] = lambda: None) -> None:
        self.groups: dict[str, AnyGroup | ShareGroup] = {}
        self._changed = changed
        self.limits = GroupLimits.of(properties)
        self._initial_delay_ms = int(properties.get(INITIAL_DELAY, "0"))

    def create(self, group_id: str) -> Group:
        """Create a group of the classic protocol. Raises ApiError when there are too many."""
        self.check_room()
        return self.make(group_id)

    def check_room(self) -> None:
        """Check that there may be one more group. Raises ApiError."""
        if len(self.groups) >= GROUPS_MAX:
            self.groups = {name: each for name, each in self.groups.items() if not each.is_idle}
        if len(self.groups) >= GROUPS_MAX:
            raise ApiError(error_codes.GROUP_MAX_SIZE_REACHED)

    def load(self, group_id: str) -> AnyGroup | ShareGroup:
        """Return the group, creating it if needed, however many there are."""
        return self.groups.get(group_id) or self.make(group_id)

    def make(self, group_id: str) -> Group:
        """Make a group of the classic protocol."""
        made = self.groups[group_id] = Group(self._initial_delay_ms, self._changed, self.limits)
        return made

    def tick(self, now_ms: int) -> None:
        """Run what is due in every group."""
        for group in list(self.groups.values()):
            if now_ms >= group.next_tick_ms():
                group.tick(now_ms)

    def next_tick_ms(self) -> int:
        """Return the time of the next `tick`."""
        return min((group.next_tick_ms() for group in self.groups.values()), default=NEVER_MS)

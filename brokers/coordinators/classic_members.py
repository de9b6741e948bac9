"""Members of the classic protocol in a group of the consumer protocol, and the change from one protocol to the other.

While a group migrates (KIP-848, ConsumerGroupMigrationPolicy) some of its members still join and sync: the coordinator
assigns to them, too, and answers REBALANCE_IN_PROGRESS when they have to join again. A group changes with its first
member of the consumer protocol, and back with its last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from mockraft.brokers.coordinators.assignors import Assignment
from mockraft.brokers.coordinators.consumer_groups import Group
from mockraft.brokers.coordinators.consumer_protocol import ConsumerGroup, GroupSettings, Timer
from mockraft.brokers.coordinators.group_snapshot import ClassicSide, Description, GroupMember, GroupSnapshot
from mockraft.brokers.coordinators.members import CONSUMER, Joining, Member
from mockraft.brokers.coordinators.reconciliation import MemberState, Owned, Standing
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.image import ClusterImage
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError, WireError
from mockraft.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from mockraft.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

DOWNGRADE, UPGRADE = "downgrade", "upgrade"
MIGRATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "disabled": (),
    "downgrade": (DOWNGRADE,),
    "upgrade": (UPGRADE,),
    "bidirectional": (DOWNGRADE, UPGRADE),
}
"""Migrations allowed by each value of group.consumer.migration.policy."""
_VERSION_SIZE: Final = 2


class JoinedConsumers(NamedTuple):
    """The answer to a classic member's JoinGroup."""

    member_id: str
    epoch: int
    protocol: str


def check_join(group: ConsumerGroup, joining: Joining) -> None:
    """Check that a classic member may join. Raises ApiError."""
    if not group.settings().migrations:
        text = f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration"
        raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL, f"{text} is disabled.")
    group.check_room(joining.member_id, joining.instance_id)
    sides = [each.described.classic for each in group.snapshot.members.values() if each.described.classic is not None]
    common = set(joining.protocols).intersection(*(dict(side.protocols) for side in sides))
    if joining.protocol_type != CONSUMER or not common:
        text = f"Member {joining.member_id}'s protocols are not supported."
        raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL, text)


def join(group: ConsumerGroup, joining: Joining, now_ms: int, *, is_new: bool) -> tuple[JoinedConsumers, Waiting[bool]]:
    """Let a classic member join (classicGroupJoinToConsumerGroup); `is_new` if it came without a member id."""
    member_id, instance_id = joining.member_id, joining.instance_id
    snapshot = group.snapshot
    former_id = snapshot.static_id(instance_id)
    if instance_id is not None and not is_new:
        before = group.member(member_id, instance_id)
        draft = snapshot
    elif former_id is not None:
        former = snapshot.members[former_id]
        before = former._replace(standing=former.standing._replace(epoch=0, previous_epoch=0))
        draft = group.replaced(former_id, member_id, before)
    else:
        before = snapshot.members.get(member_id, GroupMember())
        draft = group.with_member(member_id, before)
    subscription = _subscription(next(iter(joining.protocols.values())))
    owned = {each.topic: frozenset(each.partitions) for each in subscription.owned_partitions}
    described = _described(joining, subscription)._replace(assignor=before.described.assignor)
    by_id = {topic.topic_id: owned[name] for name in owned if (topic := group.image.topics_by_name.get(name))}
    standing, waiting = group.advance(draft, member_id, (before, described), by_id, now_ms)
    group.stop_timer(Timer.JOIN, member_id)
    group.start_timer(Timer.SESSION, member_id, now_ms + joining.session_timeout_ms)
    group.start_timer(Timer.SYNC, member_id, now_ms + joining.rebalance_timeout_ms)
    return JoinedConsumers(member_id, standing.epoch, next(iter(joining.protocols))), waiting


def sync(
    group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int, agreed: tuple[str | None, str | None]
) -> tuple[bytes, int]:
    """Return a classic member's assignment, and its session timeout. `agreed` are the protocol type and protocol."""
    member, side = _classic(group, member_id, instance_id)
    _check_generation(member, epoch)
    if agreed[0] not in (None, CONSUMER) or agreed[1] not in (None, side.protocols[0][0]):
        raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
    standing = member.standing
    if group.snapshot.assignment_epoch > standing.epoch and standing.state is not MemberState.UNREVOKED_PARTITIONS:
        raise ApiError(error_codes.REBALANCE_IN_PROGRESS)
    version = int.from_bytes(side.protocols[0][1][:_VERSION_SIZE], "big", signed=True)
    return _written(standing.assigned, group.image, version), side.session_timeout_ms


def heartbeat(group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int, now_ms: int) -> None:
    """Renew a classic member's session; REBALANCE_IN_PROGRESS makes it rejoin."""
    member, side = _classic(group, member_id, instance_id)
    _check_generation(member, epoch)
    group.start_timer(Timer.SESSION, member_id, now_ms + side.session_timeout_ms)
    standing, snapshot = member.standing, group.snapshot
    waits = standing.state is MemberState.UNRELEASED_PARTITIONS and _waits_for_others(snapshot, member_id)
    if standing.is_reconciled_to(snapshot.assignment_epoch) or (waits and standing.epoch == snapshot.assignment_epoch):
        return
    expect_join(group, member_id, now_ms)
    raise ApiError(error_codes.REBALANCE_IN_PROGRESS)


def expect_join(group: ConsumerGroup, member_id: str, now_ms: int) -> None:
    """Remove a member that has been told to join again and does not."""
    if not group.has_timer(Timer.JOIN, member_id):
        timeout_ms = group.snapshot.members[member_id].described.rebalance_timeout_ms
        group.start_timer(Timer.JOIN, member_id, now_ms + timeout_ms)


def leave(group: ConsumerGroup, members: Iterable[tuple[str, str | None]]) -> tuple[list[int], Waiting[bool] | None]:
    """Remove members by (member id, instance id); return their errors, and what is written if any have left."""
    codes, left = [], []
    for member_id, instance_id in members:
        try:
            found_id = member_id or group.snapshot.static_id(instance_id) or ""
            group.member(found_id, instance_id)
            left.append(found_id)
            codes.append(error_codes.NONE)
        except ApiError as refused:
            codes.append(refused.error_code)
    return codes, group.fence(left) if left else None


# Migration.


def check_upgrade(classic: Group, settings: GroupSettings, group_id: str) -> None:
    """Check that a classic group may become one of the consumer protocol (validateOnlineUpgrade). Raises ApiError."""
    reason = ""
    if UPGRADE not in settings.migrations:
        reason = "online upgrade is disabled"
    elif classic.protocol_type != CONSUMER:
        reason = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > settings.members_max:
        reason = "the group size exceeds the consumer group maximum size"
    if reason:
        text = f"Cannot upgrade classic group {group_id} to consumer group because {reason}."
        raise ApiError(error_codes.GROUP_ID_NOT_FOUND, text)


def may_downgrade(left: GroupSnapshot, settings: GroupSettings, members_max: int) -> bool:
    """Return True if these members may continue in a classic group (validateOnlineDowngradeWithFencedMembers)."""
    are_classic = all(each.described.classic is not None for each in left.members.values())
    return are_classic and 0 < len(left.members) <= members_max and DOWNGRADE in settings.migrations


def upgraded(group_id: str, classic: Group, image: ClusterImage) -> GroupSnapshot:
    """Return a classic group's members with their assignments as those of the consumer protocol. Raises ApiError."""
    members, targets, epoch = {}, {}, classic.generation
    for member_id, member in classic.members.items():
        protocol = (
            classic.protocol if classic.protocol in member.joining.protocols else next(iter(member.joining.protocols))
        )
        try:
            subscription = _subscription(member.metadata(protocol))
            assigned = _read(member.assignment, image)
        except (ApiError, WireError):
            text = f"Cannot upgrade classic group {group_id} to consumer group because the embedded consumer protocol"
            raise ApiError(error_codes.GROUP_ID_NOT_FOUND, f"{text} is malformed.") from None
        owned = {topic_id: dict.fromkeys(sorted(indexes), epoch) for topic_id, indexes in assigned.items()}
        members[member_id] = GroupMember(
            _described(member.joining, subscription), Standing(epoch, epoch, MemberState.STABLE, owned)
        )
        targets[member_id] = assigned
    return GroupSnapshot(epoch, epoch, members=members, targets=targets)


def downgraded(snapshot: GroupSnapshot, classic: Group, image: ClusterImage, now_ms: int) -> None:
    """Let the members of a group, all classic, continue in an empty classic group, which rebalances."""
    members = {}
    for member_id, (described, standing) in snapshot.members.items():
        assert described.classic is not None
        joining = Joining(
            member_id,
            described.instance_id,
            described.classic.session_timeout_ms,
            described.rebalance_timeout_ms,
            CONSUMER,
            dict(described.classic.protocols),
            described.client_id,
            described.client_host,
        )
        members[member_id] = Member(joining)
        version = int.from_bytes(described.classic.protocols[0][1][:_VERSION_SIZE], "big", signed=True)
        members[member_id].assignment = _written(standing.assigned, image, version)
    classic.adopt(members, snapshot.epoch, now_ms)


def _classic(group: ConsumerGroup, member_id: str, instance_id: str | None) -> tuple[GroupMember, ClassicSide]:
    member = group.member(member_id, instance_id)
    if member.described.classic is None:
        text = f"Member {member_id} does not use the classic protocol."
        raise ApiError(error_codes.UNKNOWN_MEMBER_ID, text)
    return member, member.described.classic


def _check_generation(member: GroupMember, epoch: int) -> None:
    if epoch != member.standing.epoch:
        raise ApiError(error_codes.ILLEGAL_GENERATION)


def _waits_for_others(snapshot: GroupSnapshot, member_id: str) -> bool:
    """Return True while others have partitions of the member's target (waitingOnUnreleasedPartition)."""
    assigned = snapshot.members[member_id].standing.assigned
    wanted = {
        (topic_id, index)
        for topic_id, indexes in snapshot.targets.get(member_id, {}).items()
        for index in indexes.difference(assigned.get(topic_id, ()))
    }
    return not wanted.isdisjoint(snapshot.taken)


def _described(joining: Joining, subscription: ConsumerProtocolSubscription) -> Description:
    return Description(
        joining.instance_id,
        subscription.rack_id,
        joining.client_id,
        joining.client_host,
        frozenset(subscription.topics),
        "",
        joining.rebalance_timeout_ms,
        None,
        ClassicSide(joining.session_timeout_ms, tuple(joining.protocols.items())),
    )


def _subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Read a member's metadata. Raises ApiError."""
    version = _readable(metadata, ConsumerProtocolSubscription.max_version)
    try:
        return ConsumerProtocolSubscription.read_from(metadata, version, _VERSION_SIZE)[0]
    except WireError:
        raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL) from None


def _read(assignment: bytes, image: ClusterImage) -> Assignment:
    if not assignment:
        return {}
    version = _readable(assignment, ConsumerProtocolAssignment.max_version)
    read = ConsumerProtocolAssignment.read_from(assignment, version, _VERSION_SIZE)[0]
    return {
        topic.topic_id: frozenset(each.partitions)
        for each in read.assigned_partitions
        if (topic := image.topics_by_name.get(each.topic)) is not None
    }


def _readable(data: bytes, version_max: int) -> int:
    """Return the version in which to read: newer ones begin as the last known one."""
    return min(max(int.from_bytes(data[:_VERSION_SIZE], "big", signed=True), 0), version_max)


def _written(assigned: Owned, image: ClusterImage, version: int) -> bytes:
    version = min(max(version, 0), ConsumerProtocolAssignment.max_version)
    partitions = [
        TopicPartition(topic=image.topics[topic_id].name, partitions=sorted(indexes))
        for topic_id, indexes in assigned.items()
        if topic_id in image.topics
    ]
    body = ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=None).write(version)
    return version.to_bytes(_VERSION_SIZE, "big") + body

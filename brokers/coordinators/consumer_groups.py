"""Consumer groups of the classic protocol in the memory of one broker: members, generations, assignments, offsets.

Kafka's `ClassicGroup` and what `GroupMetadataManager` does with it, less static members: an instance id only names a
member. `group_coordinator` keeps the offsets. Time is an argument; `tick` ends sessions and phases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum

from mockraft.brokers.coordinators.group_limits import DEFAULT_LIMITS, GroupLimits
from mockraft.brokers.coordinators.members import (
    CONSUMER,
    Joined,
    Joining,
    Member,
    Offset,
    preferred_protocol,
    subscribed_topics,
)
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.serving.parked import NEVER_MS
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError

GROUPS_MAX = 1_000
PENDING_MAX = 1_000
"""Maximum number of member ids that a group has handed out and that have not joined; Kafka has no such limit."""
INITIAL_DELAY = "group.initial.rebalance.delay.ms"


class GroupState(Enum):
    """Kafka's ClassicGroupState, less Dead."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class Group:
    """One group. `offsets` are by (topic, partition). Methods raise ApiError.

    A member id is *pending* from when it is handed out until it joins (KIP-394); rebalances wait for it. Members that
    joined have to sync within the rebalance timeout. `changed` is called when waiting requests have results.
    """

    def __init__(
        self,
        initial_delay_ms: int = 0,
        changed: Callable[[], None] = lambda: None,
        limits: GroupLimits = DEFAULT_LIMITS,
    ) -> None:
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol = ""
        self.leader = ""
        self.members: dict[str, Member] = {}
        self.offsets: dict[tuple[str, int], Offset] = {}
        self._subscribed: set[str] | None = None
        self._limits = limits
        self._changed = changed
        self._pending: dict[str, int] = {}  # The ends of their sessions, none before `_pending_end_ms`.
        self._pending_end_ms = NEVER_MS
        self._to_sync: set[str] = set()
        # Of the join phase, and of the syncs after it.
        self._deadline_ms = NEVER_MS
        # The first rebalance of an empty group waits for others, longer when more of them join.
        self._initial_delay_ms = initial_delay_ms
        self._is_initial = self._has_new_member = False
        self._delay_left_ms = 0

    @property
    def is_idle(self) -> bool:
        """True if removing the group would lose nothing."""
        return not self.members and not self.offsets

    def check_delete(self) -> None:
        """Check that the group may be deleted: it has no members."""
        if self.state is not GroupState.EMPTY:
            raise ApiError(error_codes.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        """Check that offsets may be deleted: while there are members only in groups of consumers, which name topics."""
        if self.protocol_type != CONSUMER:
            self.check_delete()

    def is_subscribed_to(self, topic: str) -> bool:
        """Return True if a member of this generation subscribes to the topic, or if that is unknown."""
        if self._subscribed is None:
            return self.protocol_type == CONSUMER
        return topic in self._subscribed

    def check_known(self, joining: Joining, now_ms: int) -> None:
        """Check that a member may join with the id that it was given. Raises as `join`."""
        self._check(joining)
        if joining.member_id not in self.members and self._pending.get(joining.member_id, now_ms) <= now_ms:
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID)

    def expect(self, joining: Joining, now_ms: int) -> None:
        """Let the member join with its new id before its session is over (KIP-394)."""
        self._check(joining)
        if len(self._pending) >= PENDING_MAX:
            raise ApiError(error_codes.GROUP_MAX_SIZE_REACHED)
        self._pending[joining.member_id] = end_ms = now_ms + joining.session_timeout_ms
        self._pending_end_ms = min(self._pending_end_ms, end_ms)

    def join(self, joining: Joining, now_ms: int) -> Waiting[Joined]:
        """Join, or update the member; the result is the next generation, once all members have joined."""
        self._check(joining)
        self.protocol_type = joining.protocol_type
        self._pending.pop(joining.member_id, None)
        request: Waiting[Joined] = Waiting()
        known = self.members.get(joining.member_id)
        if known is None:
            self._replace_static(joining.instance_id)
            known = self.members[joining.member_id] = Member(joining)
            self._has_new_member = self.state is GroupState.PREPARING_REBALANCE
        elif self._changes_nothing(known, joining):
            self.touch(joining.member_id, now_ms)
            request.resolve(self._generation_for(joining.member_id))
            return request
        known.joining = joining
        known.join_request = request
        if self.state is not GroupState.PREPARING_REBALANCE:
            self._prepare(now_ms)
        self._complete_if_all_joined(now_ms)
        return request

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes],
        now_ms: int,
        agreed: tuple[str | None, str | None] = (None, None),
    ) -> Waiting[bytes]:
        """Request the member's assignment; there is one when the leader has sent all of them.

        `agreed` are the protocol type and the protocol, where the member says them.
        """
        member = self._member(member_id, generation)
        if agreed[0] not in (None, self.protocol_type) or agreed[1] not in (None, self.protocol):
            raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
        self.touch(member_id, now_ms)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise ApiError(error_codes.REBALANCE_IN_PROGRESS)
        request: Waiting[bytes] = Waiting()
        member.sync_request = request
        self._to_sync.discard(member_id)
        if not self._to_sync:
            self._deadline_ms = NEVER_MS
        if self.state is GroupState.COMPLETING_REBALANCE and member_id == self.leader:
            self.state = GroupState.STABLE
            for each_id, each in self.members.items():
                each.assignment = assignments.get(each_id, b"")
        if self.state is GroupState.STABLE:
            for each in self.members.values():
                each.resolve_sync(now_ms)
            self._changed()
        return request

    def heartbeat(self, member_id: str, generation: int, now_ms: int) -> None:
        """Renew the member's session; REBALANCE_IN_PROGRESS makes it rejoin."""
        self._member(member_id, generation)
        self.touch(member_id, now_ms)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise ApiError(error_codes.REBALANCE_IN_PROGRESS)

    def leave(self, member_id: str, instance_id: str | None, now_ms: int) -> None:
        """Remove the member, or a pending id; a static member may be given by its instance id alone."""
        if instance_id is not None and not member_id:
            member_id = next((k for k, each in self.members.items() if each.joining.instance_id == instance_id), "")
        if self._pending.pop(member_id, None) is None:
            if member_id not in self.members:
                raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
            self._drop(member_id)
        self._rebalance(now_ms)

    def check_commit(self, member_id: str, generation: int, now_ms: int, *, is_transactional: bool = False) -> None:
        """Check that this member may commit offsets: one of this generation, or anybody while the group is empty.

        In a transaction also producers that do not say for which member (before KIP-447).
        """
        if generation < 0 and self.state is GroupState.EMPTY:
            return
        if generation < 0 and not member_id:
            if not is_transactional:
                raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
            return
        self._member(member_id, generation)
        self.touch(member_id, now_ms)
        if self.state is GroupState.COMPLETING_REBALANCE and not is_transactional:
            raise ApiError(error_codes.REBALANCE_IN_PROGRESS)

    def dissolve(self, error_code: int) -> None:
        """Refuse all waiting requests: another broker coordinates the group now."""
        for member in self.members.values():
            if member.join_request is not None:
                member.join_request.refuse(error_code)
            member.refuse_sync(error_code)
        self._changed()

    def touch(self, member_id: str, now_ms: int) -> None:
        """Restart the member's session timeout."""
        if (member := self.members.get(member_id)) is not None:
            member.touch(now_ms)

    def tick(self, now_ms: int) -> None:
        """End the join or sync phase, pending ids and sessions whose time is over."""
        if now_ms >= self._deadline_ms:
            self._end_phase(now_ms)
        if now_ms >= self._pending_end_ms:
            self._pending = {each: end_ms for each, end_ms in self._pending.items() if now_ms < end_ms}
            self._pending_end_ms = min(self._pending.values(), default=NEVER_MS)
            self._complete_if_all_joined(now_ms)
        for member_id, member in list(self.members.items()):
            if now_ms >= member.expiry_ms and not member.waits and member_id in self.members:
                self._drop(member_id)
                self._rebalance(now_ms)

    def next_tick_ms(self) -> int:
        """Return the time of the next `tick`."""
        expiries = (each.expiry_ms for each in self.members.values() if not each.waits)
        return min(self._deadline_ms, self._pending_end_ms, *expiries)

    # Internals.

    def _check(self, joining: Joining) -> None:
        self._limits.check_session(joining.session_timeout_ms)
        if not self._accepts(joining.member_id):
            if joining.member_id in self.members:  # others were faster to join again
                self._drop(joining.member_id)
            raise ApiError(error_codes.GROUP_MAX_SIZE_REACHED)
        if not joining.protocol_type or not joining.protocols:
            raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
        if self.state is not GroupState.EMPTY and (
            joining.protocol_type != self.protocol_type
            or not set(joining.protocols).intersection(*(each.joining.protocols for each in self.members.values()))
        ):
            raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL)

    def _accepts(self, member_id: str) -> bool:
        """Return True if there is room (acceptJoiningMember): in a join phase only members that have rejoined count."""
        counted: Collection[str] = self.members
        if self.state is GroupState.PREPARING_REBALANCE:
            counted = {each_id for each_id, each in self.members.items() if each.join_request is not None}
        return not counted or member_id in counted or len(counted) < self._limits.members_max

    def _changes_nothing(self, known: Member, joining: Joining) -> bool:
        """Return True for a retry after a lost response; a leader that rejoins a stable group requests a rebalance."""
        is_alike = list(known.joining.protocols.items()) == list(joining.protocols.items())
        if self.state is GroupState.STABLE:
            return is_alike and joining.member_id != self.leader
        return is_alike and self.state is GroupState.COMPLETING_REBALANCE

    def _replace_static(self, instance_id: str | None) -> None:
        for member_id, member in list(self.members.items()):
            if instance_id is not None and member.joining.instance_id == instance_id:
                self._drop(member_id)

    def _member(self, member_id: str, generation: int) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
        if generation != self.generation:
            raise ApiError(error_codes.ILLEGAL_GENERATION)
        return member

    @property
    def _rebalance_timeout_ms(self) -> int:
        return max((each.joining.rebalance_timeout_ms for each in self.members.values()), default=0)

    def _rebalance(self, now_ms: int) -> None:
        """Begin or complete a join phase after somebody has left."""
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare(now_ms)
        self._complete_if_all_joined(now_ms)

    def _prepare(self, now_ms: int) -> None:
        """Begin a join phase (prepareRebalance)."""
        self._is_initial = self.state is GroupState.EMPTY
        self.state = GroupState.PREPARING_REBALANCE
        self._to_sync.clear()
        for member in self.members.values():
            if member.sync_request is not None:
                member.refuse_sync(error_codes.REBALANCE_IN_PROGRESS)
                member.touch(now_ms)
        self._changed()
        wait_ms = self._rebalance_timeout_ms
        if self._is_initial:
            self._delay_left_ms = max(wait_ms - self._initial_delay_ms, 0)
            wait_ms = self._initial_delay_ms
        self._deadline_ms = now_ms + wait_ms

    def _complete_if_all_joined(self, now_ms: int) -> None:
        if self.state is not GroupState.PREPARING_REBALANCE:
            return
        if self._is_initial:
            is_complete = self._initial_delay_ms == 0
        else:
            is_complete = not self._pending and all(each.join_request is not None for each in self.members.values())
        if is_complete:
            self._complete(now_ms)

    def _end_phase(self, now_ms: int) -> None:
        """End the join or sync phase, whose time is over, or extend an empty group's first one."""
        self._deadline_ms = NEVER_MS
        if self.state is not GroupState.PREPARING_REBALANCE:  # expirePendingSync
            late, self._to_sync = self._to_sync, set()
            for member_id in late:
                self._drop(member_id)
            if late:
                self._rebalance(now_ms)
        elif self._is_initial and self._has_new_member and self._delay_left_ms:
            self._has_new_member = False
            self._deadline_ms = now_ms + min(self._initial_delay_ms, self._delay_left_ms)
            self._delay_left_ms = max(self._delay_left_ms - self._initial_delay_ms, 0)
        else:
            self._complete(now_ms)

    def _complete(self, now_ms: int) -> None:
        """Complete the join phase: remove the members that have not joined, give the others the next generation."""
        self._deadline_ms = NEVER_MS
        self._is_initial = self._has_new_member = False
        for member_id in [member_id for member_id, each in self.members.items() if each.join_request is None]:
            self._drop(member_id)
        self.generation += 1
        if not self.members:
            self._subscribed = subscribed_topics(self.protocol_type, {}, self.protocol)
            self.state = GroupState.EMPTY
            return
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.protocol = preferred_protocol(self.members)
        self._subscribed = subscribed_topics(self.protocol_type, self.members, self.protocol)
        self.state = GroupState.COMPLETING_REBALANCE
        self._to_sync = set(self.members)
        self._deadline_ms = now_ms + self._rebalance_timeout_ms
        for member_id, member in self.members.items():
            request, member.join_request = member.join_request, None
            member.touch(now_ms)
            if request is not None:
                request.resolve(self._generation_for(member_id))
        self._changed()

    def _generation_for(self, member_id: str) -> Joined:
        members = [
            (each_id, each.joining.instance_id, each.metadata(self.protocol))
            for each_id, each in self.members.items()
            if member_id == self.leader
        ]
        return Joined(self.generation, self.protocol, self.leader, members)

    def _drop(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        if member.join_request is not None:
            member.join_request.refuse(error_codes.UNKNOWN_MEMBER_ID)
        member.refuse_sync(error_codes.UNKNOWN_MEMBER_ID)
        self._to_sync.discard(member_id)
        self._changed()


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

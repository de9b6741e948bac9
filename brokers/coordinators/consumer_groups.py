"""Consumer groups of the classic protocol in the memory of one broker: members, generations, assignments, offsets.

Kafka's `ClassicGroup` and what `GroupMetadataManager` does with it. A static member (KIP-345) is one with an instance
id: it stays in the group until its session ends, and whoever joins with its instance id and no member id takes its
place, which fences it. `group_coordinator` keeps the offsets. Time is an argument; `tick` ends sessions and phases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from mockraft.brokers.coordinators.members import (
    CONSUMER,
    Commit,
    GroupState,
    Joined,
    Joining,
    Member,
    Offset,
    preferred_protocol,
    subscribed_topics,
)
from mockraft.brokers.coordinators.transaction import TopicPartition
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.kafka_api.api import NEVER_MS
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError


class GroupLimits(NamedTuple):
    """Limits of every group; of members Kafka sets none by default."""

    session_min_ms: int = 6_000
    session_max_ms: int = 1_800_000
    members_max: int = 1_000

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> GroupLimits:
        """Return the limits of a broker's properties."""
        keys = ("group.min.session.timeout.ms", "group.max.session.timeout.ms", "group.max.size")
        return cls(*(int(properties.get(key, default)) for key, default in zip(keys, cls(), strict=True)))

    def check_session(self, timeout_ms: int) -> None:
        """Check a member's session timeout. Raises ApiError."""
        if not self.session_min_ms <= timeout_ms <= self.session_max_ms:
            raise ApiError(error_codes.INVALID_SESSION_TIMEOUT)


DEFAULT_LIMITS: Final = GroupLimits()


PENDING_MAX = 1_000
"""Maximum number of member ids that a group has handed out and that have not joined; Kafka has no such limit."""
PHASE_MIN_MS = 100


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
        self._deadline_ms = NEVER_MS  # Of the join phase, and of the syncs after it.
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
        if self._pending.get(joining.member_id, now_ms) <= now_ms:
            self._member(joining.member_id, joining.instance_id)
        elif joining.instance_id is not None:
            raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)

    def expect(self, joining: Joining, now_ms: int) -> None:
        """Let the member join with its new id before its session is over (KIP-394)."""
        self._check(joining)
        if len(self._pending) >= PENDING_MAX:
            raise ApiError(error_codes.GROUP_MAX_SIZE_REACHED)
        self._pending[joining.member_id] = end_ms = now_ms + joining.session_timeout_ms
        self._pending_end_ms = min(self._pending_end_ms, end_ms)

    def join(self, joining: Joining, now_ms: int, *, can_skip: bool = False) -> Waiting[Joined]:
        """Join, or update the member; the result is the next generation, once all members have joined.

        A static member that takes its place again gets the current one; `can_skip` if it knows that it then makes no
        assignment (KIP-814).
        """
        self._check(joining)
        self.protocol_type = joining.protocol_type
        self._pending.pop(joining.member_id, None)
        request: Waiting[Joined] = Waiting()
        known = self.members.get(joining.member_id)
        if known is None and (former_id := self._static_id(joining.instance_id)) is not None:
            leader = self.leader
            known = self._replace(former_id, joining, now_ms)
            if self.state is GroupState.STABLE and preferred_protocol(self.members) == self.protocol:
                found = self._generation_for(joining.member_id)
                skips = self.leader == joining.member_id
                request.resolve(found._replace(skips=skips) if can_skip else found._replace(leader=leader, members=()))
                return request
        elif known is None:
            known = self.members[joining.member_id] = Member(joining)
            self._has_new_member = self.state is GroupState.PREPARING_REBALANCE
        elif self._changes_nothing(known, joining):
            known.touch(now_ms)
            request.resolve(self._generation_for(joining.member_id))
            return request
        known.update(joining)
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
        instance_id: str | None = None,
    ) -> Waiting[bytes]:
        """Request the member's assignment; there is one when the leader has sent all of them.

        `agreed` are the protocol type and the protocol, where the member says them.
        """
        member = self._member(member_id, instance_id, generation)
        if agreed[0] not in (None, self.protocol_type) or agreed[1] not in (None, self.protocol):
            raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
        member.touch(now_ms)
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

    def heartbeat(self, member_id: str, generation: int, now_ms: int, instance_id: str | None = None) -> None:
        """Renew the member's session; REBALANCE_IN_PROGRESS makes it rejoin."""
        self._member(member_id, instance_id, generation).touch(now_ms)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise ApiError(error_codes.REBALANCE_IN_PROGRESS)

    def leave(self, members: Iterable[tuple[str, str | None]], now_ms: int) -> list[int]:
        """Remove members, or pending ids, by (member id, instance id), and rebalance once; return their errors.

        A static member may be given by its instance id alone, without a member id.
        """
        codes = []
        for given_id, instance_id in members:
            member_id = given_id or self._static_id(instance_id) or ""
            try:
                if self._pending.pop(member_id, None) is None:
                    self._member(member_id, instance_id)
                    self._drop(member_id)
                codes.append(error_codes.NONE)
            except ApiError as refused:
                codes.append(refused.error_code)
        if error_codes.NONE in codes:
            self._rebalance(now_ms)
        return codes

    def check_commit(self, commit: Commit, _partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Check that this member may commit offsets: one of this generation, or anybody while the group is empty.

        In a transaction also producers that do not say for which member (before KIP-447).
        """
        member_id, generation, instance_id, _, is_transactional = commit
        if generation < 0 and self.state is GroupState.EMPTY:
            return
        if generation < 0 and not member_id and instance_id is None:
            if not is_transactional:
                raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
            return
        self._member(member_id, instance_id, generation).touch(now_ms)
        if self.state is GroupState.COMPLETING_REBALANCE and not is_transactional:
            raise ApiError(error_codes.REBALANCE_IN_PROGRESS)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Anybody may read offsets."""

    def dissolve(self, error_code: int) -> None:
        """Refuse all waiting requests: another broker coordinates the group now."""
        for member in self.members.values():
            member.refuse(error_code)
        self._changed()

    def adopt(self, members: dict[str, Member], generation: int, now_ms: int) -> None:
        """Continue with the members of a group of the consumer protocol, and rebalance (fromConsumerGroup)."""
        self.state, self.generation, self.protocol_type = GroupState.STABLE, generation, CONSUMER
        self.members = members
        self.leader, self.protocol = next(iter(members)), preferred_protocol(members)
        self._subscribed = subscribed_topics(CONSUMER, members, self.protocol)
        for member in members.values():
            member.touch(now_ms)
        self._rebalance(now_ms)

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
        if (
            not joining.protocol_type
            or not set(joining.protocols).intersection(*(each.joining.protocols for each in self.members.values()))
            or (self.state is not GroupState.EMPTY and joining.protocol_type != self.protocol_type)
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

    def _replace(self, former_id: str, joining: Joining, now_ms: int) -> Member:
        """Fence the static member and return the one in its place (replaceStaticMember)."""
        former = self.members.pop(former_id)
        # As in Kafka the former id is still one that has to sync.
        former.refuse(error_codes.FENCED_INSTANCE_ID)
        member = self.members[joining.member_id] = former.successor(joining)
        member.touch(now_ms)
        if self.leader == former_id:
            self.leader = joining.member_id
        self._changed()
        return member

    def _static_id(self, instance_id: str | None) -> str | None:
        """Return the id of the static member; None if there is none."""
        if instance_id is None:
            return None
        return next((key for key, each in self.members.items() if each.joining.instance_id == instance_id), None)

    def _member(self, member_id: str, instance_id: str | None, generation: int | None = None) -> Member:
        """Return the member. ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION (validateMember)."""
        if instance_id is not None and self._static_id(instance_id) not in (None, member_id):
            raise ApiError(error_codes.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None or (instance_id is not None and member.joining.instance_id != instance_id):
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
        if generation not in (None, self.generation):
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
        keeps_assignments = self.state is GroupState.STABLE
        self.state = GroupState.PREPARING_REBALANCE
        self._to_sync.clear()
        for member in self.members.values():
            member.assignment = member.assignment if keeps_assignments else b""
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
            for member_id in late.intersection(self.members):
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
        """Complete the join phase: remove the members that have not joined, give the others the next generation.

        Static members stay, but if nobody has joined the phase goes on.
        """
        self._deadline_ms = NEVER_MS
        self._is_initial = self._has_new_member = False
        for member_id, member in list(self.members.items()):
            if member.join_request is None and member.joining.instance_id is None:
                self._drop(member_id)
        leaders = [member_id for member_id, each in self.members.items() if each.join_request is not None]
        if self.members and not leaders:
            self._deadline_ms = now_ms + max(self._rebalance_timeout_ms, PHASE_MIN_MS)
            return
        self.generation += 1
        if not self.members:
            self._subscribed = subscribed_topics(self.protocol_type, {}, self.protocol)
            self.state = GroupState.EMPTY
            return
        if self.leader not in leaders:
            self.leader = leaders[0]
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
        self.members.pop(member_id).refuse(error_codes.UNKNOWN_MEMBER_ID)
        self._to_sync.discard(member_id)
        if self.leader == member_id:
            self.leader = next(iter(self.members), "")
        self._changed()

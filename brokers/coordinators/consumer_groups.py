"""Consumer groups of the classic protocol in the memory of one broker: members, generations, assignments, offsets.

Only what `subscribe` of Kafka's clients needs (Kafka's `GroupCoordinator` before KIP-848). `group_coordinator` keeps
the offsets. Time is an argument; `tick` ends sessions and join phases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mockraft.brokers.coordinators.group_limits import DEFAULT_LIMITS, GroupLimits
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.serving.parked import NEVER_MS
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError, WireError
from mockraft.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

GROUPS_MAX = 1_000
CONSUMER = "consumer"
"""The protocol type of consumers, whose metadata is a ConsumerProtocolSubscription."""
INITIAL_DELAY = "group.initial.rebalance.delay.ms"


class GroupState(Enum):
    """Kafka's ClassicGroupState, less Dead."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class Offset(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str | None


class Joining(NamedTuple):
    """A member's description; `protocols` are its assignors in order of preference, with their metadata."""

    member_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Mapping[str, bytes]
    client_id: str = ""
    client_host: str = ""


class Joined(NamedTuple):
    """A generation as one member sees it; only the leader gets all members' (id, instance id, metadata)."""

    generation: int
    protocol: str
    leader: str
    members: Sequence[tuple[str, str | None, bytes]]


class Member:
    """A member; `join_request` and `sync_request` are its waiting requests, if any."""

    def __init__(self, joining: Joining) -> None:
        self.joining = joining
        self.assignment = b""
        self.join_request: Waiting[Joined] | None = None
        self.sync_request: Waiting[bytes] | None = None
        self.expiry_ms = NEVER_MS

    def metadata(self, protocol: str) -> bytes:
        """Return the member's metadata for an assignor."""
        return self.joining.protocols[protocol]

    def refuse_sync(self, error_code: int) -> None:
        """End the wait for an assignment."""
        if self.sync_request is not None:
            self.sync_request.refuse(error_code)
        self.sync_request = None


class Group:
    """One group. `offsets` are by (topic, partition). Methods raise ApiError.

    `changed` is called when waiting requests have results.
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
        self._expected: dict[str, int] = {}  # The ends of the sessions of member ids that were handed out.
        self._limits = limits
        self._initial_delay_ms = initial_delay_ms
        self._is_waiting_for_first = False
        self._deadline_ms = NEVER_MS
        self._changed = changed

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

    def check_known(self, member_id: str, now_ms: int) -> None:
        """Check that the member id was handed out."""
        if member_id not in self.members and self._expected.get(member_id, now_ms) <= now_ms:
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID)

    def expect(self, joining: Joining, now_ms: int) -> None:
        """Let the member join with its new id before its session is over (KIP-394)."""
        self._check(joining)
        self._expected = {each: expiry_ms for each, expiry_ms in self._expected.items() if expiry_ms > now_ms}
        self._expected[joining.member_id] = now_ms + joining.session_timeout_ms

    def join(self, joining: Joining, now_ms: int) -> Waiting[Joined]:
        """Join, or update the member; the result is the next generation, once all members have joined."""
        self._check(joining)
        self.protocol_type = joining.protocol_type
        self._expected.pop(joining.member_id, None)
        request: Waiting[Joined] = Waiting()
        known = self.members.get(joining.member_id)
        if known is None:
            self._replace_static(joining.instance_id)
            known = self.members[joining.member_id] = Member(joining)
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
        if self.state is GroupState.COMPLETING_REBALANCE and member_id == self.leader:
            self.state = GroupState.STABLE
            for each_id, each in self.members.items():
                each.assignment = assignments.get(each_id, b"")
        if self.state is GroupState.STABLE:
            for each in self.members.values():
                if each.sync_request is not None:
                    each.sync_request.resolve(each.assignment)
                    each.sync_request = None
            self._changed()
        return request

    def heartbeat(self, member_id: str, generation: int, now_ms: int) -> None:
        """Renew the member's session; REBALANCE_IN_PROGRESS makes it rejoin."""
        self._member(member_id, generation)
        self.touch(member_id, now_ms)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise ApiError(error_codes.REBALANCE_IN_PROGRESS)

    def leave(self, member_id: str, instance_id: str | None, now_ms: int) -> None:
        """Remove the member; a static one may be given by its instance id alone."""
        if instance_id is not None and not member_id:
            member_id = next((k for k, each in self.members.items() if each.joining.instance_id == instance_id), "")
        if member_id not in self.members:
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID)
        self._remove(member_id, now_ms)

    def check_commit(self, member_id: str, generation: int, now_ms: int, *, is_transactional: bool = False) -> None:
        """Check that this member may commit offsets: one of this generation, or anybody while the group is empty.

        In a transaction also producers that do not say for which member (before KIP-447).
        """
        if generation < 0 and not member_id:
            if self.members and not is_transactional:
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
            member.expiry_ms = now_ms + member.joining.session_timeout_ms

    def tick(self, now_ms: int) -> None:
        """End the join phase and the sessions that are over."""
        if now_ms >= self._deadline_ms:
            self._complete(now_ms)
        for member_id, member in list(self.members.items()):
            if now_ms >= member.expiry_ms and member.join_request is None and member_id in self.members:
                self._remove(member_id, now_ms)

    def next_tick_ms(self) -> int:
        """Return the time of the next `tick`."""
        expiries = (each.expiry_ms for each in self.members.values() if each.join_request is None)
        return min(self._deadline_ms, *expiries, NEVER_MS)

    # Internals.

    def _check(self, joining: Joining) -> None:
        self._limits.check_session(joining.session_timeout_ms)
        others = [each for member_id, each in self.members.items() if member_id != joining.member_id]
        if not joining.protocol_type or not joining.protocols:
            raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
        if others and (
            joining.protocol_type != self.protocol_type
            or not set(joining.protocols).intersection(*(each.joining.protocols for each in others))
        ):
            raise ApiError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
        if len(others) >= self._limits.members_max:
            raise ApiError(error_codes.GROUP_MAX_SIZE_REACHED)

    def _changes_nothing(self, known: Member, joining: Joining) -> bool:
        """True for a follower's retry after a lost response; a leader that rejoins requests a rebalance."""
        is_settled = self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)
        return is_settled and known.joining == joining and joining.member_id != self.leader

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

    def _prepare(self, now_ms: int) -> None:
        was_empty = self.state is GroupState.EMPTY
        self.state = GroupState.PREPARING_REBALANCE
        for member in self.members.values():
            member.refuse_sync(error_codes.REBALANCE_IN_PROGRESS)
        self._changed()
        wait_ms = max((each.joining.rebalance_timeout_ms for each in self.members.values()), default=0)
        self._is_waiting_for_first = was_empty and self._initial_delay_ms > 0
        self._deadline_ms = now_ms + (self._initial_delay_ms if self._is_waiting_for_first else wait_ms)

    def _complete_if_all_joined(self, now_ms: int) -> None:
        if self.state is not GroupState.PREPARING_REBALANCE or self._is_waiting_for_first:
            return
        if all(member.join_request is not None for member in self.members.values()):
            self._complete(now_ms)

    def _complete(self, now_ms: int) -> None:
        """Complete the join phase: remove the members that have not joined, give the others the next generation."""
        self._deadline_ms = NEVER_MS
        self._is_waiting_for_first = False
        for member_id in [member_id for member_id, each in self.members.items() if each.join_request is None]:
            self._drop(member_id)
        self.generation += 1
        if not self.members:
            self._subscribed = self._subscriptions()
            self.state = GroupState.EMPTY
            return
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.protocol = self._vote()
        self._subscribed = self._subscriptions()
        self.state = GroupState.COMPLETING_REBALANCE
        for member_id, member in self.members.items():
            request, member.join_request = member.join_request, None
            self.touch(member_id, now_ms)
            if request is not None:
                request.resolve(self._generation_for(member_id))
        self._changed()

    def _vote(self) -> str:
        """Return the assignor that most members prefer among those that all support."""
        common = set.intersection(*(set(each.joining.protocols) for each in self.members.values()))
        votes = [next(name for name in each.joining.protocols if name in common) for each in self.members.values()]
        return max(votes, key=votes.count)

    def _subscriptions(self) -> set[str] | None:
        """Return the members' topics (computeSubscribedTopics); None for other protocols and unreadable metadata."""
        if self.protocol_type != CONSUMER:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            # Version 0 is the beginning of every version; the version comes first.
            try:
                topics.update(ConsumerProtocolSubscription.read_from(member.metadata(self.protocol), 0, 2)[0].topics)
            except WireError:
                return None
        return topics

    def _generation_for(self, member_id: str) -> Joined:
        members = [
            (each_id, each.joining.instance_id, each.metadata(self.protocol))
            for each_id, each in self.members.items()
            if member_id == self.leader
        ]
        return Joined(self.generation, self.protocol, self.leader, members)

    def _remove(self, member_id: str, now_ms: int) -> None:
        self._drop(member_id)
        if self.state is not GroupState.PREPARING_REBALANCE:
            self._prepare(now_ms)
        self._complete_if_all_joined(now_ms)

    def _drop(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        if member.join_request is not None:
            member.join_request.refuse(error_codes.UNKNOWN_MEMBER_ID)
        member.refuse_sync(error_codes.UNKNOWN_MEMBER_ID)
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

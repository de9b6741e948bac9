"""Consumer groups of the classic protocol in the memory of one broker: members, generations, assignments, offsets.

Only what `subscribe` of Kafka's clients needs (Kafka's `GroupCoordinator` before KIP-848). The state is lost with its
broker: nothing is written to `__consumer_offsets`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mockraft.wire import error_codes

SESSION_TIMEOUT_MIN_MS = 6_000
SESSION_TIMEOUT_MAX_MS = 1_800_000
MEMBERS_MAX = 1_000
GROUPS_MAX = 1_000
INITIAL_DELAY = "group.initial.rebalance.delay.ms"


class GroupError(Exception):
    """A member's request is refused with this error code."""

    def __init__(self, error_code: int) -> None:
        super().__init__(error_codes.name(error_code))
        self.error_code = error_code


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
    """A member's own description; `protocols` are its assignors in its order of preference, with their
    metadata.
    """

    member_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Mapping[str, bytes]


class Joined(NamedTuple):
    """A generation as one member sees it; only the leader gets all members' (id, instance id, metadata)."""

    generation: int
    protocol: str
    leader: str
    members: Sequence[tuple[str, str | None, bytes]]


class Member:
    """A member; `joined` and `synced` are the futures of its waiting requests, if any."""

    def __init__(self, joining: Joining) -> None:
        self.joining = joining
        self.assignment = b""
        self.joined: asyncio.Future[Joined] | None = None
        self.synced: asyncio.Future[bytes] | None = None
        self.expiry: asyncio.TimerHandle | None = None


class Group:
    """One group. `offsets` are by (topic, partition). Methods raise GroupError."""

    def __init__(self, initial_delay_ms: int = 0) -> None:
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol = ""
        self.leader = ""
        self.members: dict[str, Member] = {}
        self.offsets: dict[tuple[str, int], Offset] = {}
        self._initial_delay_ms = initial_delay_ms
        self._is_waiting_for_first = False
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """True if removing the group would lose nothing."""
        return not self.members and not self.offsets

    async def join(self, joining: Joining) -> Joined:
        """Join, or update the member; return the next generation once all members have joined."""
        self._check(joining)
        known = self.members.get(joining.member_id)
        if known is None:
            self._replace_static(joining.instance_id)
            known = self.members[joining.member_id] = Member(joining)
        elif self._changes_nothing(known, joining):
            self.touch(joining.member_id)
            return self._generation_for(joining.member_id)
        known.joining = joining
        joined: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        known.joined = joined
        if self.state is not GroupState.PREPARING_REBALANCE:
            self._prepare()
        self._complete_if_all_joined()
        try:
            return await joined
        finally:
            if known.joined is joined:
                known.joined = None
                self.touch(joining.member_id)

    async def sync(self, member_id: str, generation: int, assignments: Mapping[str, bytes]) -> bytes:
        """Return the member's assignment, once the leader has sent all of them."""
        member = self._member(member_id, generation)
        self.touch(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise GroupError(error_codes.REBALANCE_IN_PROGRESS)
        if self.state is GroupState.COMPLETING_REBALANCE and member_id == self.leader:
            self.state = GroupState.STABLE
            for each_id, each in self.members.items():
                each.assignment = assignments.get(each_id, b"")
                _resolve(each.synced, each.assignment)
        if self.state is GroupState.STABLE:
            return member.assignment
        synced: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        member.synced = synced
        try:
            return await synced
        finally:
            if member.synced is synced:
                member.synced = None

    def heartbeat(self, member_id: str, generation: int) -> None:
        """Renew the member's session; REBALANCE_IN_PROGRESS makes it rejoin."""
        self._member(member_id, generation)
        self.touch(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise GroupError(error_codes.REBALANCE_IN_PROGRESS)

    def leave(self, member_id: str, instance_id: str | None = None) -> None:
        """Remove the member; a static one may be given by its instance id alone."""
        if instance_id is not None and not member_id:
            member_id = next((k for k, each in self.members.items() if each.joining.instance_id == instance_id), "")
        if member_id not in self.members:
            raise GroupError(error_codes.UNKNOWN_MEMBER_ID)
        self._remove(member_id)

    def check_commit(self, member_id: str, generation: int) -> None:
        """Check that this member may commit offsets: one of this generation, or anybody while the group is empty."""
        if generation < 0 and not member_id:
            if self.members:
                raise GroupError(error_codes.UNKNOWN_MEMBER_ID)
            return
        self._member(member_id, generation)
        self.touch(member_id)
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise GroupError(error_codes.REBALANCE_IN_PROGRESS)

    def touch(self, member_id: str) -> None:
        """Restart the member's session timeout."""
        member = self.members.get(member_id)
        if member is None:
            return
        if member.expiry is not None:
            member.expiry.cancel()
        wait_s = member.joining.session_timeout_ms / 1000
        member.expiry = asyncio.get_running_loop().call_later(wait_s, self._expire, member_id)

    def close(self) -> None:
        """Cancel all timers."""
        for member in self.members.values():
            if member.expiry is not None:
                member.expiry.cancel()
        if self._deadline is not None:
            self._deadline.cancel()

    # Internals.

    def _check(self, joining: Joining) -> None:
        if not SESSION_TIMEOUT_MIN_MS <= joining.session_timeout_ms <= SESSION_TIMEOUT_MAX_MS:
            raise GroupError(error_codes.INVALID_SESSION_TIMEOUT)
        others = [each for member_id, each in self.members.items() if member_id != joining.member_id]
        if not joining.protocol_type or not joining.protocols:
            raise GroupError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
        if others and (
            joining.protocol_type != self.protocol_type
            or not set(joining.protocols).intersection(*(each.joining.protocols for each in others))
        ):
            raise GroupError(error_codes.INCONSISTENT_GROUP_PROTOCOL)
        if len(others) >= MEMBERS_MAX:
            raise GroupError(error_codes.GROUP_MAX_SIZE_REACHED)
        self.protocol_type = joining.protocol_type

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
            raise GroupError(error_codes.UNKNOWN_MEMBER_ID)
        if generation != self.generation:
            raise GroupError(error_codes.ILLEGAL_GENERATION)
        return member

    def _prepare(self) -> None:
        was_empty = self.state is GroupState.EMPTY
        self.state = GroupState.PREPARING_REBALANCE
        for member in self.members.values():
            _refuse(member.synced, error_codes.REBALANCE_IN_PROGRESS)
        wait_ms = max((each.joining.rebalance_timeout_ms for each in self.members.values()), default=0)
        if was_empty and self._initial_delay_ms:
            wait_ms = self._initial_delay_ms
        if self._deadline is not None:
            self._deadline.cancel()
        self._is_waiting_for_first = was_empty and self._initial_delay_ms > 0
        self._deadline = asyncio.get_running_loop().call_later(wait_ms / 1000, self._complete)

    def _complete_if_all_joined(self) -> None:
        if self.state is not GroupState.PREPARING_REBALANCE or self._is_waiting_for_first:
            return
        if all(member.joined is not None for member in self.members.values()):
            self._complete()

    def _complete(self) -> None:
        """Complete the join phase: remove the members that have not joined, give the others the next generation."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._is_waiting_for_first = False
        for member_id in [member_id for member_id, each in self.members.items() if each.joined is None]:
            self._drop(member_id)
        self.generation += 1
        if not self.members:
            self.state = GroupState.EMPTY
            return
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.protocol = self._vote()
        self.state = GroupState.COMPLETING_REBALANCE
        for member_id, member in self.members.items():
            joined, member.joined = member.joined, None
            self.touch(member_id)
            if joined is not None and not joined.done():
                joined.set_result(self._generation_for(member_id))

    def _vote(self) -> str:
        """Return the assignor that most members prefer among those that all support."""
        common = set.intersection(*(set(each.joining.protocols) for each in self.members.values()))
        votes = [next(name for name in each.joining.protocols if name in common) for each in self.members.values()]
        return max(votes, key=votes.count)

    def _generation_for(self, member_id: str) -> Joined:
        members = [
            (each_id, each.joining.instance_id, each.joining.protocols[self.protocol])
            for each_id, each in self.members.items()
            if member_id == self.leader
        ]
        return Joined(self.generation, self.protocol, self.leader, members)

    def _expire(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is None or member.joined is not None:
            return
        self._remove(member_id)

    def _remove(self, member_id: str) -> None:
        self._drop(member_id)
        if self.state is not GroupState.PREPARING_REBALANCE:
            self._prepare()
        self._complete_if_all_joined()

    def _drop(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        if member.expiry is not None:
            member.expiry.cancel()
        _refuse(member.joined, error_codes.UNKNOWN_MEMBER_ID)
        _refuse(member.synced, error_codes.UNKNOWN_MEMBER_ID)


class Groups:
    """The groups that this broker coordinates, by id."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.groups: dict[str, Group] = {}
        self._initial_delay_ms = int(properties.get(INITIAL_DELAY, "0"))

    def find(self, group_id: str) -> Group:
        """Return the group, creating it if needed. Raises GroupError when there are too many."""
        group = self.groups.get(group_id)
        if group is None:
            if len(self.groups) >= GROUPS_MAX:
                self.groups = {name: each for name, each in self.groups.items() if not each.is_idle}
            if len(self.groups) >= GROUPS_MAX:
                raise GroupError(error_codes.GROUP_MAX_SIZE_REACHED)
            group = self.groups[group_id] = Group(self._initial_delay_ms)
        return group

    def new_member_id(self, client_id: str | None) -> str:
        """Return an unused member id."""
        return f"{client_id or ''}-{secrets.token_hex(16)}"

    def close(self) -> None:
        """Cancel all timers."""
        for group in self.groups.values():
            group.close()


def _resolve(waiting: asyncio.Future[bytes] | None, assignment: bytes) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(assignment)


def _refuse(waiting: asyncio.Future[Joined] | asyncio.Future[bytes] | None, error_code: int) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_exception(GroupError(error_code))

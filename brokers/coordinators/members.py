"""Members of consumer groups of the classic protocol, what state they are in together, their assignor and topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.kafka_api.api import NEVER_MS
from mockraft.wire.errors import WireError
from mockraft.wire.java_values import in_hash_map_order
from mockraft.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER = "consumer"
"""The protocol type of consumers, whose metadata is a ConsumerProtocolSubscription."""


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
    metadata: str


class Commit(NamedTuple):
    """The sender of a commit of offsets; `epoch` is the generation or the member epoch."""

    member_id: str
    epoch: int
    instance_id: str | None
    api_version: int
    is_transactional: bool = False


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
    """A generation as one member sees it; only the leader gets all members' (id, instance id, metadata).

    With `skips` the leader makes no assignment: all members keep theirs.
    """

    generation: int
    protocol: str
    leader: str
    members: Sequence[tuple[str, str | None, bytes]]
    skips: bool = False


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

    def update(self, joining: Joining) -> None:
        """Take the protocols and timeouts of a later request to join."""
        _, _, session_timeout_ms, rebalance_timeout_ms, protocol_type, protocols, *_ = joining
        self.joining = self.joining._replace(
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=protocol_type,
            protocols=protocols,
        )

    def successor(self, joining: Joining) -> Member:
        """Return the static member that takes this one's place, with its assignment."""
        member = Member(self.joining._replace(member_id=joining.member_id))
        member.update(joining)
        member.assignment = self.assignment
        return member

    @property
    def waits(self) -> bool:
        """True if one of its requests waits: its session does not end then."""
        return self.join_request is not None or self.sync_request is not None

    def touch(self, now_ms: int) -> None:
        """Restart its session timeout."""
        self.expiry_ms = now_ms + self.joining.session_timeout_ms

    def resolve_sync(self, now_ms: int) -> None:
        """Give it its assignment if it waits for that."""
        if self.sync_request is not None:
            self.sync_request.resolve(self.assignment)
            self.sync_request = None
            self.touch(now_ms)

    def refuse(self, error_code: int) -> None:
        """End all its waits."""
        if self.join_request is not None:
            self.join_request.refuse(error_code)
        self.refuse_sync(error_code)

    def refuse_sync(self, error_code: int) -> None:
        """End the wait for an assignment."""
        if self.sync_request is not None:
            self.sync_request.refuse(error_code)
        self.sync_request = None


def preferred_protocol(members: Mapping[str, Member]) -> str:
    """Return the assignor that most members prefer among those that all support."""
    common = set.intersection(*(set(each.joining.protocols) for each in members.values()))
    votes = Counter(next(name for name in each.joining.protocols if name in common) for each in members.values())
    # Between assignors with as many votes the order of Kafka's hash map decides.
    return max(in_hash_map_order(votes), key=lambda entry: entry[1])[0]


def subscribed_topics(protocol_type: str, members: Mapping[str, Member], protocol: str) -> set[str] | None:
    """Return the members' topics (computeSubscribedTopics); None for other protocols and unreadable metadata."""
    if protocol_type != CONSUMER:
        return None
    topics: set[str] = set()
    for member in members.values():
        # Version 0 is the beginning of every version; the version comes first.
        try:
            topics.update(ConsumerProtocolSubscription.read_from(member.metadata(protocol), 0, 2)[0].topics)
        except WireError:
            return None
    return topics

"""Assignors of the coordinator: which member of a consumer group is to own which partitions.

`uniform` gives every member as many partitions and moves few (UniformHomogeneousAssignmentBuilder,
UniformHeterogeneousAssignmentBuilder); `range` gives contiguous ones, the same of each topic (RangeAssignor).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from mockraft.wire.java_values import in_hash_map_order

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""
PartitionCounts = Mapping[bytes, int]

BALANCING_ROUNDS: Final = 16


class Subscriber(NamedTuple):
    """A member as an assignor sees it: its topics, and the partitions that it was to own so far."""

    instance_id: str | None
    topics: frozenset[bytes]
    assigned: Assignment


Subscribers = Mapping[str, Subscriber]
Assignor = Callable[[Subscribers, PartitionCounts], dict[str, Assignment]]


def assign_uniformly(members: Subscribers, counts: PartitionCounts) -> dict[str, Assignment]:
    """Balance the numbers of partitions, and let members keep what they have."""
    ordered = dict(in_hash_map_order(members))
    if len({member.topics for member in ordered.values()}) == 1:
        return _Homogeneous(ordered, counts).assign()
    return _Heterogeneous(ordered, counts).assign()


def assign_ranges(members: Subscribers, counts: PartitionCounts) -> dict[str, Assignment]:
    """Give each member a range of every topic; static members come first, by their instance ids."""
    by_name = sorted(members, key=lambda each: (members[each].instance_id is None, members[each].instance_id or each))
    found: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in by_name}
    for topic_id in sorted(set().union(*(member.topics for member in members.values()))):
        subscribers = [member_id for member_id in by_name if topic_id in members[member_id].topics]
        quota, extra = divmod(counts[topic_id], len(subscribers))
        start = 0
        for at, member_id in enumerate(subscribers):
            end = start + quota + (at < extra)
            if start < end:
                found[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(found)


def assign_shares(members: Subscribers, counts: PartitionCounts) -> dict[str, Assignment]:
    """Share partitions so that each has members, and members have as many; keep what they have (SimpleAssignor)."""
    ordered = dict(in_hash_map_order(members))
    topics = set().union(*(member.topics for member in ordered.values()))
    pools = [[topic_id] for topic_id in topics]
    if all(member.topics == topics for member in ordered.values()):
        pools = [_in_hash_set_order(topics)]
    found: dict[str, list[tuple[bytes, int]]] = {member_id: [] for member_id in ordered}
    for pool in pools:
        every = [(topic_id, index) for topic_id in pool for index in range(counts[topic_id])]
        sharers = [member_id for member_id, member in ordered.items() if member.topics.issuperset(pool)]
        if every:
            _share(every, sharers, ordered, found)
    return {member_id: _grouped(pairs) for member_id, pairs in found.items()}


def _share(
    every: list[tuple[bytes, int]], sharers: list[str], members: Subscribers, found: dict[str, list[tuple[bytes, int]]]
) -> None:
    """Give each of the partitions to as few of the sharers as leave nobody idle."""
    sharing = -(-len(sharers) // len(every))
    slots, left = sharing * len(every), dict.fromkeys(every, sharing)
    room = {}
    for at, member_id in enumerate(sharers):
        room[member_id] = -(-(at + 1) * slots // len(sharers)) + (-at * slots // len(sharers))
        for pair in _pairs(members[member_id].assigned):
            if room[member_id] and left.get(pair):
                found[member_id].append(pair)
                room[member_id], left[pair] = room[member_id] - 1, left[pair] - 1
    for member_id in sharers:
        free = [pair for pair in every if left[pair] and pair not in found[member_id]][: room[member_id]]
        found[member_id] += free
        left.update((pair, left[pair] - 1) for pair in free)


ASSIGNORS: Final[Mapping[str, Assignor]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
    "simple": assign_shares,
}
"""By name, the default of consumer groups first (group.consumer.assignors); the last is that of share groups."""


class _Homogeneous:
    """All members subscribe to the same topics."""

    def __init__(self, members: Subscribers, counts: PartitionCounts) -> None:
        self._members = members
        topics = _in_hash_set_order(next(iter(members.values())).topics)
        every = [(topic_id, index) for topic_id in topics for index in range(counts[topic_id])]
        held = {each for member in members.values() for each in _pairs(member.assigned)}
        self._known = set(every)
        self._free = [each for each in every if each not in held]
        self._quota, self._extra = divmod(len(every), len(members))

    def assign(self) -> dict[str, Assignment]:
        """Take what exceeds a member's quota, then fill the others."""
        kept, room = {}, {}
        for at, (member_id, member) in enumerate(self._members.items()):
            quota = self._quota + (self._extra > 0)
            mine = [each for each in _pairs(member.assigned) if each in self._known]
            kept[member_id], surplus = mine[:quota], mine[quota:]
            self._free += surplus
            left, took_extra = quota - len(kept[member_id]), self._extra > 0
            if left and took_extra and len(self._members) - at > self._extra:
                # A later member may have the extra partition already.
                left, took_extra = left - 1, False
            room[member_id] = left
            self._extra -= took_extra
        for member_id, left in room.items():
            taken, self._free = self._free[:left], self._free[left:]
            kept[member_id] += taken
        return {member_id: _grouped(pairs) for member_id, pairs in kept.items()}


class _Heterogeneous:
    """Members subscribe to different topics; they are ordered by the number of partitions, then by position."""

    def __init__(self, members: Subscribers, counts: PartitionCounts) -> None:
        self._ids = list(members)
        self._subscribers: dict[bytes, list[int]] = {}
        self._owners: dict[tuple[bytes, int], int] = {}
        self._load = [0] * len(members)
        for at, member in enumerate(members.values()):
            for topic_id in member.topics:
                self._subscribers.setdefault(topic_id, []).append(at)
            for topic_id, index in _pairs(member.assigned):
                if topic_id in member.topics and index < counts[topic_id]:
                    self._give((topic_id, index), at)
        self._counts = {topic_id: counts[topic_id] for topic_id in self._subscribers}
        # The topics with most partitions for each subscriber come first.
        self._topics = sorted(
            self._subscribers,
            key=lambda each: (-counts[each] / len(self._subscribers[each]), len(self._subscribers[each]), each),
        )

    def assign(self) -> dict[str, Assignment]:
        """Give what nobody has to the least loaded subscriber, then move partitions while that helps."""
        for topic_id in self._topics:
            position = self._positions(topic_id)
            for index in range(self._counts[topic_id]):
                if (topic_id, index) not in self._owners:
                    self._give((topic_id, index), min(position, key=lambda at: (self._load[at], position[at])))
        for _ in range(BALANCING_ROUNDS):
            moved = [self._balance(topic_id) for topic_id in self._topics]
            if not any(moved):
                break
        mine: dict[str, list[tuple[bytes, int]]] = {member_id: [] for member_id in self._ids}
        for pair, at in self._owners.items():
            mine[self._ids[at]].append(pair)
        return {member_id: _grouped(pairs) for member_id, pairs in mine.items()}

    def _balance(self, topic_id: bytes) -> bool:
        """Move partitions of the topic from the most to the least loaded subscriber; return True if any was."""
        position = self._positions(topic_id)
        movable: dict[int, list[int]] = {}
        for index in range(self._counts[topic_id]):
            movable.setdefault(self._owners[topic_id, index], []).append(index)
        has_moved = False
        while movable:
            giver = max(movable, key=lambda at: (self._load[at], position[at]))
            taker = min(position, key=lambda at: (self._load[at], position[at]))
            if self._load[giver] - self._load[taker] <= 1:
                break
            self._give((topic_id, movable[giver].pop()), taker)
            has_moved = True
            if not movable[giver]:
                del movable[giver]
        return has_moved

    def _positions(self, topic_id: bytes) -> dict[int, int]:
        ordered = sorted(self._subscribers[topic_id], key=lambda at: (self._load[at], at))
        return {at: position for position, at in enumerate(ordered)}

    def _give(self, pair: tuple[bytes, int], at: int) -> None:
        if pair in self._owners:
            self._load[self._owners[pair]] -= 1
        self._owners[pair] = at
        self._load[at] += 1


def _pairs(assignment: Assignment) -> list[tuple[bytes, int]]:
    return [(topic_id, index) for topic_id in _in_hash_set_order(assignment) for index in sorted(assignment[topic_id])]


def _in_hash_set_order(topic_ids: Collection[bytes]) -> list[bytes]:
    """Return topic ids in the order of a java.util.HashSet of Uuid; equal buckets in the order of their bytes."""
    buckets = max(16, 1 << (len(topic_ids) * 4 // 3).bit_length())

    def bucket(topic_id: bytes) -> int:
        mixed = int.from_bytes(topic_id[:8]) ^ int.from_bytes(topic_id[8:])
        code = mixed >> 32 ^ mixed & 0xFFFFFFFF
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(sorted(topic_ids), key=bucket)


def _grouped(pairs: list[tuple[bytes, int]]) -> Assignment:
    found: dict[bytes, set[int]] = {}
    for topic_id, index in pairs:
        found.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}

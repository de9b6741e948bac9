"""Reconciliation of a member with its target assignment (CurrentAssignmentBuilder): a pure function.

A member first gives up what it is to lose, in its old epoch; then it moves to the target's epoch and gets what is free.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum, unique
from typing import Final, NamedTuple

from mockraft.brokers.coordinators.assignors import Assignment
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError

Owned = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition: the epoch in which the member got it."""

NONE: Final[Owned] = {}


@unique
class MemberState(IntEnum):
    """Kafka's MemberState."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class Standing(NamedTuple):
    """The partitions that a member has, and its epoch; `revoking` are those that it has to give up."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Owned = NONE
    revoking: Owned = NONE

    def moved(self, epoch: int, state: MemberState, assigned: Owned, revoking: Owned | None = None) -> Standing:
        """Return the standing in another epoch."""
        return Standing(epoch, self.epoch, state, assigned, revoking or {})

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return True if there is nothing to do for the target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


class Goal(NamedTuple):
    """The target assignment, the topics to which the member subscribes, and the partitions that others have."""

    epoch: int
    target: Assignment
    topics: Collection[bytes]
    taken: Collection[tuple[bytes, int]]


def reconcile(now: Standing, goal: Goal, reported: Assignment | None, *, has_new_topics: bool) -> Standing:
    """Return the next standing; `reported` is what the member says that it owns, None if it does not say."""
    if now.state is MemberState.UNKNOWN:
        if reported is None or reported:
            raise ApiError(
                error_codes.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its partitions and"
                " rejoin.",
            )
        return _next(now._replace(epoch=goal.epoch), goal, reported)
    if now.is_reconciled_to(goal.epoch) or (
        now.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(reported, now.revoking)
    ):
        return _without_unsubscribed(now, goal, reported) if has_new_topics else now
    return _next(now, goal, reported)


def _without_unsubscribed(now: Standing, goal: Goal, reported: Assignment | None) -> Standing:
    """Take the partitions of topics to which the member does not subscribe any more (updateCurrentAssignment)."""
    lost = {topic_id: owned for topic_id, owned in now.assigned.items() if topic_id not in goal.topics}
    if not lost:
        return now
    assigned = {topic_id: owned for topic_id, owned in now.assigned.items() if topic_id not in lost}
    revoking = {**now.revoking, **{key: {**now.revoking.get(key, {}), **owned} for key, owned in lost.items()}}
    if _still_owns(reported, revoking):
        return now.moved(now.epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
    return now.moved(now.epoch, now.state, assigned, now.revoking)


def _next(now: Standing, goal: Goal, reported: Assignment | None) -> Standing:
    """Give up, wait or take (computeNextAssignment)."""
    assigned: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    has_unreleased = False
    taken: dict[bytes, dict[int, int]] = {}
    for topic_id in {**goal.target, **now.assigned}:
        target = goal.target.get(topic_id, frozenset()) if topic_id in goal.topics else frozenset()
        owned = now.assigned.get(topic_id, {})
        kept = {index: epoch for index, epoch in owned.items() if index in target}
        lost = {index: epoch for index, epoch in owned.items() if index not in target}
        wanted = target - kept.keys()
        mine = now.revoking.get(topic_id, {})
        free = {index for index in wanted if (topic_id, index) not in goal.taken or index in mine}
        has_unreleased |= free != wanted
        for found, into in ((kept, assigned), (lost, revoking), (dict.fromkeys(sorted(free), goal.epoch), taken)):
            if found:
                into[topic_id] = found
    if revoking and _still_owns(reported, revoking):
        return now.moved(now.epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
    for topic_id, found in taken.items():
        assigned[topic_id] = {**assigned.get(topic_id, {}), **found}
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    return now.moved(goal.epoch, state, assigned)


def _still_owns(reported: Assignment | None, revoking: Owned) -> bool:
    """Return True unless the member reports none of these partitions."""
    if reported is None:
        return True
    return any(index in revoking.get(topic_id, {}) for topic_id, indexes in reported.items() for index in indexes)

"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members follow by heartbeats.

Kafka's `ConsumerGroup` and what `GroupMetadataManager` does with it. A change of members or topics raises the group's
epoch: the group is ASSIGNING until an assignor has made a target for that epoch, then RECONCILING until every member
has its part of it, then STABLE; without members it is EMPTY. Each member gets there at its own pace: it gives up
partitions (UNREVOKED_PARTITIONS) before it takes the new epoch, and waits for those that others still have
(UNRELEASED_PARTITIONS). A partition is never assigned to two members at once.

Each operation makes one new `GroupSnapshot`, which is at once the group's; the difference is written as records, and
the answer is given when they are replicated. When a write fails, the group returns to the snapshot before it, and the
later writes, which build on it, are refused with the same error. Time is an argument; `tick` ends sessions.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import random
import uuid
from collections.abc import Callable, Collection, Iterable
from enum import Enum, unique
from typing import Final, NamedTuple, Protocol

from mockraft.brokers.coordinators.assignors import ASSIGNORS, Assignment, Subscriber
from mockraft.brokers.coordinators.group_snapshot import (
    ConsumerGroupState,
    Description,
    GroupMember,
    GroupSnapshot,
    ResolvedPattern,
)
from mockraft.brokers.coordinators.members import CONSUMER, Commit, Offset
from mockraft.brokers.coordinators.reconciliation import Goal, MemberState, Owned, Standing, reconcile
from mockraft.brokers.coordinators.transaction import TopicPartition
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.image import ClusterImage
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.linear_patterns import PatternError, compiled
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.java_values import in_hash_map_order

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""Member epochs that are no epochs."""
PATTERNS_REST_MS: Final = 10_000
"""Regular expressions are resolved again after that time at the earliest."""
MEMBER_EPOCHS_FROM: Final = 9
"""The first version of OffsetCommit for members of the consumer protocol."""

_log = logging.getLogger(__name__)


@unique
class Timer(Enum):
    """Something that a member has to do in time, else it is removed."""

    SESSION = "the member session expired"
    REVOCATION = "it gave up its partitions too late"
    JOIN = "the classic member failed to join within the rebalance timeout"
    SYNC = "the member failed to sync within timeout"


class GroupSettings(NamedTuple):
    """Configs of one group; `migrations` are the protocols to which it may change."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    pattern_refresh_ms: int
    members_max: int
    assignors: tuple[str, ...]
    migrations: tuple[str, ...]


class MemberHeartbeat(NamedTuple):
    """A heartbeat of a member; None and a timeout of -1 are what has not changed.

    Regular expressions match only topics that the sender may describe, also those of other members, as in Kafka.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    owned: Assignment | None = None
    client_id: str = ""
    client_host: str = ""
    may_describe: Callable[[str], bool] = lambda _topic: True

    @property
    def is_full(self) -> bool:
        """True if all fields are set: the answer has the assignment then."""
        return (
            self.rebalance_timeout_ms != -1 and (self.topics, self.pattern) != (None, None) and self.owned is not None
        )


class Followed(NamedTuple):
    """The answer to a heartbeat; the assignment only if it is news."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Owned | None = None


class Keeper(Protocol):
    """The coordinator as a group sees it; results are there once they are replicated."""

    def write_group(self, group: ModernGroup, before: GroupSnapshot, after: GroupSnapshot) -> Waiting[bool]:
        """Write the difference of two snapshots of a group."""

    def downgrade(self, group: ModernGroup, left: GroupSnapshot) -> Waiting[bool] | None:
        """Make a classic group of the members that are left, if all are and it may be; None if not."""


class ModernGroup:
    """A group whose members follow by heartbeats: a consumer group or a share group. Methods raise ApiError.

    `offsets` are by (topic, partition).
    """

    protocol_type = CONSUMER

    def __init__(
        self,
        group_id: str,
        image: ClusterImage,
        settings: Callable[[], GroupSettings],
        keeper: Keeper,
        rng: random.Random,
    ) -> None:
        self.group_id = group_id
        self.snapshot = GroupSnapshot()
        self.offsets: dict[TopicPartition, Offset] = {}
        self.image = image
        self.settings = settings
        self._keeper = keeper
        self._rng = rng
        self._known_topics: frozenset[object] | None = frozenset()
        self._seen_topics: frozenset[str] = frozenset()
        # The changes that are not replicated yet, oldest first, each with the snapshot before it.
        self._unwritten: dict[Waiting[bool], GroupSnapshot] = {}
        # By what a member has to do and its id: until when, and in which epoch (None: in any).
        self._timers: dict[tuple[Timer, str], tuple[int, int | None]] = {}

    @property
    def is_idle(self) -> bool:
        """True if removing the group would lose nothing but its epoch."""
        return not self.snapshot.members and not self.offsets

    @property
    def state(self) -> ConsumerGroupState:
        """The state as administrators see it."""
        return self.snapshot.state

    @property
    def assignor(self) -> str:
        """The assignor that most members want (computePreferredServerAssignor)."""
        return self._assignor_of(self.snapshot)

    # Members.

    def heartbeat(self, beat: MemberHeartbeat, now_ms: int) -> tuple[Followed, Waiting[bool]]:
        """Join, or stay a member; return the answer, to be given once it is written."""
        settings = self.settings()
        if not beat.member_id:
            beat = beat._replace(member_id=self.draw_member_id())
        draft, before = self._with_sender(beat)
        described = _updated(before.described, beat)
        standing, waiting = self.advance(draft, beat.member_id, (before, described), beat.owned, now_ms)
        self.start_timer(Timer.SESSION, beat.member_id, now_ms + settings.session_timeout_ms)
        self._resolve_patterns(settings, beat.may_describe, now_ms)
        is_news = beat.epoch == JOINS or beat.is_full or standing.assigned != before.standing.assigned
        assigned = standing.assigned if is_news else None
        return Followed(beat.member_id, standing.epoch, settings.heartbeat_interval_ms, assigned), waiting

    def advance(
        self,
        draft: GroupSnapshot,
        member_id: str,
        change: tuple[GroupMember, Description],
        owned: Assignment | None,
        now_ms: int,
    ) -> tuple[Standing, Waiting[bool]]:
        """Take a member's new description, make a target if it is due, and reconcile the member with it.

        `change` is the member before and its description now, `owned` what it says that it owns.
        """
        before, described = change
        draft, has_new_topics = self._with_description(draft, member_id, before.described, described)
        draft = self._with_target(draft, self.settings(), now_ms)
        standing = self.reconciled(draft, member_id, owned, has_new_topics=has_new_topics)
        draft = _put(draft, member_id, draft.members[member_id]._replace(standing=standing))
        if standing.state is not MemberState.UNREVOKED_PARTITIONS:
            self.stop_timer(Timer.REVOCATION, member_id)
        elif standing != before.standing and described.classic is None:
            self.start_timer(Timer.REVOCATION, member_id, now_ms + described.rebalance_timeout_ms, standing.epoch)
        return standing, self.commit(draft)

    def draw_member_id(self) -> str:
        """Return a new member id. The generator is the coordinator's: a group that is loaded again repeats no id."""
        while True:
            member_id = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
            if member_id not in self.snapshot.members:
                return member_id

    def leave(self, member_id: str, instance_id: str | None, epoch: int) -> tuple[Followed, Waiting[bool]]:
        """Remove a member; a static one may leave for a while, and keeps its partitions until its session ends."""
        member = self.member(member_id, instance_id)
        if instance_id is None or epoch == LEAVES:
            return Followed(member_id, epoch), self.fence([member_id])
        standing = member.standing._replace(epoch=LEAVES_FOR_A_WHILE, revoking={})
        left = _put(self.snapshot, member_id, member._replace(standing=standing))
        return Followed(member_id, LEAVES_FOR_A_WHILE), self.commit(left)

    def fence(self, member_ids: Collection[str]) -> Waiting[bool]:
        """Remove members, and give the rest a new epoch (consumerGroupFenceMembers)."""
        draft = self.snapshot
        left = {key: each for key, each in draft.members.items() if key not in member_ids}
        targets = {key: each for key, each in draft.targets.items() if key not in member_ids}
        draft = _with_used_patterns(dataclasses.replace(draft, members=left, targets=targets))
        if (waiting := self._keeper.downgrade(self, draft)) is not None:
            return waiting
        draft = dataclasses.replace(draft, epoch=draft.epoch + 1)
        if not left:
            draft = dataclasses.replace(draft, assignment_epoch=draft.epoch, assigned_ms=0)
        self._known_topics = self._topics(draft)
        for member_id in member_ids:
            self._forget(member_id)
        return self.commit(draft)

    def tick(self, now_ms: int) -> None:
        """Remove members that have not done in time what they have to."""
        for (timer, member_id), (end_ms, epoch) in list(self._timers.items()):
            if now_ms < end_ms or (timer, member_id) not in self._timers:
                continue
            del self._timers[timer, member_id]
            member = self.snapshot.members.get(member_id)
            if member is not None and epoch in (None, member.standing.epoch):
                _log.info(
                    "[GroupId %s] Member %s fenced from the group because %s.", self.group_id, member_id, timer.value
                )
                self.fence([member_id])

    def next_tick_ms(self) -> int:
        """Return the time of the next `tick`."""
        return min((end_ms for end_ms, _ in self._timers.values()), default=NEVER_MS)

    def start_timer(self, timer: Timer, member_id: str, end_ms: int, epoch: int | None = None) -> None:
        """Remove the member at that time, if it is still in this epoch then."""
        self._timers[timer, member_id] = end_ms, epoch

    def has_timer(self, timer: Timer, member_id: str) -> bool:
        """Return True if the member has to do this."""
        return (timer, member_id) in self._timers

    def stop_timer(self, timer: Timer, member_id: str) -> None:
        """Let the member take its time."""
        self._timers.pop((timer, member_id), None)

    def check_room(self, member_id: str, instance_id: str | None) -> None:
        """Check that the group has room, unless for one that is in it."""
        members, members_max = self.snapshot.members, self.settings().members_max
        if len(members) >= members_max and member_id not in members and self.snapshot.static_id(instance_id) is None:
            text = f"The {self.protocol_type} group has reached its maximum capacity of {members_max} members."
            raise ApiError(error_codes.GROUP_MAX_SIZE_REACHED, text)

    def member(self, member_id: str, instance_id: str | None) -> GroupMember:
        """Return the member. ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
        if instance_id is None:
            return self._known(member_id)
        owner_id = self.snapshot.static_id(instance_id)
        if owner_id is None:
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if owner_id != member_id:
            text = f"Static member {member_id} with instance id {instance_id} was fenced by member {owner_id}."
            raise ApiError(error_codes.FENCED_INSTANCE_ID, text)
        return self.snapshot.members[member_id]

    def replaced(self, former_id: str, member_id: str, member: GroupMember) -> GroupSnapshot:
        """Return the group with a static member in the place of its former self (replaceMember)."""
        snapshot = self.snapshot
        members = {key: each for key, each in snapshot.members.items() if key != former_id}
        targets = {key: each for key, each in snapshot.targets.items() if key != former_id}
        targets[member_id] = snapshot.targets.get(former_id, {})
        if former_id != member_id:
            self._forget(former_id)
        return dataclasses.replace(snapshot, members={**members, member_id: member}, targets=targets)

    def with_member(self, member_id: str, member: GroupMember) -> GroupSnapshot:
        """Return the group with this member."""
        return _put(self.snapshot, member_id, member)

    def commit(self, draft: GroupSnapshot) -> Waiting[bool]:
        """Take a new snapshot, and write what is new in it; nothing new is known once all before it is written."""
        before, self.snapshot = self.snapshot, draft
        last = next(reversed(self._unwritten), None)
        waiting = self._keeper.write_group(self, before, draft)
        self._unwritten[waiting] = before
        waiting.on_end(functools.partial(self._written, waiting))
        is_empty = waiting not in self._unwritten and self.snapshot is draft
        return last if is_empty and last is not None else waiting

    # Administrators.

    def check_delete(self) -> None:
        """Check that the group may be deleted: it has no members."""
        if self.state is not ConsumerGroupState.EMPTY:
            raise ApiError(error_codes.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return True if a member subscribes to the topic."""
        return topic in self.snapshot.subscribed

    # The coordinator.

    def begin(self, now_ms: int) -> None:
        """Start the members' sessions after the group was loaded (onLoaded)."""
        self._known_topics = None
        timeout_ms = self.settings().session_timeout_ms
        for member_id, member in self.snapshot.members.items():
            self.start_timer(Timer.SESSION, member_id, now_ms + timeout_ms)
            if member.standing.state is MemberState.UNREVOKED_PARTITIONS:
                end_ms = now_ms + member.described.rebalance_timeout_ms
                self.start_timer(Timer.REVOCATION, member_id, end_ms, member.standing.epoch)

    def dissolve(self, _error_code: int) -> None:
        """Stop: no request waits for other members, but members must not be removed any more."""
        self._timers.clear()

    # Internals.

    def _written(self, waiting: Waiting[bool], error_code: int) -> None:
        """Forget a change that is replicated; undo one that failed, with those that build on it (SnapshotRegistry)."""
        if error_code == error_codes.NONE or waiting not in self._unwritten:
            self._unwritten.pop(waiting, None)
            return
        while waiting in self._unwritten:
            last, self.snapshot = self._unwritten.popitem()
            self._known_topics = None
            last.refuse(error_code)

    def _with_sender(self, beat: MemberHeartbeat) -> tuple[GroupSnapshot, GroupMember]:
        """Return the group with the sender as a member, and what it was before. Raises ApiError."""
        snapshot = self.snapshot
        self.check_room(beat.member_id, beat.instance_id)
        former_id = snapshot.static_id(beat.instance_id)
        if beat.epoch != JOINS:
            member = self.member(beat.member_id, beat.instance_id)
            self._check_epoch(member.standing, beat)
            return snapshot, member
        if former_id is None:
            member = snapshot.members.get(beat.member_id, GroupMember())
            return _put(snapshot, beat.member_id, member), member
        former = snapshot.members[former_id]
        if former.described.classic is None and former.standing.epoch != LEAVES_FOR_A_WHILE:
            text = f"Static member {beat.member_id} with instance id {beat.instance_id} cannot join the group because"
            raise ApiError(
                error_codes.UNRELEASED_INSTANCE_ID, f"{text} the instance id is owned by {former_id} member."
            )
        member = former._replace(standing=former.standing._replace(epoch=0, previous_epoch=0))
        return self.replaced(former_id, beat.member_id, member), member

    def _with_description(
        self, draft: GroupSnapshot, member_id: str, before: Description, described: Description
    ) -> tuple[GroupSnapshot, bool]:
        """Return the group with the member's description, in a new epoch if that matters, and if its topics changed."""
        changes_pattern = (described.pattern or "") != (before.pattern or "")
        is_resolved = changes_pattern and (not described.pattern or described.pattern in draft.patterns)
        if changes_pattern and described.pattern and described.pattern not in draft.used_patterns:
            _check_pattern(described.pattern)
            is_resolved = False
        assignor = self._assignor_of(self.snapshot)
        draft = _put(draft, member_id, draft.members[member_id]._replace(described=described))
        draft = _with_used_patterns(draft)
        changes_topics = described.topics != before.topics
        topics = self._topics(draft)
        must_move = changes_topics or is_resolved or self._assignor_of(draft) != assignor
        if must_move or (self._known_topics is not None and topics != self._known_topics):
            draft = dataclasses.replace(draft, epoch=draft.epoch + 1)
        self._known_topics = topics
        return draft, changes_topics or changes_pattern

    def _with_target(self, draft: GroupSnapshot, settings: GroupSettings, now_ms: int) -> GroupSnapshot:
        """Return the group with a target for its epoch, unless the last one is too young (KIP-1263)."""
        interval_ms = settings.assignment_interval_ms
        is_early = draft.assigned_ms and interval_ms and now_ms < draft.assigned_ms + interval_ms
        if draft.assignment_epoch >= draft.epoch or is_early:
            return draft
        subscribers = {
            member_id: Subscriber(
                member.described.instance_id,
                self.topic_ids(draft.topics_of(member.described)),
                draft.targets.get(member_id, {}),
            )
            for member_id, member in draft.members.items()
        }
        counts = {topic_id: len(topic.partitions) for topic_id, topic in self.image.topics.items()}
        targets = ASSIGNORS[self._assignor_of(draft)](subscribers, counts)
        return dataclasses.replace(draft, targets=targets, assignment_epoch=draft.epoch, assigned_ms=now_ms)

    def reconciled(
        self, draft: GroupSnapshot, member_id: str, owned: Assignment | None, *, has_new_topics: bool
    ) -> Standing:
        """Return a member's part of the target, as far as it may have it."""
        member = draft.members[member_id]
        if not has_new_topics and member.standing.is_reconciled_to(draft.assignment_epoch):
            return member.standing
        topics = self.topic_ids(draft.topics_of(member.described))
        goal = Goal(draft.assignment_epoch, draft.targets.get(member_id, {}), topics, draft.taken)
        return reconcile(member.standing, goal, owned, has_new_topics=has_new_topics)

    def _resolve_patterns(self, settings: GroupSettings, may_describe: Callable[[str], bool], now_ms: int) -> None:
        """Match regular expressions against the topics again if that is due; Kafka does so after its answer, too."""
        draft = self.snapshot
        used = draft.used_patterns
        last_ms = min((each.resolved_ms for each in draft.patterns.values()), default=-NEVER_MS)
        names = frozenset(self.image.topics_by_name)
        is_due = used != set(draft.patterns) or not names <= self._seen_topics
        if not used or now_ms <= last_ms + PATTERNS_REST_MS:
            return
        if not is_due and now_ms <= last_ms + settings.pattern_refresh_ms:
            return
        self._seen_topics = names
        visible = frozenset(filter(may_describe, names))
        resolved = {each: ResolvedPattern(_matching(each, visible), 0, now_ms) for each in used}
        has_changed = any(
            each not in draft.patterns or draft.patterns[each].topics != found.topics
            for each, found in resolved.items()
        )
        draft = dataclasses.replace(draft, patterns=resolved)
        topics = self._topics(draft)
        if has_changed or topics != self._known_topics:
            draft = dataclasses.replace(draft, epoch=draft.epoch + 1)
        self._known_topics = topics
        self.commit(draft)

    def _assignor_of(self, draft: GroupSnapshot) -> str:
        votes: dict[str, int] = {}
        for member in draft.members.values():
            if member.described.assignor is not None:
                votes[member.described.assignor] = votes.get(member.described.assignor, 0) + 1
        return max(in_hash_map_order(votes), key=lambda vote: vote[1], default=(self.settings().assignors[0], 0))[0]

    def _topics(self, draft: GroupSnapshot) -> frozenset[object]:
        """Return what the assignment depends on besides the members (computeMetadataHash)."""
        found = (self.image.topics_by_name.get(name) for name in draft.subscribed)
        return frozenset((each.topic_id, len(each.partitions)) for each in found if each is not None)

    def topic_ids(self, names: Iterable[str]) -> frozenset[bytes]:
        """Return the ids of those of the topics that exist."""
        found = map(self.image.topics_by_name.get, names)
        return frozenset(each.topic_id for each in found if each is not None)

    def _known(self, member_id: str) -> GroupMember:
        member = self.snapshot.members.get(member_id)
        if member is None:
            text = f"Member {member_id} is not a member of group {self.group_id}."
            raise ApiError(error_codes.UNKNOWN_MEMBER_ID, text)
        return member

    def _check_epoch(self, standing: Standing, beat: MemberHeartbeat) -> None:
        """Check the epoch of a heartbeat; one that is late by one is that of a lost answer."""
        if beat.epoch == standing.epoch:
            return
        if beat.epoch < standing.epoch and beat.epoch == standing.previous_epoch and _is_subset(beat.owned, standing):
            return
        size = "greater" if beat.epoch > standing.epoch else "smaller"
        raise ApiError(
            error_codes.FENCED_MEMBER_EPOCH,
            f"The {self.protocol_type} group member has a {size} member epoch ({beat.epoch}) than the one known by the"
            f" group coordinator ({standing.epoch}). The member must abandon all its partitions and rejoin.",
        )

    def _forget(self, member_id: str) -> None:
        for timer in Timer:
            self.stop_timer(timer, member_id)


class ConsumerGroup(ModernGroup):
    """A consumer group: its members commit offsets."""

    def check_commit(self, commit: Commit, partitions: Iterable[TopicPartition], _now_ms: int) -> None:
        """Check that this member may commit offsets: in its epoch, or in an older one of partitions that it still has.

        Anybody may while the group is empty (validateOffsetCommit).
        """
        snapshot = self.snapshot
        if commit.epoch < 0 and not snapshot.members:
            return
        if commit.is_transactional and (commit.epoch, commit.member_id, commit.instance_id) == (-1, "", None):
            return
        member = self._known(commit.member_id)
        is_classic = member.described.classic is not None
        if not commit.is_transactional and not is_classic and commit.api_version < MEMBER_EPOCHS_FROM:
            raise ApiError(error_codes.UNSUPPORTED_VERSION)
        stale = ApiError(error_codes.ILLEGAL_GENERATION if is_classic else error_codes.STALE_MEMBER_EPOCH)
        if commit.epoch > member.standing.epoch:
            raise stale
        if commit.epoch == member.standing.epoch:
            return
        for name, index in partitions:
            topic_id = self.image.topics_by_name[name].topic_id
            owned = (member.standing.assigned, member.standing.revoking)
            since = next((each[topic_id][index] for each in owned if index in each.get(topic_id, {})), None)
            if since is None or commit.epoch < since:
                raise stale

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Check a member's id and epoch before it reads offsets; other clients send neither (validateOffsetFetch)."""
        if member_id is None and epoch < 0:
            return
        member = self._known(member_id or "")
        if epoch != member.standing.epoch:
            is_classic = member.described.classic is not None
            raise ApiError(error_codes.ILLEGAL_GENERATION if is_classic else error_codes.STALE_MEMBER_EPOCH)

    def check_delete_offsets(self) -> None:
        """Offsets may be deleted always, of topics to which nobody subscribes."""


def _updated(before: Description, beat: MemberHeartbeat) -> Description:
    """Return the description with what the heartbeat says."""
    return Description(
        before.instance_id if beat.instance_id is None else beat.instance_id,
        before.rack_id if beat.rack_id is None else beat.rack_id,
        beat.client_id,
        beat.client_host,
        before.topics if beat.topics is None else beat.topics,
        before.pattern if beat.pattern is None else beat.pattern,
        before.rebalance_timeout_ms if beat.rebalance_timeout_ms == -1 else beat.rebalance_timeout_ms,
        before.assignor if beat.assignor is None else beat.assignor,
    )


def _is_subset(owned: Assignment | None, standing: Standing) -> bool:
    return owned is not None and all(
        topic_id in standing.assigned and indexes <= standing.assigned[topic_id].keys()
        for topic_id, indexes in owned.items()
    )


def _put(draft: GroupSnapshot, member_id: str, member: GroupMember) -> GroupSnapshot:
    return dataclasses.replace(draft, members={**draft.members, member_id: member})


def _with_used_patterns(draft: GroupSnapshot) -> GroupSnapshot:
    used = draft.used_patterns
    if used.issuperset(draft.patterns):
        return draft
    return dataclasses.replace(draft, patterns={key: each for key, each in draft.patterns.items() if key in used})


def _check_pattern(pattern: str) -> None:
    try:
        compiled(pattern, whole=True)
    except PatternError as wrong:
        text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {wrong}."
        raise ApiError(error_codes.INVALID_REGULAR_EXPRESSION, text) from None


def _matching(pattern: str, names: Collection[str]) -> frozenset[str]:
    try:
        matcher = compiled(pattern, whole=True)
    except PatternError:  # from the log of another coordinator
        return frozenset()
    return frozenset(name for name in names if matcher.search(name))

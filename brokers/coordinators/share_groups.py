"""Share groups (KIP-932): the coordinator gives each member partitions, which it may share with others.

Kafka's `ShareGroup` and `ShareGroupAssignmentBuilder`. A member takes its part of the target at once: there is nothing
to revoke, because the leaders of partitions lock records for members (`brokers.shares`). These groups are in memory:
the next coordinator does not know them.
"""

from __future__ import annotations

from typing import Final

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.coordinators.assignors import Assignment
from mockraft.brokers.coordinators.consumer_protocol import Followed, MemberHeartbeat, ModernGroup
from mockraft.brokers.coordinators.group_snapshot import ConsumerGroupState, GroupSnapshot
from mockraft.brokers.coordinators.reconciliation import MemberState, Standing
from mockraft.brokers.coordinators.waiting import Waiting

SHARE: Final = "share"


class ShareGroup(ModernGroup):
    """One share group. `partitions` are those that have state: of topics to which members have subscribed."""

    protocol_type = SHARE
    partitions: frozenset[ReplicaKey] = frozenset()

    @property
    def state(self) -> ConsumerGroupState:
        """The state as administrators see it."""
        return ConsumerGroupState.STABLE if self.snapshot.members else ConsumerGroupState.EMPTY

    def heartbeat(self, beat: MemberHeartbeat, now_ms: int) -> tuple[Followed, Waiting[bool]]:
        """Join, or stay a member."""
        followed = super().heartbeat(beat, now_ms)
        topics = [self.image.topics[topic_id] for topic_id in self.topic_ids(self.snapshot.subscribed)]
        self.partitions |= {(topic.topic_id, index) for topic in topics for index in topic.partitions}
        return followed

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Anybody may read offsets, of which there are none."""

    def reconciled(
        self, draft: GroupSnapshot, member_id: str, owned: Assignment | None, *, has_new_topics: bool
    ) -> Standing:
        """Return the member's part of the target, of the topics to which it subscribes."""
        member, epoch = draft.members[member_id], draft.assignment_epoch
        if member.standing.epoch == epoch and not has_new_topics:
            return member.standing
        topics, target = self.topic_ids(member.described.topics), draft.targets.get(member_id, {})
        assigned = {key: dict.fromkeys(sorted(indexes), epoch) for key, indexes in target.items() if key in topics}
        if member.standing.epoch == epoch:
            return member.standing._replace(assigned=assigned)
        return member.standing.moved(epoch, MemberState.STABLE, assigned)

"""One replica of a partition as a state machine (Kafka's `Partition`): leader, follower, ISR, high watermark.

No log, no clock and no socket here: the caller reports appends and fetches, and carries out the results. An ISR change
is *proposed* (:attr:`Partition.pending`) and takes effect only once the controller has answered AlterPartition; until
then the high watermark waits for the *maximal* ISR, the larger one of the two (KIP-497).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mockraft.brokers.image.cluster_image import NO_LEADER
from mockraft.wire import error_codes

UNKNOWN_OFFSET = -1


class Follower(NamedTuple):
    """A follower at its last fetch. Times are ms; `broker_epoch` is None until it fetched.

    `leader_end_offset_then` is the leader's log end offset at the last fetch: a follower that reaches it was caught up
    at the time of that fetch, even if the leader has advanced since.
    """

    log_start_offset: int = UNKNOWN_OFFSET
    end_offset: int = UNKNOWN_OFFSET
    leader_end_offset_then: int = UNKNOWN_OFFSET
    fetched_ms: int = 0
    caught_up_ms: int = 0
    broker_epoch: int | None = None

    def fetched(
        self, offset: int, log_start_offset: int, now_ms: int, leader_end_offset: int, broker_epoch: int
    ) -> Follower:
        """Return this follower after a fetch from `offset` (Replica.updateFetchStateOrThrow)."""
        if offset >= leader_end_offset:
            caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset_then:
            caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        else:
            caught_up_ms = self.caught_up_ms
        return Follower(
            log_start_offset,
            offset,
            max(leader_end_offset, self.leader_end_offset_then),
            now_ms,
            caught_up_ms,
            broker_epoch,
        )

    def reset(self, now_ms: int, leader_end_offset: int, *, new_leader: bool, in_sync: bool) -> Follower:
        """Return this follower at the start of a leader epoch (Replica.resetReplicaState).

        Members of the ISR get a full `replica.lag.time.max.ms` to fetch.
        """
        caught_up_ms = now_ms if in_sync else 0
        if new_leader:
            return Follower(caught_up_ms=caught_up_ms)
        return self._replace(
            leader_end_offset_then=leader_end_offset, fetched_ms=caught_up_ms, caught_up_ms=caught_up_ms
        )

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return True if it has everything, or had at most `lag_time_max_ms` ago."""
        return leader_end_offset == self.end_offset or now_ms - self.caught_up_ms <= lag_time_max_ms


NO_EPOCH = -1

GIVES_UP = frozenset(
    {
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.UNKNOWN_TOPIC_ID,
        error_codes.FENCED_LEADER_EPOCH,
        error_codes.INVALID_UPDATE_VERSION,
        error_codes.INVALID_REQUEST,
        error_codes.NEW_LEADER_ELECTED,
    }
)
"""Refusals of an ISR change that leave it pending until the metadata log is updated."""
NOT_APPLIED = frozenset({error_codes.OPERATION_NOT_ATTEMPTED, error_codes.INELIGIBLE_REPLICA})
"""Refusals that guarantee that nothing was changed: return to the committed ISR."""


class Registered(NamedTuple):
    """The metadata of a broker that may join an ISR."""

    broker_epoch: int
    fenced: bool = False
    in_controlled_shutdown: bool = False


class Assignment(NamedTuple):
    """A partition according to the metadata log."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int


class IsrChange(NamedTuple):
    """An ISR that was proposed to the controller; `joining` is the broker to be added, None for removals.

    `isr_with_epochs` are (broker id, broker epoch), -1 for an unknown epoch.
    """

    isr_with_epochs: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int
    joining: int | None


class CommittedIsr(NamedTuple):
    """The controller's response to an accepted ISR change."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class Partition:
    """The state of one replica. Offsets are those of its log; times are ms.

    `brokers(id)` returns a registered broker's metadata, else None; `min_insync_replicas()` the topic's setting.
    """

    def __init__(
        self,
        broker_id: int,
        brokers: Callable[[int], Registered | None],
        min_insync_replicas: Callable[[], int] = lambda: 1,
        *,
        lag_time_max_ms: int = 30_000,
    ) -> None:
        self.broker_id = broker_id
        self.lag_time_max_ms = lag_time_max_ms
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.epoch_start_offset: int | None = None
        self.replicas: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.followers: dict[int, Follower] = {}
        self.end_offset = 0
        self.high_watermark = 0
        self.pending: IsrChange | None = None
        self._brokers = brokers
        self._min_insync_replicas = min_insync_replicas

    @property
    def is_leader(self) -> bool:
        """True if this broker leads the partition."""
        return self.leader == self.broker_id

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The ISR that the high watermark waits for: with brokers that are being added or removed."""
        if self.pending is not None and self.pending.joining is not None:
            return self.isr | {self.pending.joining}
        return self.isr

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, at most the number of replicas."""
        return min(self._min_insync_replicas(), len(self.followers) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        """True if the committed ISR is too small for acks=all and for an advance of the high watermark."""
        return self.is_leader and len(self.isr) < self.effective_min_isr

    # Changes of the metadata log.

    def lead(self, assignment: Assignment, end_offset: int, high_watermark: int, now_ms: int) -> bool:
        """Become or stay leader by this assignment (makeLeader); return False when it is outdated."""
        if assignment.partition_epoch < self.partition_epoch:
            return False
        new_leader = not self.is_leader
        others = [replica for replica in assignment.replicas if replica != self.broker_id]
        self.followers = {replica: self.followers.get(replica, Follower()) for replica in others}
        self._assign(assignment, frozenset(assignment.isr))
        self.end_offset = end_offset
        if new_leader:
            self.high_watermark = high_watermark
        if assignment.leader_epoch > self.leader_epoch:
            for replica, follower in self.followers.items():
                in_sync = replica in self.isr
                self.followers[replica] = follower.reset(now_ms, end_offset, new_leader=new_leader, in_sync=in_sync)
            self.leader_epoch = assignment.leader_epoch
            self.epoch_start_offset = end_offset
        self.leader = self.broker_id
        self._advance_high_watermark(now_ms)
        return True

    def follow(self, assignment: Assignment) -> bool:
        """Become or stay follower (makeFollower); True when the epoch is new, so that fetching restarts."""
        if assignment.partition_epoch < self.partition_epoch:
            return False
        new_epoch = assignment.leader_epoch > self.leader_epoch
        self.leader = assignment.leader
        self.leader_epoch = assignment.leader_epoch
        self.epoch_start_offset = None
        self.followers = {}
        self._assign(assignment, frozenset())
        return new_epoch

    def _assign(self, assignment: Assignment, isr: frozenset[int]) -> None:
        self.replicas = assignment.replicas
        self.isr = isr
        self.pending = None
        self.partition_epoch = assignment.partition_epoch

    # Events on the leader.

    def check_leader_epoch(self, claimed: int, *, only_leader: bool = True) -> int:
        """Return the error for a request with this leader epoch (-1: none), NONE when it matches."""
        if claimed != NO_EPOCH and claimed < self.leader_epoch:
            return error_codes.FENCED_LEADER_EPOCH
        if claimed != NO_EPOCH and claimed > self.leader_epoch:
            return error_codes.UNKNOWN_LEADER_EPOCH
        if only_leader and not self.is_leader:
            return error_codes.NOT_LEADER_OR_FOLLOWER
        return error_codes.NONE

    def check_append(self, acks: int) -> int:
        """Return the error for an append with these acks before anything is written."""
        if not self.is_leader:
            return error_codes.NOT_LEADER_OR_FOLLOWER
        if acks == -1 and len(self.isr) < self.effective_min_isr:
            return error_codes.NOT_ENOUGH_REPLICAS
        return error_codes.NONE

    def appended(self, end_offset: int, now_ms: int) -> bool:
        """Update for a log that has grown to `end_offset`; return True when the high watermark advanced."""
        self.end_offset = end_offset
        return self._advance_high_watermark(now_ms)

    def check_follower(self, replica: int, claimed_epoch: int, broker_epoch: int) -> int:
        """Return the error for a fetch of this follower: unknown to this leader, or with an old broker epoch."""
        if replica not in self.followers:
            # The epoch matches: the metadata that adds this replica has not arrived here yet.
            known = claimed_epoch == NO_EPOCH
            return error_codes.NOT_LEADER_OR_FOLLOWER if known else error_codes.UNKNOWN_LEADER_EPOCH
        registered = self._brokers(replica)
        if broker_epoch != NO_EPOCH and registered is not None and registered.broker_epoch > broker_epoch:
            return error_codes.NOT_LEADER_OR_FOLLOWER
        return error_codes.NONE

    def fetched(self, replica: int, offset: int, log_start_offset: int, broker_epoch: int, now_ms: int) -> bool:
        """Note that a follower has all before `offset`; return True when the high watermark advanced.

        It may become ready to join the ISR: `pending` is the change to send, if there was none before.
        """
        before = self.followers[replica]
        follower = before.fetched(offset, log_start_offset, now_ms, self.end_offset, broker_epoch)
        self.followers[replica] = follower
        if (
            self.pending is None
            and replica not in self.isr
            and self._is_eligible(replica)
            and self._is_in_sync(follower)
        ):
            self.pending = self._propose(self.isr | {replica}, joining=replica)
        return follower.end_offset != before.end_offset and self._advance_high_watermark(now_ms)

    def shrink(self, now_ms: int) -> bool:
        """Propose an ISR without the lagging followers; return True when there are any and nothing else is pending."""
        if not self.is_leader or self.pending is not None:
            return False
        lagging = self.out_of_sync(now_ms)
        if lagging:
            self.pending = self._propose(self.isr - lagging, joining=None)
        return bool(lagging)

    def out_of_sync(self, now_ms: int) -> frozenset[int]:
        """Return the ISR's followers that have not caught up for `replica.lag.time.max.ms`, stuck or slow."""
        unknown = Follower()
        return frozenset(
            replica
            for replica in self.isr - {self.broker_id}
            if not self.followers.get(replica, unknown).is_caught_up(self.end_offset, now_ms, self.lag_time_max_ms)
        )

    def committed(self, change: IsrChange, isr: CommittedIsr, now_ms: int) -> bool:
        """Apply an accepted change; return True when the high watermark advanced."""
        if self.pending is not change:
            return False
        if isr.leader_epoch != self.leader_epoch or isr.partition_epoch < self.partition_epoch:
            return False
        self.isr = frozenset(isr.isr)
        self.partition_epoch = isr.partition_epoch
        self.pending = None
        return self._advance_high_watermark(now_ms)

    def refused(self, change: IsrChange, error_code: int) -> bool:
        """Apply a refused change; return True when the same has to be sent again (handleAlterPartitionError)."""
        if self.pending is not change:
            return False
        if error_code in NOT_APPLIED:
            self.pending = None
            return False
        return error_code not in GIVES_UP

    def reached(self, offset: int) -> tuple[bool, int]:
        """Return if a produce request that waits for this offset is complete, and its error."""
        if not self.is_leader:
            return True, error_codes.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < offset:
            return False, error_codes.NONE
        enough = self.effective_min_isr <= len(self.maximal_isr)
        return True, error_codes.NONE if enough else error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def live_start_offsets(self) -> list[int]:
        """Return the log start offsets that the unfenced followers reported (-1: not yet)."""
        known = {replica: self._brokers(replica) for replica in self.followers}
        return [self.followers[replica].log_start_offset for replica, it in known.items() if it and not it.fenced]

    # Rules of the ISR and the high watermark.

    def _is_eligible(self, replica: int) -> bool:
        """Return True if the metadata allows a follower in the ISR, and has the broker epoch that it fetched with."""
        registered, fetched_in = self._brokers(replica), self.followers[replica].broker_epoch
        if registered is None or registered.fenced or registered.in_controlled_shutdown or fetched_in is None:
            return False
        return fetched_in in (NO_EPOCH, registered.broker_epoch)

    def _is_in_sync(self, follower: Follower) -> bool:
        """Return True if it has everything committed and reached this leader epoch: otherwise records could be lost."""
        start = self.epoch_start_offset
        return start is not None and follower.end_offset >= max(self.high_watermark, start)

    def _advance_high_watermark(self, now_ms: int) -> bool:
        """Advance to the smallest end offset of the maximal ISR, and of followers that are about to join it."""
        if not self.is_leader or self.is_under_min_isr:
            return False
        reached, isr = self.end_offset, self.maximal_isr
        for replica, follower in self.followers.items():
            # A follower about to join counts: a lone leader's high watermark would otherwise outrun it.
            if follower.end_offset < reached and (
                replica in isr
                or (follower.is_caught_up(self.end_offset, now_ms, self.lag_time_max_ms) and self._is_eligible(replica))
            ):
                reached = follower.end_offset
        if reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    def _propose(self, isr: frozenset[int], joining: int | None) -> IsrChange:
        with_epochs = tuple((replica, self._epoch_of(replica)) for replica in _in_order(self.replicas, isr))
        return IsrChange(with_epochs, self.leader_epoch, self.partition_epoch, joining)

    def _epoch_of(self, replica: int) -> int:
        if replica == self.broker_id:
            registered = self._brokers(replica)
            return NO_EPOCH if registered is None else registered.broker_epoch
        follower = self.followers.get(replica)
        return NO_EPOCH if follower is None or follower.broker_epoch is None else follower.broker_epoch


def _in_order(replicas: Sequence[int], isr: frozenset[int]) -> list[int]:
    """Return the ISR in the order of the assignment, so that the same state always sends the same request."""
    return [replica for replica in replicas if replica in isr] + sorted(isr.difference(replicas))

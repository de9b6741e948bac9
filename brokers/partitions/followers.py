"""The state of one follower as its leader knows it (Kafka's `Replica` and `ReplicaState`)."""

from __future__ import annotations

from typing import NamedTuple

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

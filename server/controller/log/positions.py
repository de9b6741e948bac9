"""Check of a follower's position against the log (RaftLog.validateOffsetAndEpoch)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mockraft.server.controller.log.snapshot import BOOTSTRAP, SnapshotId

if TYPE_CHECKING:
    from mockraft.server.controller.log.metadata_log import MetadataLog


class EpochEndOffset(NamedTuple):
    """Point where a follower's log diverges: the largest common epoch and its end offset here."""

    epoch: int
    end_offset: int


def check(log: MetadataLog, offset: int, last_fetched_epoch: int) -> EpochEndOffset | SnapshotId | None:
    """Check a position as `MetadataLog.check` does, without a cache (KafkaRaftClient.tryCompleteFetchRequest)."""
    latest = log.snapshots[-1].id if log.snapshots else None
    if offset == 0 and latest is not None and latest != BOOTSTRAP:
        return latest
    if offset == 0 and log.start_offset == 0:
        return None
    if latest is not None:
        oldest = log.snapshots[0].id
        if (
            offset < log.start_offset
            or (offset == log.start_offset and last_fetched_epoch != oldest.epoch)
            or last_fetched_epoch < oldest.epoch
        ):
            return latest
    end = log.end_of_epoch(last_fetched_epoch)
    return end if end.epoch != last_fetched_epoch or end.end_offset < offset else None


def common_end(log: MetadataLog, leaders: EpochEndOffset) -> int:
    """Return the end of what a log has in common with the leader's, from which it diverges at `leaders`."""
    if not leaders.epoch:
        return min(leaders.end_offset, log.end_offset)
    own = log.end_of_epoch(leaders.epoch)
    return min(own.end_offset, leaders.end_offset) if own.epoch == leaders.epoch else own.end_offset

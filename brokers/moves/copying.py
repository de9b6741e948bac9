"""Copies one replica's log into another directory, piece by piece (Kafka's `ReplicaAlterLogDirsThread`)."""

from __future__ import annotations

from mockraft.brokers.log_dirs.replica_log import ReplicaLog

PIECE_BYTES_MAX = 1_048_576
"""Kafka's replica.fetch.max.bytes: the maximum size of one read."""


def has_caught_up(current: ReplicaLog, future: ReplicaLog) -> bool:
    """Return True if the future log ends where the current one does."""
    return current.end_offset == future.end_offset


def copy_piece(current: ReplicaLog, future: ReplicaLog) -> int:
    """Copy the next batches, whole, and follow the current log's start and high watermark. Return the bytes copied.

    The future log is truncated first when the current log has been truncated meanwhile.
    """
    align(current, future)
    # The future log may begin before the current one, with the batch that contains the start offset.
    records = current.read(max(future.end_offset, current.start_offset), PIECE_BYTES_MAX)
    if records:
        future.append_as_follower(records)
    future.high_watermark = current.high_watermark
    future.advance_start_offset(min(current.start_offset, future.high_watermark))
    return len(records)


def align(current: ReplicaLog, future: ReplicaLog) -> None:
    """Truncate the future log to the part that it shares with the current one."""
    if future.end_offset < current.start_offset or future.start_offset > current.end_offset:
        batches = current.batches(current.start_offset)
        # A raised start offset may be within a batch, and batches are copied whole.
        future.truncate_fully_at(batches[0].base_offset if batches else current.start_offset)
        return
    while (end := _common_end(current, future)) < future.end_offset:
        future.truncate_to(end)


def _common_end(current: ReplicaLog, future: ReplicaLog) -> int:
    """Return the offset up to which the epochs of both logs agree, based on the future log's latest epoch."""
    epoch = future.latest_epoch
    if epoch is None:
        return min(future.end_offset, current.end_offset)
    known, end = current.end_of_epoch(epoch)
    if known < 0:
        return min(future.high_watermark, current.end_offset, future.end_offset)
    ours = end if known == epoch else future.end_of_epoch(known)[1]
    return min(end, ours, current.end_offset, future.end_offset)

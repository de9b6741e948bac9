"""The place from which a future log goes on copying: where it still agrees with the current one."""

from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.moves.movers import _common_end as common_end
from mockraft.brokers.moves.movers import align, copy_piece, has_caught_up

from ...rows import each_row
from ..log_dirs.conftest import batch


def log_of(name: str, *epochs: int, high_watermark: int = 0) -> ReplicaLog:
    """A log with one record of each of these epochs."""
    log = ReplicaLog(MemoryDisk(f"/{name}"), "t-0")
    for epoch in epochs:
        log.append_as_leader(batch("x"), epoch, 0)
    log.high_watermark = high_watermark
    return log


@each_row(
    ("current", "future", "expected"),
    [
        ((), (), 0),
        ((1, 1, 1), (), 0),
        ((1, 1, 1), (1, 1), 2),
        ((1,), (1, 1, 1), 1),
        ((1, 3), (1, 2, 2), 1),
        ((1, 1, 2, 4), (1, 3, 3, 3), 1),
        ((2, 2), (1, 1, 1), 0),
    ],
)
def test_logs_agree_up_to_the_end_of_the_last_common_epoch(
    current: tuple[int, ...], future: tuple[int, ...], expected: int
) -> None:
    assert common_end(log_of("current", *current), log_of("future", *future)) == expected


@each_row(("current", "high_watermark", "expected"), [((1,), 3, 1), ((1, 1, 1), 2, 2), ((1, 1, 1), 9, 3)])
def test_of_a_log_with_newer_epochs_the_committed_records_are_kept(
    current: tuple[int, ...], high_watermark: int, expected: int
) -> None:
    future = log_of("future", 5, 5, 5, high_watermark=high_watermark)
    assert common_end(log_of("current", *current), future) == expected


def test_a_piece_brings_records_start_and_high_watermark() -> None:
    current, future = log_of("current", 1, 1, 2, 2, high_watermark=3), log_of("future", 1)
    current.advance_start_offset(1)
    assert not has_caught_up(current, future)
    assert copy_piece(current, future) == 3 * (current.size_bytes // 4)
    assert (future.start_offset, future.high_watermark, future.end_offset) == (1, 3, 4)
    assert future.leader_epochs == current.leader_epochs
    assert has_caught_up(current, future)
    assert copy_piece(current, future) == 0


@each_row("start", [5, 9])
def test_a_log_that_begins_elsewhere_is_copied_anew(start: int) -> None:
    current, future = log_of("current", 1, 1), log_of("future", 1)
    (current if start == 5 else future).truncate_fully_at(start)
    copy_piece(current, future)
    assert (future.start_offset, future.end_offset) == (current.start_offset, current.end_offset)


def test_a_log_that_begins_within_a_batch_is_copied_from_that_batch_on() -> None:
    current, future = log_of("current"), log_of("future")
    for _ in range(2):
        current.append_as_leader(batch("x", "y"), 1, 0)
    current.high_watermark = 4
    current.advance_start_offset(3)
    align(current, future)
    assert (future.start_offset, future.end_offset) == (2, 2)
    copy_piece(current, future)
    assert (future.start_offset, future.end_offset) == (3, 4)
    assert future.read(3, 1000) == current.read(3, 1000)
    assert has_caught_up(current, future)

import errno
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft.server.controller.log import segments
from mockraft.server.controller.log.data_dir import DataDirError, StorageError
from mockraft.server.controller.log.segments import LogStorage
from mockraft.wire import error_codes, record_batch

FIRST_SEGMENT = "00000000000000000000.log"


def batch(base_offset: int, count: int = 1, size: int = 20, epoch: int = 1) -> bytes:
    values = [bytes([base_offset % 256]) * size] * count
    return record_batch.encode(values, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=1000)


def storage(path: Path, segment_bytes_max: int = 1 << 30, fsync: bool = False) -> LogStorage:
    return LogStorage(path, segment_bytes_max=segment_bytes_max, fsync=fsync)


def written(path: Path, count: int, **options: Any) -> list[bytes]:
    """Open, append `count` batches of two records, close; what was appended."""
    found = storage(path, **options)
    found.open_for_append(0)
    batches = [batch(number * 2, 2) for number in range(count)]
    for number, data in enumerate(batches):
        found.append(data, number * 2)
    found.close()
    return batches


def opened(path: Path, **options: Any) -> LogStorage:
    """A storage with one batch."""
    found = storage(path, **options)
    found.open_for_append(0)
    found.append(batch(0), 0)
    return found


def recovered(path: Path) -> list[bytes]:
    return [data for _, data in storage(path).recover()]


def refuse(_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_appended_records_are_read_back(tmp_path: Path) -> None:
    batches = written(tmp_path, 5)
    assert recovered(tmp_path) == batches
    assert (tmp_path / FIRST_SEGMENT).read_bytes() == b"".join(batches)


def test_appends_continue_after_existing_records(tmp_path: Path) -> None:
    batches = written(tmp_path, 2)
    found = storage(tmp_path)
    header, data = list(found.recover())[1]
    assert (header.position, header.end, header.base_offset, header.last_offset) == (0, len(data), 2, 3)
    assert len(record_batch.read_batch(data, header).records) == 2
    found.open_for_append(4)
    found.append(batch(4), 4)
    assert recovered(tmp_path) == [*batches, batch(4)], "in the file before the storage is closed"
    found.close()


@pytest.mark.parametrize("fsync", [False, True])
def test_a_batch_left_unsynced_by_a_kill_is_synced_before_the_next_append(
    tmp_path: Path, synced: dict[Path, bytes | set[str]], fsync: bool
) -> None:
    written(tmp_path, 3, segment_bytes_max=2 * len(batch(0, 2)))
    killed = storage(tmp_path)
    killed.open_for_append(6)
    killed.append(batch(6, 2), 6)
    synced.clear()
    found = storage(tmp_path, fsync=fsync)
    list(found.recover())
    found.open_for_append(8)
    last = "00000000000000000004.log"
    recovered_batches = {tmp_path: {FIRST_SEGMENT, last}, tmp_path / last: batch(4, 2) + batch(6, 2)}
    assert synced == (recovered_batches if fsync else {})


def test_a_segment_is_synced_before_the_next_one_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: dict[Path, bytes | set[str]]
) -> None:
    found = opened(tmp_path)
    before_failing = os.open
    monkeypatch.setattr(os, "open", lambda path, *_: refuse(path))
    with pytest.raises(OSError, match="No space left"):
        found.roll(1)
    monkeypatch.setattr(os, "open", before_failing)
    assert synced[tmp_path / FIRST_SEGMENT] == batch(0)
    found.close()


@pytest.mark.parametrize(("count", "batches_max", "bases"), [(7, 3, (0, 6, 12)), (3, 0.1, (0, 2, 4))])
def test_segments_roll_by_size_and_hold_at_least_one_batch(
    tmp_path: Path, count: int, batches_max: float, bases: tuple[int, ...]
) -> None:
    batches = written(tmp_path, count, segment_bytes_max=int(batches_max * len(batch(0, 2))))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{base:020d}.log" for base in bases]
    assert recovered(tmp_path) == batches


def test_restarts_at_another_offset(tmp_path: Path, synced: dict[Path, bytes | set[str]]) -> None:
    written(tmp_path, 6, segment_bytes_max=2 * len(batch(0, 2)))
    found = storage(tmp_path)
    found.restart_at(100)
    assert synced[tmp_path] == {"00000000000000000100.log"}, "old records do not come back below new ones"
    found.append(batch(100), 100)
    found.close()
    assert recovered(tmp_path) == [batch(100)]
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000100.log"]


@pytest.mark.parametrize(("epoch", "reason"), [(-1, "epoch -1"), (2**31 - 1, "epoch 2147483647"), (0, "after epoch 1")])
def test_a_batch_of_an_impossible_epoch_is_named(tmp_path: Path, epoch: int, reason: str) -> None:
    (tmp_path / FIRST_SEGMENT).write_bytes(batch(0) + batch(1, epoch=epoch))
    with pytest.raises(DataDirError, match=rf"{FIRST_SEGMENT}: batch at \d+.*{reason}"):
        recovered(tmp_path)


@pytest.mark.parametrize("offset", [2**63 - 1, 10**20 - 1])
def test_a_segment_after_which_no_record_could_follow_is_named(tmp_path: Path, offset: int) -> None:
    (tmp_path / f"{offset:020d}.log").touch()
    with pytest.raises(DataDirError, match=f"{offset}.log: offset {offset}"):
        recovered(tmp_path)


def test_segments_below_an_offset_are_deleted_and_the_last_one_stays(tmp_path: Path) -> None:
    batches = written(tmp_path, 6, segment_bytes_max=2 * len(batch(0, 2)))
    (tmp_path / "00000000000000000000.timeindex").touch()
    found = storage(tmp_path)
    found.delete_before(5)
    assert recovered(tmp_path) == batches[2:]
    found.delete_before(100)
    assert recovered(tmp_path) == batches[4:]
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000008.log"]


def test_a_failed_restart_keeps_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(segments, "sync_directory", refuse)
        with pytest.raises(OSError, match="No space left"):
            found.restart_at(100)
    assert found.segments == [0]
    found.append(batch(1), 1)
    found.close()
    assert recovered(tmp_path) == [batch(0), batch(1)]


def test_rolling_an_empty_segment_changes_no_file(tmp_path: Path) -> None:
    written(tmp_path, 1)
    found = storage(tmp_path)
    found.open_for_append(2)
    for _ in range(3):
        found.roll(2)
    found.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [FIRST_SEGMENT, "00000000000000000002.log"]
    assert len(recovered(tmp_path)) == 1


def test_a_crash_at_any_byte_of_an_append_keeps_all_before_it(tmp_path: Path) -> None:
    batches = written(tmp_path, 3)
    path = tmp_path / FIRST_SEGMENT
    whole = path.read_bytes()
    ends = list(itertools.accumulate(map(len, batches)))
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        kept = sum(end <= size for end in ends)
        assert recovered(tmp_path) == batches[:kept]
        assert path.stat().st_size == sum(map(len, batches[:kept])), "the torn tail is cut off the file"
        path.write_bytes(whole)


@pytest.mark.parametrize("filler", [b"\0", b"\xff", b"\x02"])
def test_a_tail_of_lost_blocks_is_cut_off(tmp_path: Path, filler: bytes) -> None:
    batches = written(tmp_path, 3)
    path = tmp_path / FIRST_SEGMENT
    whole = path.read_bytes()
    start = len(whole) - len(batches[2])
    for size in range(1, len(batches[2]), 7):
        path.write_bytes(whole[: start + size] + filler * (len(batches[2]) - size + 4096))
        assert recovered(tmp_path) == batches[:2]


def test_damage_is_cut_off_in_the_last_batch_and_refused_before_it(tmp_path: Path) -> None:
    batches = written(tmp_path, 3)
    path = tmp_path / FIRST_SEGMENT
    whole = path.read_bytes()
    starts = [0, *itertools.accumulate(map(len, batches))]
    for number in (1, 2):
        for position in range(starts[number], starts[number + 1]):
            if 12 <= position - starts[number] < 16:
                continue  # the leader epoch is outside the CRC
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x41]) + whole[position + 1 :])
            if number == 1:
                with pytest.raises(DataDirError, match=r"there is a valid batch after it|has base offset"):
                    recovered(tmp_path)
                assert path.stat().st_size == len(whole), "nothing is cut where records would be lost"
            elif position >= starts[number] + 16:
                assert recovered(tmp_path) == batches[:2]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda first, third: first.write_bytes(first.read_bytes()[:-1]), "there are segments after it"),
        (lambda first, third: third.unlink(), "ends at 4, but the segment after it begins at 8"),
        (lambda first, third: first.write_bytes(batch(0) + batch(2)), "has base offset 2, expected 1"),
    ],
    ids=["torn", "missing", "out of order"],
)
def test_segments_that_do_not_follow_one_another_are_refused(
    tmp_path: Path, damage: Callable[[Path, Path], object], message: str
) -> None:
    written(tmp_path, 6, segment_bytes_max=2 * len(batch(0, 2)))
    damage(tmp_path / FIRST_SEGMENT, tmp_path / "00000000000000000004.log")
    with pytest.raises(DataDirError, match=message):
        recovered(tmp_path)


def failing(code: int, after_bytes: int = 0) -> Callable[..., int]:
    """A pwrite that writes `after_bytes` and then fails."""
    left = [after_bytes]

    def pwrite(descriptor: int, data: Any, position: int) -> int:
        if not left[0]:
            raise OSError(code, os.strerror(code))
        count = os.write(descriptor, bytes(data)[: left[0]]) if os.lseek(descriptor, position, os.SEEK_SET) >= 0 else 0
        left[0] -= count
        return count

    return pwrite


@pytest.mark.parametrize("after_bytes", [0, 1, 30, 80])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EFBIG])
def test_a_write_that_fails_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, after_bytes: int
) -> None:
    found = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", failing(code, after_bytes))
        with pytest.raises(StorageError, match=os.strerror(code)) as refused:
            found.append(batch(1), 1)
        assert refused.value.error_code == error_codes.KAFKA_STORAGE_ERROR
        assert (tmp_path / FIRST_SEGMENT).read_bytes() == batch(0)
    found.append(batch(1), 1)
    found.close()
    assert recovered(tmp_path) == [batch(0), batch(1)]


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = storage(tmp_path)
    found.open_for_append(0)
    real = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda fd, data, position: real(fd, bytes(data)[:7], position))
        found.append(batch(0, 3), 0)
    found.close()
    assert recovered(tmp_path) == [batch(0, 3)]


@pytest.mark.parametrize("fsync", [False, True], ids=["cannot be cut back", "failed sync"])
def test_after_a_failure_that_cannot_be_undone_no_more_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool
) -> None:
    found = opened(tmp_path, fsync=fsync)
    with monkeypatch.context() as patch:
        if fsync:
            patch.setattr(os, "fsync", refuse)
        else:
            patch.setattr(os, "pwrite", failing(errno.EIO, 10))
            patch.setattr(os, "ftruncate", lambda _, size: failing(errno.EIO)(0, b"", size))
        with pytest.raises(StorageError):
            found.append(batch(1), 1)
    with pytest.raises(StorageError, match="a sync failed before" if fsync else "restart"):
        found.append(batch(1), 1)
    found.close()
    assert recovered(tmp_path) == [batch(0)]


def test_a_segment_that_cannot_be_made_refuses_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = opened(tmp_path, segment_bytes_max=10)
    with monkeypatch.context() as patch:
        patch.setattr(segments, "sync_directory", refuse)
        with pytest.raises(StorageError, match="No space left"):
            found.append(batch(1), 1)
    found.append(batch(1), 1)
    found.close()
    assert recovered(tmp_path) == [batch(0), batch(1)]

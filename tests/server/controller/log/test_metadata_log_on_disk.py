"""A log with a data dir: its contents after a restart, a crash at any byte, and its refusals."""

import os
import random
from pathlib import Path

import pytest
from mockraft.server.controller.log.data_dir import DataDirError, StorageError
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.snapshot import EpochEndOffset, SnapshotId
from mockraft.server.controller.result import ControllerResult
from mockraft.wire import record_batch

from ....conftest import Cluster
from .conftest import FIRST_SEGMENT, Open, crashed, full_disk, started_in, topic, topics_among, written_snapshot

HEAD_END = 12


def test_a_restart_keeps_every_record_and_begins_an_epoch(reopen: Open) -> None:
    first = reopen()
    for number in range(5):
        first.append([topic(number)], 2000)
    before, end_offset, directory_id = first.read(0, 1 << 30), first.end_offset, first.directory_id
    second = reopen(seed=2)
    assert (second.read(0, len(before)), second.leader_epoch, second.directory_id) == (before, 2, directory_id)
    (leader_change,) = record_batch.read_batches(second.read(end_offset, 1))
    assert (leader_change.leader_epoch, leader_change.is_control, len(leader_change.records)) == (2, True, 1)
    assert second.end_offset == end_offset + 1
    assert topics_among(second) == [f"topic-{number}" for number in range(5)]
    assert second.check(end_offset, 1) is None, "a follower goes on"
    assert second.check(end_offset + 5, 1) == EpochEndOffset(1, end_offset)
    assert second.append([topic(9)], 3000) == end_offset + 1
    assert [reopen().leader_epoch for _ in range(2)] == [3, 4]


def test_a_new_port_is_written_as_a_new_voter_set(reopen: Open) -> None:
    end_offset = reopen(port=1111).end_offset
    log = reopen(port=2222)
    (batch,) = record_batch.read_batches(log.read(end_offset, 1))
    assert [record_batch.control_type(key) for key, _ in batch.records] == [2, 5, 6]
    end_offset = log.end_offset
    (batch,) = record_batch.read_batches(reopen(port=2222).read(end_offset, 1))
    assert [record_batch.control_type(key) for key, _ in batch.records] == [2]


def test_crash_at_any_byte_of_the_last_batches_keeps_acknowledged_records(reopen: Open, tmp_path: Path) -> None:
    log = reopen()
    ends = []
    for number in range(3):
        log.append([topic(number)], 2000)
        ends.append((tmp_path / "data" / FIRST_SEGMENT).stat().st_size)
    start = ends[0]
    for size in range(start, ends[-1] + 1):
        copy = crashed(log, tmp_path / "crashed")
        os.truncate(copy / FIRST_SEGMENT, size)
        again = started_in(copy)
        acknowledged = sum(end <= size for end in ends)
        assert topics_among(again) == [f"topic-{number}" for number in range(acknowledged)]
        assert again.append([topic(7)], 9000) == again.end_offset - 1
        again.close()


def test_crash_at_any_byte_of_the_first_start_starts_empty(reopen: Open, tmp_path: Path) -> None:
    log = reopen()
    size = (tmp_path / "data" / FIRST_SEGMENT).stat().st_size
    for cut in range(0, size + 1, 3):
        copy = crashed(log, tmp_path / "crashed")
        os.truncate(copy / FIRST_SEGMENT, cut)
        if cut < 174:
            (copy / "__cluster_metadata-0" / "leader-epoch-checkpoint").unlink()
        again = started_in(copy)
        assert [at for _, at in again.records()] == [at for _, at in log.records()]
        again.close()


def without_the_first_log(reopen: Open) -> tuple[MetadataLog, SnapshotId]:
    """A log with two topics_among that begins at its second snapshot, and the snapshot."""
    log = reopen(metadata_max_retention_bytes=1)
    for number in range(2):
        log.append([topic(number)], 2000)
        last = written_snapshot(log)
    return log, last


def test_a_segment_ends_before_a_record_that_is_later_than_its_first_one_by_more_than_its_time(
    reopen: Open, tmp_path: Path
) -> None:
    log = reopen(metadata_log_segment_ms=100)
    begin = log.end_offset
    for now_ms in (9_000, 9_100):
        log.append([topic(now_ms)], now_ms)
    log = reopen(metadata_log_segment_ms=100)
    for now_ms in (9_101, 9_150, 9_202):
        log.append([topic(now_ms)], now_ms)
    names = sorted(path.name for path in (tmp_path / "data" / "__cluster_metadata-0").glob("*.log"))
    assert [int(name.partition(".")[0]) - begin for name in names] == [-begin, 0, 3, 5]


def test_starts_from_a_snapshot(reopen: Open, tmp_path: Path) -> None:
    log = reopen()
    log.append([topic(1)], 2000)
    first = written_snapshot(log)
    log.append([topic(2)], 2000)
    again = reopen()
    assert [found.id for found in again.snapshots] == [first]
    assert topics_among(again) == ["topic-1", "topic-2"]
    assert again.check(0, 0) == first
    assert (tmp_path / "data" / "__cluster_metadata-0" / first.file_name).exists()


def test_starts_from_a_snapshot_after_the_log_below_it_was_deleted(reopen: Open, tmp_path: Path) -> None:
    log = reopen(metadata_max_retention_bytes=1)
    for number in range(3):
        log.append([topic(number)], 2000)
        last = written_snapshot(log)
    log.append([topic(3)], 2000)
    names = sorted(path.name for path in (tmp_path / "data" / "__cluster_metadata-0").iterdir())
    base = f"{last.end_offset:020d}"
    assert [name for name in names if name[0] == "0"] == [f"{base}-0000000001.checkpoint", f"{base}.log"]
    again = reopen()
    assert (again.start_offset, topics_among(again)) == (last.end_offset, ["topic-0", "topic-1", "topic-2", "topic-3"])
    assert again.leader_epoch == 2
    third = reopen()
    assert third.check(third.end_offset, 3) is None
    assert third.check(last.end_offset, 1) is None


def test_starts_from_a_snapshot_with_an_empty_log_and_its_voters(reopen: Open) -> None:
    _, last = without_the_first_log(reopen)
    again = reopen()
    assert (again.start_offset, again.end_offset) == (last.end_offset, last.end_offset + 1)
    assert topics_among(again) == ["topic-0", "topic-1"]
    (batch,) = record_batch.read_batches(again.read(last.end_offset, 1))
    assert len(batch.records) == 1, "the voters are not written again"


def test_a_log_that_lost_its_end_begins_after_the_snapshot(
    reopen: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = reopen()
    log.append([topic(1)], 2000)
    last = written_snapshot(log)
    copy = crashed(log, tmp_path / "crashed")
    (copy / f"__cluster_metadata-0/{last.end_offset:020d}.log").unlink()
    os.truncate(copy / FIRST_SEGMENT, (copy / FIRST_SEGMENT).stat().st_size - 1)
    again = started_in(copy)
    assert "before snapshot" in caplog.text
    assert (again.start_offset, topics_among(again)) == (last.end_offset, ["topic-1"])
    again.append([topic(2)], 9000)
    again.close()
    third = started_in(copy)
    assert topics_among(third) == ["topic-1", "topic-2"]
    third.close()


def test_unfinished_and_outlived_snapshots_are_deleted_and_the_last_is_needed(reopen: Open, tmp_path: Path) -> None:
    _, last = without_the_first_log(reopen)
    partition = tmp_path / "data" / "__cluster_metadata-0"
    for name in ("00000000000000000099-0000000001.checkpoint.part", "00000000000000000002-0000000001.checkpoint"):
        (partition / name).write_bytes(b"x")
    assert [found.id for found in reopen().snapshots] == [last]
    assert [path.name for path in partition.glob("*.checkpoint*")] == [last.file_name]
    (partition / last.file_name).unlink()
    with pytest.raises(DataDirError, match="no snapshot covers"):
        reopen()


@pytest.mark.parametrize("name", ["00000000000000000002-9999999999", "99999999999999999999-0000000001"])
def test_a_snapshot_after_which_nothing_could_follow_is_named(reopen: Open, tmp_path: Path, name: str) -> None:
    reopen()
    (tmp_path / "data" / "__cluster_metadata-0" / f"{name}.checkpoint").write_bytes(b"x")
    with pytest.raises(DataDirError, match=rf"{name}\.checkpoint: (leader epoch|offset) 9+ is not"):
        reopen()


def test_a_damaged_snapshot_is_named(reopen: Open, tmp_path: Path) -> None:
    log = reopen()
    last = written_snapshot(log)
    path = tmp_path / "data" / "__cluster_metadata-0" / last.file_name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataDirError, match=last.file_name):
        reopen()


@pytest.mark.parametrize("size", [None, 0, 174, 400])
def test_a_log_that_is_gone_or_shorter_than_its_epochs_is_refused(
    reopen: Open, tmp_path: Path, size: int | None
) -> None:
    reopen().append([topic(1)], 2000)
    copy = crashed(reopen(), tmp_path / "crashed")
    if size is None:
        (copy / FIRST_SEGMENT).unlink()
    else:
        os.truncate(copy / FIRST_SEGMENT, size)
    lost = "at leader epoch 2, but the log is gone" if size is None else "its end was lost"
    for _ in range(2):
        with pytest.raises(DataDirError, match=rf"{lost}.*fresh brokers"):
            started_in(copy)


def test_another_nodes_log_is_refused(reopen: Open, tmp_path: Path) -> None:
    copy = crashed(reopen(), tmp_path / "crashed")
    with pytest.raises(DataDirError, match=r"node\.id is 3000"):
        reopen(node_id=1)
    assert reopen().leader_epoch == 2, "a refused start leaves no trace"
    meta = copy / "meta.properties"
    lines = [line for line in meta.read_text().splitlines() if not line.startswith("directory.id")]
    meta.write_text("\n".join([*lines, "directory.id=5FA_GCXWTNqrLrpox6MRbQ"]))
    with pytest.raises(DataDirError, match=r"the voters are \[3000\], not this controller"):
        started_in(copy)


def test_segments_are_limited_in_size(reopen: Open, tmp_path: Path) -> None:
    log = reopen(metadata_log_segment_bytes=600)
    for number in range(20):
        log.append([topic(number)], 2000)
    sizes = [path.stat().st_size for path in (tmp_path / "data").rglob("*.log")]
    assert len(sizes) > 3
    assert max(sizes) <= 600
    assert topics_among(reopen()) == [f"topic-{number}" for number in range(20)]


def test_fsync_is_optional(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    for fsync in (False, True):
        log = reopen(metadata_log_fsync=fsync)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", synced.append)
            log.append([topic(1)], 2000)
        assert bool(synced) is fsync


def test_a_refused_write_leaves_the_image_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(data_dir=tmp_path)
    monkeypatch.setattr(os, "pwrite", full_disk)
    with pytest.raises(StorageError):
        cluster.controller.commit(ControllerResult([topic(1)], None), 2000)
    assert (cluster.written(), dict(cluster.controller.image.topics.by_name)) == ([], {})


def test_damage_anywhere_is_recovered_from_or_named(reopen: Open, tmp_path: Path) -> None:
    log = reopen(metadata_log_segment_bytes=700)
    for number in range(8):
        log.append([topic(number)], 2000)
    written_snapshot(log)
    log.append([topic(9)], 2000)
    log.close()
    rng = random.Random(4)
    opened = refused = 0
    for _ in range(200):
        copy = crashed(log, tmp_path / "crashed")
        files = [path for path in sorted(copy.rglob("*")) if path.is_file() and path.stat().st_size]
        path = rng.choice(files)
        data = bytearray(path.read_bytes())
        start = rng.randrange(len(data))
        if rng.random() < 0.3:
            del data[start:]
        else:
            data[start : start + rng.randrange(1, 5)] = rng.randbytes(rng.randrange(1, 5))
        path.write_bytes(data)
        try:
            again = started_in(copy)
        except DataDirError:
            refused += 1
            continue
        list(again.records())
        again.append([topic(10)], 9000)
        again.close()
        opened += 1
    assert opened > 10
    assert refused > 10


def test_a_record_of_a_newer_kafka_is_named(reopen: Open, tmp_path: Path) -> None:
    log = reopen()
    data = record_batch.encode([b"\x01\x63\x00\x00"], base_offset=log.end_offset, leader_epoch=1, timestamp_ms=1)
    with (tmp_path / "data" / FIRST_SEGMENT).open("ab") as file:
        file.write(data)
    with pytest.raises(DataDirError, match="cannot be replayed: there is no metadata record of type 99"):
        list(reopen().records())

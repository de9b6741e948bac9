"""A log whose files cannot be written, or were taken away: what is refused, and the reason that it reports."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft.server.controller.log import data_dir
from mockraft.server.controller.log.data_dir import DataDirError, StorageError
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.controller.quorum.voter_set import ElectionState

from ....rows import each_row
from .conftest import FIRST_SEGMENT, Open, crashed, full_disk, started_in, topic, topics_among

SECOND_SEGMENT = "__cluster_metadata-0/00000000000000000012.log"


def test_a_full_disk_refuses_the_write_and_keeps_the_log(
    reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = reopen()
    log.append([topic(1)], 2000)
    end_offset, held = log.end_offset, log.read(0, 1 << 30)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full_disk)
        with pytest.raises(StorageError, match="No space left"):
            log.append([topic(2)], 3000)
        assert (log.end_offset, log.read(0, 1 << 30)) == (end_offset, held)
        assert "No space left" in str(log.failure)
    log.append([topic(3)], 4000)
    assert log.failure is None
    assert topics_among(started_in(crashed(log, tmp_path / "crashed"))) == ["topic-1", "topic-3"]


@pytest.mark.parametrize("name", ["quorum-state", "leader-epoch-checkpoint"])
def test_a_small_file_that_cannot_be_written_is_the_failure_until_an_append_succeeds(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    log = reopen()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        for _ in range(3):
            if name == "quorum-state":
                with pytest.raises(StorageError, match="No space left"):
                    log.save_election(ElectionState(7, None))
            else:
                log.leader_epoch += 1
                log.append([topic(log.leader_epoch)], 2000)
            assert log.failure is not None
            assert f"{name}: cannot be written: [Errno 28] No space left" in log.failure
    assert log.election.epoch == 1
    assert caplog.text.count("cannot be written") == 1, "reported once"
    log.append([topic(9)], 3000)
    assert log.failure is None
    epochs = [1] if name == "quorum-state" else [1, 2, 3, 4]
    assert log.config.data_dir is not None
    saved = (log.config.data_dir / "__cluster_metadata-0" / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    assert [int(line.split()[0]) for line in saved] == epochs


@pytest.mark.parametrize("first", ["segment", "leader-epoch-checkpoint"])
def test_the_failure_is_the_segment_that_stops_writes_not_the_harmless_checkpoint(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, first: str
) -> None:
    log = reopen()
    if first == "leader-epoch-checkpoint":
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full_disk)
            log.leader_epoch += 1
            log.append([topic(1)], 2000)
        assert not log.is_lost(looks=True), "a leader goes on"
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full_disk)
        with pytest.raises(StorageError):
            log.append([topic(2)], 2000)
    with monkeypatch.context() as patch:
        # As on a disk whose last page has room for a small batch, and none for a new file.
        patch.setattr(os, "fsync", full_disk)
        log.append([topic(3)], 3000)
    assert log.failure is not None
    assert log.is_lost(looks=False)
    assert f"{FIRST_SEGMENT}: cannot be written" in log.failure
    assert caplog.text.count(f"{FIRST_SEGMENT}: cannot be written") == 1
    log.append([topic(4)], 4000)
    assert log.failure is None


def _replace(data_dir: Path) -> None:
    data_dir.rename(data_dir.with_name("moved"))
    shutil.copytree(data_dir.with_name("moved"), data_dir)


@each_row(
    ("take_away", "reason"),
    [
        (shutil.rmtree, f"{FIRST_SEGMENT}: is lost: No such file"),
        (_replace, f"{SECOND_SEGMENT}: is lost: another file has its name"),
        (lambda data_dir: (data_dir / FIRST_SEGMENT).unlink(), f"{FIRST_SEGMENT}: is lost: No such file"),
        (lambda data_dir: os.truncate(data_dir / FIRST_SEGMENT, 9), f"{FIRST_SEGMENT}: has 9 bytes, but "),
        (lambda data_dir: os.truncate(data_dir / SECOND_SEGMENT, 9), f"{SECOND_SEGMENT}: has 9 bytes, but "),
    ],
)
def test_a_log_whose_files_were_taken_away_is_not_written(
    tmp_path: Path, take_away: Callable[[Path], None], reason: str
) -> None:
    log = started_in(tmp_path / "data")
    assert log.write_snapshot([], 3000) is not None
    log.append([topic(1)], 4000)
    assert log.failure is None
    take_away(tmp_path / "data")
    left = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert reason in str(log.failure)
    writes: list[Callable[[], object]] = [
        lambda: log.write_snapshot([], 5000),
        lambda: log.save_election(ElectionState(7, None)),
    ]
    if FIRST_SEGMENT not in reason or take_away is shutil.rmtree:
        writes.append(lambda: log.append([topic(2)], 6000))
    for write in writes:
        with pytest.raises(StorageError, match=r"is lost|were written"):
            write()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == left


@pytest.mark.parametrize(("module", "call"), [(os, "pwrite"), (data_dir, "replace_file")], ids=["log", "quorum-state"])
def test_a_full_disk_at_the_start_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, call: str
) -> None:
    started_in(tmp_path).close()
    with monkeypatch.context() as patch:
        patch.setattr(module, call, full_disk)
        with pytest.raises(DataDirError, match=r"cannot be used: [^(]*cannot be written: \[Errno 28\] No space left"):
            started_in(tmp_path)
    started_in(tmp_path).close()


def test_snapshot_that_cannot_be_written_is_retried_later(
    reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = reopen(metadata_log_max_record_bytes_between_snapshots=1)
    log.append([topic(1)], 2000)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(StorageError, match="cannot be written: \\[Errno 28\\] No space left"):
            log.write_snapshot([topic(1)], 3000)
    assert not list(tmp_path.rglob("*.checkpoint*"))
    assert log.snapshot_due(3000) is None
    assert log.snapshot_due(63_000) is not None
    assert log.write_snapshot([topic(1)], 63_000) == SnapshotId(log.end_offset, 1)

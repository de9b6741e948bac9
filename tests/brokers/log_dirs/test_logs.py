"""The logs of a broker in all its directories: created, loaded again, moved, lost with their directory, or strays."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.checkpoints import read_offsets, write_topic_id
from mockraft.brokers.log_dirs.errors import LogError, StorageError
from mockraft.brokers.log_dirs.log_loading import LogDir
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.wire import error_codes

from .conftest import batch

TOPIC = bytes(range(16))
OTHER = bytes(range(16, 32))
D0, D1 = b"0" * 16, b"1" * 16


@pytest.fixture
def disks() -> list[FailingDisk]:
    return [FailingDisk(MemoryDisk(f"/simulated/d{index}")) for index in range(2)]


def open_logs(disks: list[FailingDisk]) -> Logs:
    return Logs(
        [LogDir(disk, directory_id) for disk, directory_id in zip(disks, (D0, D1), strict=True)], random.Random(7)
    )


@pytest.fixture
def logs(disks: list[FailingDisk]) -> Logs:
    return open_logs(disks)


def test_log_is_created_in_the_given_directory_with_its_topic_id(logs: Logs, disks: list[FailingDisk]) -> None:
    log = logs.create((TOPIC, 3), "t", D1)

    assert logs.log((TOPIC, 3)) is log
    assert logs.create((TOPIC, 3), "t", D1) is log
    assert logs.directory_of((TOPIC, 3)) == D1
    assert logs.replicas_in(D1) == [(TOPIC, 3)]
    assert logs.replicas_in(D0) == []
    assert disks[1].names() == ["t-3"]
    assert disks[1].read("t-3/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    with pytest.raises(ValueError, match="t-3 lies in /simulated/d1 already"):
        logs.create((TOPIC, 3), "t", D0)
    with pytest.raises(LookupError, match="no log directory has the id"):
        logs.create((TOPIC, 4), "t", b"?" * 16)


def test_a_topic_of_the_same_name_and_another_id_does_not_get_the_log(logs: Logs) -> None:
    logs.create((TOPIC, 0), "t", D0)
    with pytest.raises(LogError, match="already contained topic ID AAECAwQFBgcICQoLDA0ODw") as raised:
        logs.create((OTHER, 0), "t", D0)
    assert raised.value.error_code == error_codes.INCONSISTENT_TOPIC_ID


@pytest.mark.parametrize("name", ["a/b", "../../a", "a\0"])
def test_a_topic_whose_name_no_directory_can_have_gets_no_log(logs: Logs, disks: list[FailingDisk], name: str) -> None:
    with pytest.raises(LogError, match="has a name that no directory can have"):
        logs.create((TOPIC, 0), name, D0)
    assert disks[0].names() == []


def test_removed_log_leaves_no_files(logs: Logs, disks: list[FailingDisk]) -> None:
    logs.create((TOPIC, 0), "t", D0)
    logs.create((TOPIC, 0), "t", D1, future=True)
    logs.remove((TOPIC, 0), future=True)
    logs.remove((TOPIC, 0))
    logs.remove((TOPIC, 0))

    assert logs.log((TOPIC, 0)) is None
    assert disks[0].names() == disks[1].names() == []


def test_a_future_log_takes_the_place_of_the_one_in_use(logs: Logs, disks: list[FailingDisk]) -> None:
    old = logs.create((TOPIC, 0), "t", D0)
    old.append_as_leader(batch("a"), 0, 0)
    old.high_watermark = 1
    with pytest.raises(ValueError, match="it cannot be moved there"):
        logs.create((TOPIC, 0), "t", D0, future=True)
    future = logs.create((TOPIC, 0), "t", D1, future=True)
    assert logs.future((TOPIC, 0)) is future
    assert logs.log((TOPIC, 0)) is old
    (name,) = disks[1].names()
    assert name.startswith("t-0.")
    assert name.endswith("-future")
    assert len(name) == len("t-0.") + 32 + len("-future")
    future.append_as_follower(old.read(0, 1000))

    assert logs.promote((TOPIC, 0)) is future
    assert logs.log((TOPIC, 0)) is future
    assert logs.future((TOPIC, 0)) is None
    assert logs.directory_of((TOPIC, 0)) == D1
    assert (future.end_offset, future.high_watermark) == (1, 1)
    assert disks[0].names() == []
    assert disks[1].names() == ["t-0"]
    assert old.is_closed
    with pytest.raises(LookupError, match="no future log"):
        logs.promote((TOPIC, 0))


def test_lost_replica_recreated_elsewhere_moves_back_over_its_remains(logs: Logs, disks: list[FailingDisk]) -> None:
    key = (TOPIC, 0)
    logs.create(key, "t", D0).append_as_leader(batch("lost"), 1, 0)
    logs.forget(key)
    logs.create(key, "t", D1)
    back = logs.create(key, "t", D0, future=True)

    assert logs.promote(key) is back
    assert (back.dir_name, back.end_offset) == ("t-0", 0)
    left = [name for name in disks[0].names() if name.endswith("-stray")]
    assert [disks[0].size(f"{name}/00000000000000000000.log") for name in left] == [len(batch("lost"))]
    assert not [name for name in disks[1].names() if name.startswith("t-0")]


def test_logs_are_loaded_without_recovery_after_a_clean_shutdown(logs: Logs, disks: list[FailingDisk]) -> None:
    log = logs.create((TOPIC, 0), "t", D0)
    for index in range(3):
        log.append_as_leader(batch("a", str(index)), index, 0)
    log.high_watermark = 4
    logs.create((TOPIC, 1), "t", D1).append_as_leader(batch("b"), 0, 0)
    logs.create((TOPIC, 0), "t", D1, future=True).append_as_follower(log.read(0, 1))
    logs.shut_down(broker_epoch=42)
    assert disks[0].read(".kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":42}'
    assert disks[0].read("replication-offset-checkpoint") == b"0\n1\nt 0 4\n"
    assert disks[0].read("recovery-point-offset-checkpoint") == b"0\n1\nt 0 6\n"
    assert disks[0].read("log-start-offset-checkpoint") == b"0\n0\n"

    again = open_logs(disks)
    found = again.load()

    assert again.previous_broker_epoch == 42
    assert [(held.key, held.log_dir.directory_id) for held in found.live] == [((TOPIC, 0), D0), ((TOPIC, 1), D1)]
    assert [held.key for held in found.future] == [(TOPIC, 0)]
    opened = again.log((TOPIC, 0))
    assert opened is not None
    assert (opened.end_offset, opened.high_watermark, opened.recovery_point) == (6, 4, 6)
    assert not disks[0].exists(".kafka_cleanshutdown")


def test_directories_that_were_closed_in_different_epochs_have_no_common_one(
    logs: Logs, disks: list[FailingDisk]
) -> None:
    logs.shut_down(broker_epoch=42)
    disks[1].remove(".kafka_cleanshutdown")
    disks[1].append(".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":41}')
    again = open_logs(disks)
    again.load()
    assert again.previous_broker_epoch == -1


def test_after_a_kill_logs_are_recovered_and_there_is_no_epoch(logs: Logs, disks: list[FailingDisk]) -> None:
    log = logs.create((TOPIC, 0), "t", D0)
    log.append_as_leader(batch("a"), 0, 0)
    disks[0].append("t-0/00000000000000000000.log", b"half a ba")
    logs.close()

    again = open_logs(disks)
    again.load()

    assert again.previous_broker_epoch == -1
    opened = again.log((TOPIC, 0))
    assert opened is not None
    assert (opened.end_offset, opened.high_watermark) == (1, 0)


def test_other_names_are_left_alone_and_deleted_ones_deleted(disks: list[FailingDisk]) -> None:
    for name in ("lost+found", "t-0.0123-delete", "t-1.0123-stray", "__cluster_metadata-0", "t-2", "no-number"):
        disks[0].make_dir(name)
    disks[0].append("notes-1", b"not a directory")
    disks[0].append("meta.properties", b"")
    write_topic_id(disks[0], "t-1.0123-stray", TOPIC)

    logs = open_logs(disks)
    found = logs.load()

    assert (found.live, found.future, found.duplicates) == ([], [], [])
    assert [(log_dir.path, name) for log_dir, name in found.strays] == [
        ("/simulated/d0", "t-1.0123-stray"),
        ("/simulated/d0", "t-2"),
    ]
    assert disks[0].names() == [
        "__cluster_metadata-0",
        "lost+found",
        "meta.properties",
        "no-number",
        "notes-1",
        "t-1.0123-stray",
        "t-2",
    ]


def test_a_log_that_the_metadata_does_not_want_is_put_aside(logs: Logs, disks: list[FailingDisk]) -> None:
    logs.create((TOPIC, 0), "t", D0)
    logs.mark_stray((TOPIC, 0))

    (name,) = disks[0].names()
    assert name.startswith("t-0.")
    assert name.endswith("-stray")
    assert logs.log((TOPIC, 0)) is None


def test_replica_in_two_directories_is_reported_and_one_is_kept(disks: list[FailingDisk]) -> None:
    for disk in disks:
        ReplicaLog(disk, "t-0")
        write_topic_id(disk, "t-0", TOPIC)
    logs = open_logs(disks)
    (duplicates,) = logs.load().duplicates
    assert logs.directory_of((TOPIC, 0)) == D0
    logs.keep(duplicates)

    assert logs.directory_of((TOPIC, 0)) == D1
    assert (disks[0].names(), disks[1].names()) == ([], ["t-0"])


@pytest.mark.parametrize("what", ["append", "read", "create", "remove", "truncate"])
def test_disk_error_takes_only_its_directory_offline(logs: Logs, disks: list[FailingDisk], what: str) -> None:
    log = logs.create((TOPIC, 0), "t", D0)
    log.append_as_leader(batch("a", "b"), 0, 0)
    log.append_as_leader(batch("c"), 0, 0)
    well = logs.create((TOPIC, 1), "t", D1)
    disks[0].fail(errno.EROFS)
    calls: dict[str, Callable[[], object]] = {
        "append": lambda: log.append_as_leader(batch("d"), 0, 0),
        "read": lambda: log.read(0, 10),
        "create": lambda: logs.create((TOPIC, 2), "t", D0),
        "remove": lambda: logs.remove((TOPIC, 0)),
        "truncate": lambda: log.truncate_to(2),
    }
    with pytest.raises(StorageError, match="Read-only file system") as raised:
        calls[what]()

    assert (raised.value.error_code, raised.value.directory_id) == (error_codes.KAFKA_STORAGE_ERROR, D0)
    assert raised.value.key == ((TOPIC, 2) if what == "create" else (TOPIC, 0))
    assert isinstance(raised.value.__cause__, OSError)
    assert [log_dir.directory_id for log_dir in logs.live()] == [D1]
    assert "Read-only" in str(logs.log_dirs[0].offline)
    assert logs.log((TOPIC, 0)) is None
    assert logs.is_lost((TOPIC, 0)) == (what != "remove")
    assert logs.replicas_in(D0) == ([] if what == "remove" else [(TOPIC, 0)])
    with pytest.raises(StorageError, match="the log is closed"):
        log.read(0, 10)
    with pytest.raises(StorageError, match="is offline"):
        logs.create((TOPIC, 5), "t", D0)
    assert well.append_as_leader(batch("e"), 0, 0) == (0, 1)


def test_error_listener_decides_on_the_consequence(logs: Logs, disks: list[FailingDisk]) -> None:
    heard = []
    logs.on_error = lambda log_dir, error, key: heard.append((log_dir.path, error.errno, key))
    log = logs.create((TOPIC, 0), "t", D0)
    disks[0].fill()
    with pytest.raises(StorageError):
        log.append_as_leader(batch("a"), 0, 0)
    disks[0].heal()

    assert heard == [("/simulated/d0", errno.ENOSPC, (TOPIC, 0))]
    assert log.append_as_leader(batch("a"), 0, 0) == (0, 1)
    logs.forget((TOPIC, 0))
    assert logs.log((TOPIC, 0)) is None
    assert logs.is_lost((TOPIC, 0))
    assert logs.directory_of((TOPIC, 0)) == D0
    assert disks[0].names() == ["t-0"]


def test_stale_reference_to_a_removed_log_harms_no_directory(logs: Logs) -> None:
    logs.on_error = lambda log_dir, error, key: pytest.fail(f"{log_dir.path}: {error}")
    log = logs.create((TOPIC, 0), "t", D0)
    logs.remove((TOPIC, 0))
    with pytest.raises(StorageError, match="the log is closed"):
        log.append_as_leader(batch("a"), 0, 0)

    assert logs.live() == list(logs.log_dirs)


def test_checkpoints_are_written_where_there_is_something_new(logs: Logs, disks: list[FailingDisk]) -> None:
    log = logs.create((TOPIC, 0), "t", D0)
    log.append_as_leader(batch("a", "b"), 0, 0)
    log.high_watermark = 1
    logs.checkpoint_high_watermarks()
    logs.checkpoint(flush=True)

    assert read_offsets(disks[0], "replication-offset-checkpoint") == {("t", 0): 1}
    assert read_offsets(disks[0], "recovery-point-offset-checkpoint") == {("t", 0): 2}
    assert not disks[1].exists("replication-offset-checkpoint")
    log.high_watermark = 2
    disks[0].fail()
    logs.checkpoint_high_watermarks()
    assert [log_dir.directory_id for log_dir in logs.live()] == [D1]


def test_every_log_is_retained_and_a_disk_that_refuses_harms_no_other(logs: Logs, disks: list[FailingDisk]) -> None:
    for partition, directory_id in enumerate((D0, D1)):
        log = logs.create((TOPIC, partition), "t", directory_id, config=LogConfig(retention_ms=10))
        log.append_as_leader(batch("a", time_ms=5), 0, 0)
        log.high_watermark = 1
    disks[0].fail()
    logs.retain(now_ms=100)

    assert [log_dir.directory_id for log_dir in logs.live()] == [D1]
    assert [held.log.start_offset for held in logs.held()] == [1]


def test_a_broken_checkpoint_costs_a_recovery_or_the_directory_as_in_kafka(
    disks: list[FailingDisk], caplog: pytest.LogCaptureFixture
) -> None:
    disks[0].replace("recovery-point-offset-checkpoint", b"garbage")
    disks[1].replace("replication-offset-checkpoint", b"0\n5\nt 0 1\n")
    logs = open_logs(disks)
    logs.load()

    assert logs.log_dirs[0].offline is None
    assert "/simulated/d0/recovery-point-offset-checkpoint: cannot be read" in caplog.text
    assert "malformed at line 2: expected 5 entries, found 1" in str(logs.log_dirs[1].offline)


def test_a_directory_is_for_one_broker(logs: Logs, disks: list[FailingDisk]) -> None:
    logs.lock()
    other = open_logs([FailingDisk(MemoryDisk("/simulated/own")), disks[1]])
    with pytest.raises(BlockingIOError, match="another broker runs on this log directory"):
        other.lock()
    logs.shut_down()
    other.lock()
    assert other.live() == list(other.log_dirs)


def test_a_directory_that_cannot_be_locked_is_offline(logs: Logs, disks: list[FailingDisk]) -> None:
    disks[1].fail()
    logs.lock()

    assert [log_dir.directory_id for log_dir in logs.live()] == [D0]


def test_logs_missing_from_the_metadata_are_renamed_to_stray(logs: Logs, disks: list[FailingDisk]) -> None:
    logs.create((TOPIC, 0), "t", D0)
    logs.create((TOPIC, 1), "t", D0)
    logs.mark_strays({(TOPIC, 1)})

    assert [held.key for held in logs.held()] == [(TOPIC, 1)]
    assert sorted(name.rpartition("-")[2] for name in disks[0].names()) == ["1", "stray"]


def test_a_move_of_a_lost_log_ends_its_loss(logs: Logs) -> None:
    key = (TOPIC, 0)
    logs.create(key, "t", D0)
    future = logs.create(key, "t", D1, future=True)
    logs.forget(key)
    assert logs.is_lost(key)
    assert logs.promote(key) is future
    assert not logs.is_lost(key)


def test_an_offline_directory_names_itself(logs: Logs) -> None:
    logs.take_offline(D0, "gone")
    with pytest.raises(StorageError, match="/simulated/d0 is offline: gone") as raised:
        logs.create((TOPIC, 1), "t", D0)
    assert (raised.value.directory_id, raised.value.key) == (D0, (TOPIC, 1))


def test_a_future_log_that_is_forgotten_is_no_lost_replica(logs: Logs) -> None:
    key = (TOPIC, 0)
    log = logs.create(key, "t", D0)
    logs.create(key, "t", D1, future=True)
    logs.forget(key, future=True)
    assert (logs.future(key), logs.log(key), logs.is_lost(key)) == (None, log, False)


def test_a_swap_that_fails_names_its_replica(logs: Logs, disks: list[FailingDisk]) -> None:
    heard = []
    logs.on_error = lambda log_dir, error, key: heard.append((log_dir.path, key))
    logs.create((TOPIC, 0), "t", D0)
    logs.create((TOPIC, 0), "t", D1, future=True)
    disks[1].fail()
    with pytest.raises(StorageError):
        logs.promote((TOPIC, 0))
    assert heard == [("/simulated/d1", (TOPIC, 0))]
    with pytest.raises(LookupError, match="no future log of partition 5"):
        logs.promote((TOPIC, 5))


def test_a_failed_disk_keeps_no_other_directory_from_its_checkpoints_and_strays(
    logs: Logs, disks: list[FailingDisk]
) -> None:
    for partition, directory_id in enumerate((D0, D1)):
        logs.create((TOPIC, partition), "t", directory_id).append_as_leader(batch("a"), 0, 0)
    logs.create((TOPIC, 0), "t", D1, future=True)
    disks[0].fail()
    logs.checkpoint(flush=True)
    assert read_offsets(disks[1], "recovery-point-offset-checkpoint") == {("t", 1): 1}
    logs.mark_strays(())
    assert (logs.held(), logs.held(future=True)) == ([], [])
    assert [name.rpartition("-")[2] for name in disks[1].names() if name.startswith("t-")] == ["stray", "stray"]


def test_the_checkpoints_of_a_log_do_not_count_for_its_future_one(logs: Logs, disks: list[FailingDisk]) -> None:
    log = logs.create((TOPIC, 0), "t", D0)
    for value in "abc":
        log.append_as_leader(batch(value), 0, 0)
    log.high_watermark = 3
    log.advance_start_offset(2)
    future = logs.create((TOPIC, 0), "t", D1, future=True)
    future.append_as_leader(batch("a"), 0, 0)
    disks[1].replace("log-start-offset-checkpoint", b"0\n1\nt 0 1\n")
    logs.checkpoint(flush=True)
    again = open_logs(disks)
    again.load()
    loaded, copied = again.log((TOPIC, 0)), again.future((TOPIC, 0))
    assert loaded is not None
    assert copied is not None
    assert (loaded.start_offset, copied.start_offset) == (2, 0)


@pytest.mark.parametrize("is_clean", [False, True])
def test_segments_that_were_flushed_or_closed_are_not_checked_again(
    logs: Logs, disks: list[FailingDisk], is_clean: bool
) -> None:
    log = logs.create((TOPIC, 0), "t", D0, config=LogConfig(segment_bytes=200))
    for index in range(8):
        log.append_as_leader(batch(str(index)), 0, 0)
    logs.checkpoint(flush=True)
    if is_clean:
        logs.shut_down()
        disks[0].remove("recovery-point-offset-checkpoint")
    disks[0].replace("t-0/00000000000000000000.log", b"not a batch")
    again = open_logs(disks)
    again.load()
    loaded = again.log((TOPIC, 0))
    assert loaded is not None
    assert loaded.end_offset == 8


def test_a_lost_replica_has_no_future_log_and_is_found_when_it_is_created_elsewhere(logs: Logs) -> None:
    key = (TOPIC, 0)
    logs.create(key, "t", D0)
    logs.take_offline(D0, "gone")
    assert (logs.directory_of(key), logs.directory_of(key, future=True), logs.is_lost(key)) == (D0, None, True)
    logs.create(key, "t", D1)
    assert (logs.directory_of(key), logs.is_lost(key)) == (D1, False)


def test_a_disk_that_fails_to_rename_a_stray_keeps_no_other_from_it(logs: Logs, disks: list[FailingDisk]) -> None:
    for partition, directory_id in enumerate((D0, D1)):
        logs.create((TOPIC, partition), "t", directory_id)
    disks[0].fail()
    logs.mark_strays(())
    assert [name.rpartition("-")[2] for name in disks[1].names()] == ["stray"]

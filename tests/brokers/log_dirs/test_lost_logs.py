"""Logs that are loaded again, lost with their directory or strays on a disk that fails."""

from __future__ import annotations

import pytest
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.log_dirs.produced_batches import LogConfig

from .conftest import batch
from .test_logs import D0, D1, TOPIC, disks, logs, open_logs

__all__ = ["disks", "logs"]


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

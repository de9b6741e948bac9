"""Moves that end early: cancelled, replaced, or with a lost source or target."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.brokers.moves.move import MoveEndedError, MoveRefusedError, Stage
from mockraft.brokers.moves.movers import Move
from mockraft.brokers.moves.requests import start_move
from mockraft.wire import error_codes, record_batch
from mockraft.wire.directory_ids import LOST
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord

from ...waiting import until

BATCH = record_batch.encode([b"more"], base_offset=0, leader_epoch=0, timestamp_ms=1000)


async def moved_to(bench: Any, stage: Stage) -> tuple[Any, Move]:
    """A replica on its way from /d0 to /d1, at a stage."""
    key = bench.create("a", "/d0", 0, "x", "y")
    if stage is Stage.COPYING:
        bench.hold()
    move = bench.begin("a", "/d1")
    if stage is not Stage.COPYING:
        await until(lambda: bench.accepted)
    if stage is Stage.ACCEPTED:
        bench.hold()
        bench.acknowledge()
    assert move.stage is stage
    return key, move


STAGES = [Stage.COPYING, Stage.QUEUED, Stage.ACCEPTED]


def reported_back(bench: Any, key: Any, stage: Stage) -> list[Any]:
    """The assignment back to /d0, if the controller had been told of another directory."""
    return [(key, bench.directory("/d0"))] if stage is not Stage.COPYING else []


@pytest.mark.parametrize("stage", STAGES)
async def test_request_for_the_current_directory_cancels_the_move(bench: Any, stage: Stage) -> None:
    key, move = await moved_to(bench, stage)
    before = len(bench.reported)
    assert start_move(bench.broker.movers, "a", 0, "/d0") is None
    assert (move.stage, move.why) == (Stage.OVER, "its current directory was requested")
    assert bench.names() == {"/d0": ["a-0"], "/d1": [], "/d2": []}
    assert bench.reported[before:] == reported_back(bench, key, stage)
    assert bench.broker.directories.moving == {}


@pytest.mark.parametrize("stage", STAGES)
async def test_request_for_another_directory_replaces_the_move(bench: Any, stage: Stage) -> None:
    key, move = await moved_to(bench, stage)
    instead = bench.begin("a", "/d2")
    assert (move.stage, move.why) == (Stage.OVER, "replaced by a move to /d2")
    assert bench.names() == {"/d0": ["a-0"], "/d1": [], "/d2": ["a-0-future"]}
    bench.throttle(None)
    await until(lambda: bench.reported and bench.reported[-1] == (key, bench.directory("/d2")))
    bench.acknowledge()
    await until(lambda: instead.is_ended)
    assert bench.names() == {"/d0": [], "/d1": [], "/d2": ["a-0"]}


async def test_response_about_a_replaced_move_is_ignored(bench: Any) -> None:
    key, _ = await moved_to(bench, Stage.QUEUED)
    late = bench.accepted
    bench.hold()
    instead = bench.begin("a", "/d2")
    late()
    assert instead.stage is Stage.COPYING
    assert bench.path_of(key) == "/d0"


@pytest.mark.parametrize("stage", STAGES)
async def test_a_target_that_fails_ends_the_move(bench: Any, stage: Stage) -> None:
    key, move = await moved_to(bench, stage)
    before = len(bench.reported)
    bench.disks["/d1"].fail()
    bench.throttle(None)
    bench.log(key).append_as_leader(BATCH, 0, 1000)
    await until(lambda: move.is_ended)
    assert move.stage is Stage.OVER
    assert move.why == "/d1 is offline"
    assert (bench.path_of(key), bench.log(key).end_offset) == ("/d0", 3)
    assert bench.reported[before:] == reported_back(bench, key, stage)
    assert bench.names()["/d1"] == ["a-0-future"]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_source_that_fails_ends_the_move(bench: Any, stage: Stage) -> None:
    key, move = await moved_to(bench, stage)
    before = len(bench.reported)
    bench.disks["/d0"].fail()
    bench.broker.logs.on_error(bench.broker.logs.log_dir(bench.directory("/d0")), OSError(errno.EIO, "broken"), None)
    await until(lambda: move.is_ended)
    assert (move.stage, move.why) == (Stage.OVER, "/d0 is offline")
    # Told of its directory, which is offline: the controller takes this broker out of the ISR.
    assert bench.reported[before:] == reported_back(bench, key, stage)
    assert bench.broker.logs.log(key) is None
    assert bench.path_of(key, future=True) == "/d1"


@pytest.mark.parametrize("stage", STAGES)
async def test_a_replica_lost_by_itself_ends_its_move_and_is_not_assigned_back(bench: Any, stage: Stage) -> None:
    key, move = await moved_to(bench, stage)
    before = len(bench.reported)
    bench.throttle(None)
    bench.broker.directories.lose(key, "a bad sector")
    assert (move.stage, move.why, move.is_ended) == (Stage.OVER, "a bad sector", True)
    assert bench.reported[before:] == [(key, LOST)]
    assert bench.broker.directories.moving == {}


async def test_remains_of_a_lost_replica_do_not_block_the_next_move(bench: Any) -> None:
    key, _ = await moved_to(bench, Stage.QUEUED)
    bench.broker.directories.lose(key, "a bad sector")
    bench.broker.logs.create(key, "a", bench.directory("/d2"))
    bench.broker.directories.placed[key] = bench.directory("/d2")
    bench.broker.directories.lost.clear()
    move = bench.begin("a", "/d1")
    assert bench.names()["/d1"] == ["a-0-future"]
    await bench.agree(move)
    assert (move.stage, bench.path_of(key), bench.names()["/d1"]) == (Stage.DONE, "/d1", ["a-0"])


async def test_a_source_that_cannot_be_read_is_lost(bench: Any) -> None:
    _, move = await moved_to(bench, Stage.COPYING)
    bench.disks["/d0"].fail()
    bench.throttle(None)
    await until(lambda: move.is_ended)
    assert (move.stage, move.why) == (Stage.OVER, "/d0 is offline")
    assert "/d0" not in [each.path for each in bench.broker.logs.live()]


async def test_a_target_that_is_full_midway_ends_the_move(bench: Any) -> None:
    key, move = await moved_to(bench, Stage.COPYING)
    bench.disks["/d1"].fill()
    bench.throttle(None)
    await until(lambda: move.is_ended)
    assert (move.stage, move.why, bench.path_of(key)) == (Stage.OVER, "/d1 is offline", "/d0")


@pytest.mark.parametrize("error", [errno.EROFS, errno.ENOSPC, errno.EACCES])
async def test_a_target_that_takes_no_files_refuses_the_move(bench: Any, error: int) -> None:
    key = bench.create("a", "/d0", 0, "x")
    bench.disks["/d1"].fail(error)
    with pytest.raises(MoveRefusedError) as refused:
        bench.begin("a", "/d1")
    assert refused.value.error_code == error_codes.KAFKA_STORAGE_ERROR
    assert bench.broker.moves == ()
    assert bench.path_of(key) == "/d0"
    assert bench.broker.logs.log_dir(bench.directory("/d1")).offline


async def test_while_a_directory_is_offline_no_move_begins(bench: Any) -> None:
    _, move = await moved_to(bench, Stage.QUEUED)
    bench.broker.directories.offline[b"somewhere"] = "broken"
    with pytest.raises(MoveRefusedError) as refused:
        bench.begin("a", "/d2")
    assert refused.value.error_code == error_codes.KAFKA_STORAGE_ERROR
    assert move.stage is Stage.OVER
    assert bench.names() == {"/d0": ["a-0"], "/d1": [], "/d2": []}


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "reassigned"])
@pytest.mark.parametrize("stage", STAGES)
async def test_deleted_topic_or_reassigned_replica_leaves_no_files(bench: Any, stage: Stage, is_deleted: bool) -> None:
    key, move = await moved_to(bench, stage)
    before = len(bench.reported)
    elsewhere = PartitionChangeRecord(topic_id=key[0], partition_id=0, replicas=[2], isr=[2], leader=2)
    bench.apply(RemoveTopicRecord(topic_id=key[0]) if is_deleted else elsewhere)
    bench.broker.logs.remove(key)
    bench.broker.movers.metadata_advanced()
    assert (move.stage, move.why) == (Stage.OVER, "the replica is on this broker no longer")
    assert bench.names() == {"/d0": [], "/d1": [], "/d2": []}
    assert bench.reported[before:] == []


async def test_a_log_that_cannot_be_copied_stays_whole_where_it_is(bench: Any) -> None:
    key, move = await moved_to(bench, Stage.COPYING)
    bench.disks["/d0"].corrupt("a-0/00000000000000000000.log", 10)
    bench.throttle(None)
    await until(lambda: move.is_ended)
    assert (move.stage, bench.path_of(key)) == (Stage.OVER, "/d0")
    assert bench.names()["/d1"] == []


async def test_waiter_is_notified_of_the_outcome(bench: Any) -> None:
    bench.create("a", "/d0", 0, "x")
    bench.hold()
    waiting = asyncio.create_task(bench.broker.move_replica("a", 0, "/d1"))
    await until(lambda: bench.broker.moves)
    start_move(bench.broker.movers, "a", 0, "/d0")
    with pytest.raises(MoveEndedError, match="a-0 was not moved to /d1: its current directory was requested"):
        await waiting


async def test_a_failed_disk_ends_its_moves_and_no_others(bench: Any) -> None:
    kept = bench.create("b", "/d0", 0, "x")
    _, lost = await moved_to(bench, Stage.COPYING)
    other = bench.begin("b", "/d2")
    bench.broker.movers.directory_offline(bench.directory("/d1"))
    assert (lost.stage, other.stage) == (Stage.OVER, Stage.COPYING)
    bench.throttle(None)
    await bench.agree(other)
    assert bench.path_of(kept) == "/d2"


async def test_one_bad_file_of_the_old_log_does_not_cost_the_new_one(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(io_errors="kip-18")
    bench.broker.logs.on_error = bench.broker.directories.io_error
    key, move = await moved_to(bench, Stage.QUEUED)
    bench.disks["/d0"].fail_file("a-0")
    bench.acknowledge()
    await until(lambda: move.is_ended)
    assert (move.stage, bench.path_of(key), bench.log(key).end_offset) == (Stage.DONE, "/d1", 2)
    assert (bench.broker.directories.lost, bench.broker.directories.offline) == (set(), {})


async def test_a_swap_that_cannot_remove_the_old_log_has_happened_all_the_same(bench: Any) -> None:
    key, move = await moved_to(bench, Stage.QUEUED)
    bench.disks["/d0"].fail()
    bench.acknowledge()
    await until(lambda: move.is_ended)
    assert (move.stage, bench.path_of(key)) == (Stage.DONE, "/d1")

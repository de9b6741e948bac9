"""A broker moves replicas between its directories: success, throttles, order and concurrent changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.brokers.moves.move import MoveEndedError, MoveRefusedError, Stage
from mockraft.brokers.moves.movers import mover_of
from mockraft.brokers.moves.requests import start_move
from mockraft.wire import record_batch
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ...waiting import until
from ..log_dirs.conftest import batch


async def test_a_replica_is_moved_once_the_controller_agrees(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x", "y", "z")
    move = bench.begin("a", "/d1")
    assert bench.names() == {"/d0": ["a-0"], "/d1": ["a-0-future"], "/d2": []}
    await until(lambda: bench.reported)
    assert bench.reported == [(key, bench.directory("/d1"))]
    assert (move.stage, bench.path_of(key), bench.path_of(key, future=True)) == (Stage.QUEUED, "/d0", "/d1")
    bench.acknowledge()
    await until(lambda: move.is_ended)
    assert move.stage is Stage.DONE
    assert bench.names() == {"/d0": [], "/d1": ["a-0"], "/d2": []}
    assert bench.path_of(key) == "/d1"
    assert bench.log(key).end_offset == 3
    assert bench.log(key).read(0, 10_000).count(b"y") == 1
    assert bench.broker.directories.placed[key] == bench.directory("/d1")
    assert bench.broker.directories.moving == {}
    assert bench.reported == [(key, bench.directory("/d1"))]
    assert bench.broker.moves == ()
    assert bench.broker.directories.preferred == {}


async def test_records_appended_while_the_assignment_is_pending_are_copied(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x")
    move = bench.begin("a", "/d1")
    await until(lambda: bench.reported)
    for value in ("y", "z"):
        bench.log(key).append_as_leader(batch(value), 0, 1000)
        await until(lambda: bench.future(key).end_offset == bench.log(key).end_offset)
        assert move.stage is Stage.QUEUED
    bench.log(key).append_as_leader(batch("last"), 0, 1000)
    bench.acknowledge()
    assert (move.stage, bench.path_of(key)) == (Stage.ACCEPTED, "/d0")
    await until(lambda: move.is_ended)
    assert (bench.path_of(key), bench.log(key).end_offset) == ("/d1", 4)
    assert b"last" in bench.log(key).read(3, 10_000)


async def test_high_watermark_and_start_of_the_log_move_with_it(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x", "y", "z")
    bench.log(key).high_watermark = 2
    bench.log(key).advance_start_offset(1)
    bench.begin("a", "/d1")
    await until(lambda: bench.reported)
    bench.acknowledge()
    await until(lambda: bench.path_of(key) == "/d1")
    log = bench.log(key)
    assert (log.start_offset, log.high_watermark, log.end_offset) == (1, 2, 3)


async def test_the_awaited_form_returns_when_the_replica_serves_from_there(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x")
    waiting = asyncio.create_task(bench.broker.move_replica("a", 0, "/d1"))
    await until(lambda: bench.reported)
    assert not waiting.done()
    bench.acknowledge()
    await waiting
    assert bench.path_of(key) == "/d1"
    await bench.broker.move_replica("a", 0, "/d1")
    assert len(bench.reported) == 1


async def test_move_to_the_current_directory_is_ignored(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x")
    assert start_move(bench.broker.movers, "a", 0, "/d0") is None
    assert bench.names()["/d0"] == ["a-0"]
    assert bench.broker.directories.preferred == {}
    assert bench.path_of(key) == "/d0"


async def test_repeated_move_request_is_ignored(bench: Any) -> None:
    bench.create("a", "/d0", 0, "x")
    assert bench.begin("a", "/d1") is bench.begin("a", "/d1")
    assert bench.names()["/d1"] == ["a-0-future"]


async def test_a_leader_change_does_not_disturb_a_move(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x")
    move = bench.begin("a", "/d1")
    await until(lambda: bench.reported)
    bench.apply(PartitionChangeRecord(topic_id=key[0], partition_id=0, leader=2, isr=[1, 2], replicas=[1, 2]))
    bench.broker.movers.metadata_advanced()
    bench.log(key).append_as_follower(
        record_batch.encode([b"from the new leader"], base_offset=1, leader_epoch=7, timestamp_ms=1)
    )
    bench.acknowledge()
    await until(lambda: move.is_ended)
    assert (move.stage, bench.log(key).end_offset, bench.log(key).latest_epoch) == (Stage.DONE, 2, 7)


async def test_a_follower_that_is_cut_back_cuts_its_copy_back(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x", "y", "z")
    move = bench.begin("a", "/d1")
    await until(lambda: bench.reported)
    bench.log(key).truncate_to(1)
    bench.log(key).append_as_follower(record_batch.encode([b"other"], base_offset=1, leader_epoch=3, timestamp_ms=1))
    bench.acknowledge()
    await until(lambda: move.is_ended)
    assert move.stage is Stage.DONE
    assert bench.log(key).leader_epochs == ((0, 0), (3, 1))
    assert b"other" in bench.log(key).read(1, 10_000)


async def test_progress_reports_the_remaining_bytes(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x", "y", "z")
    bench.hold()
    bench.begin("a", "/d1")
    (progress,) = bench.broker.moves
    assert progress[:6] == ("a", 0, "/d0", "/d1", Stage.COPYING, 3)
    assert (progress.bytes_left, progress.eta_ms) == (bench.log(key).size_bytes, None)
    bench.throttle(None)
    await until(lambda: bench.reported)
    (progress,) = bench.broker.moves
    assert progress[4:] == (Stage.QUEUED, 0, 0, 0.0)


async def test_the_throttle_comes_from_the_metadata_the_brokers_own_first(bench: Any) -> None:
    assert bench.broker.movers.quota.bytes_per_second is None
    bench.throttle("5000", "")
    assert bench.broker.movers.quota.bytes_per_second == 5000
    bench.throttle("700")
    assert bench.broker.movers.quota.bytes_per_second == 700
    bench.throttle(None)
    assert bench.broker.movers.quota.bytes_per_second == 5000
    bench.throttle(None, "")
    assert bench.broker.movers.quota.bytes_per_second is None


async def test_throttled_move_waits_and_resumes_with_quota(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, *("x" * 700_000 for _ in range(6)))
    bench.throttle("1")
    bench.begin("a", "/d1")
    await until(lambda: bench.future(key).end_offset)
    copied = bench.future(key).end_offset
    for _ in range(50):
        await asyncio.sleep(0)
    assert bench.future(key).end_offset == copied < 6
    assert bench.reported == []
    bench.throttle("100000000000")
    await until(lambda: bench.reported)
    assert bench.future(key).end_offset == 6


async def test_one_mover_takes_one_replica_after_the_other(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(properties={"num.replica.alter.log.dirs.threads": "1"})
    keys = [bench.create(topic, "/d0", 0, "x") for topic in ("c", "a", "b")]
    for topic in ("c", "b", "a"):
        bench.begin(topic, "/d1")
    for topic in ("a", "b", "c"):
        await until(lambda: bench.accepted)
        assert bench.reported[-1][0][0].endswith(topic.encode())
        bench.acknowledge()
    await until(lambda: not bench.broker.moves)
    assert {bench.path_of(key) for key in keys} == {"/d1"}


async def test_many_moves_do_not_cost_a_look_at_all_of_them_for_each_piece(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counting(topic: str, partition: int, movers: int) -> int:
        asked.append((topic, partition))
        return mover_of(topic, partition, movers)

    monkeypatch.setattr("mockraft.brokers.moves.movers.mover_of", counting)
    bench.broker.directories.assign = lambda _key, _target, _reason, on_accepted: on_accepted()
    for partition in range(30):
        bench.create("a", "/d0", partition, "x")
        bench.begin("a", "/d1", partition)
    await until(lambda: not bench.broker.moves)
    assert len(asked) <= 4 * 30


async def test_several_movers_share_the_work(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(properties={"num.replica.alter.log.dirs.threads": "2"})
    keys = [bench.create("a", "/d0", partition, "x") for partition in range(2)]
    for partition in range(2):
        bench.begin("a", "/d1", partition)
    await until(lambda: len(bench.reported) == 2)
    assert {key for key, _ in bench.reported} == set(keys)


async def test_killed_broker_notifies_waiters(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x")
    waiting = asyncio.create_task(bench.broker.move_replica("a", 0, "/d1"))
    await until(lambda: bench.reported)
    await bench.broker.kill()
    with pytest.raises(MoveEndedError, match="a-0 was not moved to /d1: the broker stopped"):
        await waiting
    assert bench.names()["/d1"] == ["a-0-future"]
    assert bench.broker.directories.placed[key] == bench.directory("/d0")


async def test_refused_move_reports_the_reason(bench: Any) -> None:
    with pytest.raises(MoveRefusedError, match="Log dir /elsewhere is not found in the config"):
        await bench.broker.move_replica("a", 0, "/elsewhere")


async def test_progress_leaves_out_a_replica_without_its_future_log(bench: Any) -> None:
    keys = [bench.create(topic, "/d0", 0, "x") for topic in ("a", "b")]
    bench.hold()
    for topic in ("a", "b"):
        bench.begin(topic, "/d1")
    assert [move.topic for move in bench.broker.moves] == ["a", "b"]
    bench.broker.logs.remove(keys[0], future=True)
    assert [move.topic for move in bench.broker.moves] == ["b"]


async def test_a_move_without_its_future_log_ends(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x")
    bench.hold()
    move = bench.begin("a", "/d1")
    bench.broker.logs.remove(key, future=True)
    bench.throttle(None)
    await until(lambda: move.is_ended)
    assert (move.stage, move.why, bench.path_of(key)) == (Stage.OVER, "its log is gone", "/d0")


async def test_stages_and_copied_bytes_are_reported(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    key = bench.create("a", "/d0", 0, *("x" * 700_000 for _ in range(2)))
    move = bench.begin("a", "/d1")
    await until(lambda: bench.reported)
    assert bench.broker.directories.moving == {key: bench.directory("/d1")}
    assert move.copied_bytes == bench.log(key).size_bytes
    assert "broker 1: a-0: QUEUED" in caplog.messages
    await bench.agree(move)


async def test_a_slow_disk_delays_each_piece(bench: Any) -> None:
    key = bench.create("a", "/d0", 0, "x")
    bench.disks["/d1"].slow(1)
    await bench.agree(bench.begin("a", "/d1"))
    assert bench.path_of(key) == "/d1"


async def test_a_throttle_of_twenty_digits_is_none(bench: Any) -> None:
    bench.throttle("1" * 19)
    assert bench.broker.movers.quota.bytes_per_second == int("1" * 19)
    bench.throttle("1" * 20)
    assert bench.broker.movers.quota.bytes_per_second is None

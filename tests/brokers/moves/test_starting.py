"""Requests to move a replica, a start with unfinished moves of a killed broker, and the rate of copying."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.log_loading import live_name
from mockraft.brokers.metadata.observer import FatalError
from mockraft.brokers.moves.move import MoveRefusedError, Stage
from mockraft.brokers.moves.requests import start_move
from mockraft.brokers.moves.starting import settle
from mockraft.brokers.replication_quota import ReplicationQuota
from mockraft.wire import error_codes, record_batch
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord

from ...waiting import until

MakeBench = Callable[..., Any]
BATCH = record_batch.encode([b"more"], base_offset=0, leader_epoch=0, timestamp_ms=1000)


async def left_by_a_move(bench: Any) -> ReplicaKey:
    """A replica in /d0 and its copy in /d1, which has caught up."""
    key: ReplicaKey = bench.create("a", "/d0", 0, "x", "y")
    start_move(bench.broker.movers, "a", 0, "/d1")
    await until(lambda: bench.reported)
    await bench.broker.kill()
    bench.broker.logs.close()
    return key


def started(make_bench: MakeBench, bench: Any, assigned: str, *, offline: tuple[str, ...] = ()) -> Any:
    """Another broker on the same disks, which the metadata has the replica a-0 in this directory of."""
    again = make_bench(files=bench.files)
    for path in offline:
        again.broker.logs.take_offline(again.directory(path), "broken")
        again.broker.directories.offline[again.directory(path)] = "broken"
    found = again.broker.logs.load()
    again.assigned("a", assigned)
    settle(again.broker.movers, found.duplicates)
    return again


async def test_both_logs_go_on_being_one_move(bench: Any, make_bench: MakeBench) -> None:
    key = await left_by_a_move(bench)
    again = started(make_bench, bench, "/d0")
    assert again.broker.moves[0][:5] == ("a", 0, "/d0", "/d1", Stage.COPYING)
    await until(lambda: again.reported)
    assert again.reported == [(key, again.directory("/d1"))]
    again.acknowledge()
    await until(lambda: not again.broker.moves)
    assert again.names() == {"/d0": [], "/d1": ["a-0"], "/d2": []}


async def test_agreed_move_is_swapped_in_with_later_records(bench: Any, make_bench: MakeBench) -> None:
    key = await left_by_a_move(bench)
    again = make_bench(files=bench.files)
    found = again.broker.logs.load()
    again.log(key).append_as_leader(BATCH, 0, 1000)
    again.assigned("a", "/d1")
    settle(again.broker.movers, found.duplicates)
    assert again.broker.moves[0][:5] == ("a", 0, "/d0", "/d1", Stage.ACCEPTED)
    assert again.broker.directories.moving == {key: again.directory("/d1")}
    await until(lambda: not again.broker.moves)
    assert again.names() == {"/d0": [], "/d1": ["a-0"], "/d2": []}
    assert (again.log(key).end_offset, again.reported) == (3, [])
    assert again.broker.directories.moving == {}


@pytest.mark.parametrize("assigned", ["/d0", "/d1", "elsewhere"])
async def test_a_future_log_alone_becomes_the_log(bench: Any, make_bench: MakeBench, assigned: str) -> None:
    key = await left_by_a_move(bench)
    bench.files["/d0"].remove("a-0")
    again = started(make_bench, bench, assigned)
    assert again.names() == {"/d0": [], "/d1": ["a-0"], "/d2": []}
    assert again.log(key).end_offset == 2


@pytest.mark.parametrize("assigned", ["/d0", "/d2", "elsewhere"])
async def test_future_log_beside_an_offline_directory_is_kept(bench: Any, make_bench: MakeBench, assigned: str) -> None:
    key = await left_by_a_move(bench)
    bench.files["/d0"].remove("a-0")
    again = started(make_bench, bench, assigned, offline=("/d0",))
    assert again.names()["/d1"] == ["a-0-future"]
    assert again.broker.logs.log(key) is None
    assert not again.broker.directories.is_here(key)
    assert again.broker.moves == ()


async def test_a_lost_source_does_not_keep_an_agreed_move_back(bench: Any, make_bench: MakeBench) -> None:
    key = await left_by_a_move(bench)
    again = started(make_bench, bench, "/d1", offline=("/d0",))
    assert again.path_of(key) == "/d1"
    assert again.log(key).end_offset == 2


@pytest.mark.parametrize("assigned", ["/d0", "/d1"])
async def test_of_two_logs_the_one_the_metadata_names_is_kept(bench: Any, make_bench: MakeBench, assigned: str) -> None:
    key = await left_by_a_move(bench)
    (future,) = bench.files["/d1"].names()
    bench.files["/d1"].rename(future, live_name("a", 0))
    again = started(make_bench, bench, assigned)
    assert again.names() == {"/d0": [], "/d1": [], "/d2": [], assigned: ["a-0"]}
    assert (again.path_of(key), again.log(key).end_offset) == (assigned, 2)


async def test_of_two_logs_neither_of_which_the_metadata_names_none_is_touched(
    bench: Any, make_bench: MakeBench
) -> None:
    await left_by_a_move(bench)
    (future,) = bench.files["/d1"].names()
    bench.files["/d1"].rename(future, live_name("a", 0))
    with pytest.raises(FatalError, match=r"Duplicate log directories for a-0 are found: /d0/a-0 and /d1/a-0"):
        started(make_bench, bench, "/d2")
    assert bench.names() == {"/d0": ["a-0"], "/d1": ["a-0"], "/d2": []}


async def test_future_log_of_a_deleted_topic_is_renamed_to_stray(bench: Any, make_bench: MakeBench) -> None:
    await left_by_a_move(bench)
    again = make_bench(files=bench.files)
    found = again.broker.logs.load()
    settle(again.broker.movers, found.duplicates)
    assert again.names()["/d1"] == ["a-0-stray"]
    assert again.broker.moves == ()


LONG = "t" * 249


def refusal(bench: Any, topic: str, path: str, partition: int = 0) -> tuple[str, str]:
    """The name of the error code and the message."""
    with pytest.raises(MoveRefusedError) as refused:
        start_move(bench.broker.movers, topic, partition, path)
    return error_codes.name(refused.value.error_code), str(refused.value)


@pytest.fixture
def troubled(make_bench: Callable[..., Any]) -> Any:
    """Topic here lies in /d0, topic offline in /d1 which is offline, /d2 is cordoned, topic elsewhere on broker 2."""
    bench = make_bench(offline_log_dirs={"/dead": "unreadable"})
    bench.create("here", "/d0")
    bench.create("offline", "/d1")
    bench.broker.directories.offline[bench.directory("/d1")] = "broken"
    bench.broker.logs.take_offline(bench.directory("/d1"), "broken")
    bench.broker.directories.cordoned = frozenset({bench.directory("/d2"), bench.directory("/d1")})
    bench.apply(
        TopicRecord(name="elsewhere", topic_id=b"e" * 16),
        PartitionRecord(topic_id=b"e" * 16, partition_id=0, replicas=[2], isr=[2], leader=2, directories=[b"2" * 16]),
    )
    return bench


@pytest.mark.parametrize(
    ("topic", "path", "code", "message"),
    [
        (LONG, "/nowhere", "INVALID_TOPIC_EXCEPTION", "The topic name is too long."),
        ("here", "/nowhere", "LOG_DIR_NOT_FOUND", "Log dir /nowhere is not found in the config."),
        ("here", "d0", "LOG_DIR_NOT_FOUND", "Log dir d0 is not found in the config."),
        ("here", "/dead", "KAFKA_STORAGE_ERROR", "Log directory /dead is offline"),
        ("here", "/d1", "KAFKA_STORAGE_ERROR", "Log directory /d1 is offline"),
        ("here", "/d2", "INVALID_REPLICA_ASSIGNMENT", "Log directory /d2 is cordoned"),
        ("offline", "/d0", "KAFKA_STORAGE_ERROR", "Partition offline-0 is offline"),
        ("offline", "/d2", "INVALID_REPLICA_ASSIGNMENT", "Log directory /d2 is cordoned"),
        ("elsewhere", "/d0", "REPLICA_NOT_AVAILABLE", "Error while fetching partition state for elsewhere-0"),
        ("unknown", "/d0", "UNKNOWN_TOPIC_OR_PARTITION", "Error while fetching partition state for unknown-0"),
    ],
)
async def test_first_invalid_entry_is_reported(troubled: Any, topic: str, path: str, code: str, message: str) -> None:
    assert refusal(troubled, topic, path) == (code, message)
    assert troubled.broker.moves == ()


async def test_a_partition_that_the_topic_has_not_is_unknown(troubled: Any) -> None:
    assert refusal(troubled, "here", "/d0", 7)[0] == "UNKNOWN_TOPIC_OR_PARTITION"


async def test_the_directory_of_a_replica_to_come_is_remembered(troubled: Any) -> None:
    refusal(troubled, "elsewhere", "/d0")
    refusal(troubled, "unknown", "/d0", 3)
    refusal(troubled, "elsewhere", "/d2")
    at_d0 = troubled.directory("/d0")
    assert troubled.broker.directories.preferred == {("elsewhere", 0): at_d0, ("unknown", 3): at_d0}


@pytest.mark.parametrize("length", [208, 209, 214, 215])
async def test_a_name_is_too_long_when_its_future_folder_would_be(bench: Any, length: int) -> None:
    topic = "t" * length
    bench.create(topic, "/d0")
    fits = len(f"{topic}-0.") + 32 + len("-future") <= 255
    if fits:
        start_move(bench.broker.movers, topic, 0, "/d1")
        assert max(map(len, bench.files["/d1"].names())) <= 255
    else:
        assert refusal(bench, topic, "/d1")[0] == "INVALID_TOPIC_EXCEPTION"
    assert fits == (length <= 213)


async def test_a_target_that_was_cordoned_meanwhile_is_not_left(bench: Any) -> None:
    bench.create("a", "/d0", 0, "x")
    move = bench.begin("a", "/d1")
    bench.broker.directories.cordoned = frozenset({bench.directory("/d1")})
    assert refusal(bench, "a", "/d1") == ("INVALID_REPLICA_ASSIGNMENT", "Log directory /d1 is cordoned")
    await bench.agree(move)
    assert bench.names()["/d1"] == ["a-0"]


async def test_a_disk_that_fails_while_moves_are_taken_up_is_logged(
    bench: Any, make_bench: MakeBench, caplog: pytest.LogCaptureFixture
) -> None:
    await left_by_a_move(bench)
    again = make_bench(files=bench.files)
    found = again.broker.logs.load()
    again.disks["/d1"].fail()
    settle(again.broker.movers, found.duplicates)
    assert "broker 1: /d1" in caplog.text
    assert "Input/output error" in caplog.text


def test_copied_bytes_per_minute_equal_the_quota() -> None:
    quota = ReplicationQuota(10_000)
    now_ms, copied_bytes = 0.0, 0
    while now_ms < 60_000:
        wait_ms = quota.wait_ms(now_ms)
        if wait_ms:
            now_ms += wait_ms
            continue
        quota.record(700, now_ms)
        copied_bytes += 700
        now_ms += 1
    assert 590_000 < copied_bytes < 680_000

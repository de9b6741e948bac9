"""Answers to requests to move a replica: Kafka's errors in Kafka's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.brokers.moves.errors import MoveRefusedError
from mockraft.brokers.moves.requests import start_move
from mockraft.wire import error_codes
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord

from ...waiting import until

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


async def test_moved_replica_keeps_no_pending_request(bench: Any) -> None:
    bench.create("a", "/d0")
    start_move(bench.broker.movers, "a", 0, "/d1")
    assert bench.broker.directories.preferred == {}


async def test_a_target_that_was_cordoned_meanwhile_is_not_left(bench: Any) -> None:
    bench.create("a", "/d0", 0, "x")
    move = start_move(bench.broker.movers, "a", 0, "/d1")
    assert move is not None
    bench.broker.directories.cordoned = frozenset({bench.directory("/d1")})
    assert refusal(bench, "a", "/d1") == ("INVALID_REPLICA_ASSIGNMENT", "Log directory /d1 is cordoned")
    await until(lambda: bench.accepted)
    bench.acknowledge()
    await until(lambda: move.is_ended)
    assert bench.names()["/d1"] == ["a-0"]

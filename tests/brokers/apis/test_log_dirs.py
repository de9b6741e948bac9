"""AlterReplicaLogDirs and DescribeLogDirs, field by field; beside a real broker in tests/real_kafka."""

from __future__ import annotations

import errno
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.client_view import view_of
from mockraft.brokers.config import draw_config
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.wire import error_codes, record_batch
from mockraft.wire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mockraft.wire.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

A, B, C = "/simulated/a", "/simulated/b", "/simulated/c"
TOTAL_BYTES = 256 * 2**20
BATCH = record_batch.encode([b"x"], base_offset=0, leader_epoch=0, timestamp_ms=1000)


@pytest.fixture
async def broker(cluster: Any) -> AsyncIterator[SimulatedBroker]:
    """A broker that `cluster.ask` asks, with /simulated/a and b, c being offline since the start."""
    config = draw_config(
        1,
        "a-cluster",
        (("127.0.0.1", 9),),
        random.Random(1),
        log_dir_paths=(A, B),
        serve_clients=True,
        offline_log_dirs={C: "unreadable"},
    )
    broker = SimulatedBroker(config)
    assert broker.image is not None
    node = broker.node
    assert node.replicas is not None
    assert node.forwarding is not None
    assert node.coordinators is not None
    view = view_of(node, node.replicas, node.movers, node.forwarding, node.coordinators)
    cluster.simulated, cluster.broker, cluster.image = broker, view, broker.image
    broker.image.apply(RecordAt(FeatureLevelRecord(name="metadata.version", feature_level=30), 0))
    yield broker
    await broker.kill()


def create(cluster: Any, topic: str, path: str, *, partition: int = 0, batches: int = 0) -> Any:
    """The log of a partition that the cluster knows, with that many batches."""
    broker = cluster.simulated
    topic_id = cluster.create(topic, *({"replicas": [1]} for _ in range(partition + 1)))
    broker.view.topics[topic_id] = topic
    directory_id = broker.directories.find(path).directory_id
    broker.directories.placed[topic_id, partition] = directory_id
    log = broker.logs.create((topic_id, partition), topic, directory_id)
    for _ in range(batches):
        log.append_as_leader(BATCH, 0, 1000)
    return log


def alter(**paths: dict[str, list[int]]) -> AlterReplicaLogDirsRequest:
    """Topics and partitions by the name of the directory below /simulated."""
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=f"/simulated/{name}",
                topics=[AlterReplicaLogDirTopic(name=t, partitions=p) for t, p in topics.items()],
            )
            for name, topics in paths.items()
        ]
    )


def answered(response: Any) -> dict[tuple[str, int], str]:
    return {
        (result.topic_name, partition.partition_index): error_codes.name(partition.error_code)
        for result in response.results
        for partition in result.partitions
    }


def described(response: Any) -> dict[str, Any]:
    """By path: error, then (topic, partition, size, lag, is future) of each replica."""
    return {
        result.log_dir: [
            (topic.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
            for topic in result.topics
            for p in topic.partitions
        ]
        or result.error_code
        for result in response.results
    }


@pytest.mark.parametrize("version", [1, 2])
async def test_each_partition_has_its_answer(cluster: Any, broker: SimulatedBroker, version: int) -> None:
    create(cluster, "t", A, partition=1)
    response = cluster.ask(alter(a={"t": [1, 9]}, nowhere={"u": [0]}, c={"v": [0]}), version)
    assert answered(response) == {
        ("t", 1): "NONE",
        ("t", 9): "UNKNOWN_TOPIC_OR_PARTITION",
        ("u", 0): "LOG_DIR_NOT_FOUND",
        ("v", 0): "KAFKA_STORAGE_ERROR",
    }
    assert response.throttle_time_ms == 0
    assert broker.moves == ()


async def test_a_partition_named_twice_goes_where_it_was_named_last(cluster: Any, broker: SimulatedBroker) -> None:
    create(cluster, "t", A)
    response = cluster.ask(alter(nowhere={"t": [0]}, a={"t": [0]}))
    assert answered(response) == {("t", 0): "NONE"}
    response = cluster.ask(alter(a={"t": [0]}, nowhere={"t": [0]}))
    assert answered(response) == {("t", 0): "LOG_DIR_NOT_FOUND"}
    assert broker.moves == ()


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
async def test_every_directory_is_described(cluster: Any, broker: SimulatedBroker, version: int) -> None:
    log = create(cluster, "t", A, batches=2)
    broker.directories.cordoned = frozenset({broker.directories.find(B).directory_id})
    response = cluster.ask(DescribeLogDirsRequest(topics=None), version)
    assert described(response) == {A: [("t", 0, log.size_bytes, 0, False)], B: 0, C: 56}
    assert response.error_code == 0
    usable = [TOTAL_BYTES - used for used in (log.size_bytes, 0)]
    sizes = [(result.total_bytes, result.usable_bytes > usable[0] - 1000) for result in response.results]
    assert sizes == ([(TOTAL_BYTES, True)] * 2 + [(-1, False)] if version >= 4 else [(-1, False)] * 3)
    assert [result.is_cordoned for result in response.results] == [False, version >= 5, False]


async def test_below_metadata_version_30_nothing_is_cordoned(cluster: Any, broker: SimulatedBroker) -> None:
    broker.directories.cordoned = frozenset({broker.directories.find(B).directory_id})
    cluster.apply(FeatureLevelRecord(name="metadata.version", feature_level=29))
    response = cluster.ask(DescribeLogDirsRequest(topics=None))
    assert [result.is_cordoned for result in response.results] == [False, False, False]


async def test_topics_and_partitions_narrow_it_down(cluster: Any, broker: SimulatedBroker) -> None:
    for partition in range(2):
        create(cluster, "t", A, partition=partition)
    create(cluster, "u", B)
    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="t", partitions=[1, 7])])
    assert described(cluster.ask(asked)) == {A: [("t", 1, 0, 0, False)], B: 0, C: 56}
    assert described(cluster.ask(DescribeLogDirsRequest(topics=[]))) == {A: 0, B: 0, C: 56}
    assert len(broker.logs.held()) == 3


async def test_a_log_behind_its_high_watermark_lags_behind(cluster: Any, broker: SimulatedBroker) -> None:
    log = create(cluster, "t", A, batches=3)
    log.high_watermark = 1
    (result,) = described(cluster.ask(DescribeLogDirsRequest(topics=None)))[A]
    assert result[3] == 0
    broker.logs.create(broker.logs.held()[0].key, "t", broker.directories.find(B).directory_id, future=True)
    (result,) = described(cluster.ask(DescribeLogDirsRequest(topics=None)))[B]
    assert result == ("t", 0, 0, 3, True)


async def test_a_future_log_without_a_current_one_has_no_lag(cluster: Any, broker: SimulatedBroker) -> None:
    create(cluster, "t", A)
    key = broker.logs.held()[0].key
    broker.logs.create(key, "t", broker.directories.find(B).directory_id, future=True)
    broker.logs.take_offline(broker.directories.find(A).directory_id, "broken")
    answer = described(cluster.ask(DescribeLogDirsRequest(topics=None)))
    assert answer == {A: 56, B: [("t", 0, 0, -1, True)], C: 56}


async def test_a_disk_that_does_not_tell_its_size_is_an_unknown_error(
    cluster: Any, broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_disk: MemoryDisk) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(MemoryDisk, "space", refuse)
    assert described(cluster.ask(DescribeLogDirsRequest(topics=None))) == {A: -1, B: -1, C: 56}
    assert broker.directories.offline == {}

"""A replica and its log: the producer state of batches already in the log."""

from __future__ import annotations

import struct

from crc32c import crc32c
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.replica_log import LogConfig, ReplicaLog
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.partitions.partition import Assignment, Partition
from mockraft.brokers.partitions.settings import TopicSettings
from mockraft.wire import record_batch


def batch(producer_id: int, base_offset: int = 0) -> bytes:
    """One record of an idempotent producer."""
    data = bytearray(record_batch.encode([b"a"], base_offset=base_offset, leader_epoch=0, timestamp_ms=1_000))
    struct.pack_into(">qhi", data, 43, producer_id, 0, 0)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def test_leader_has_the_producer_state_of_earlier_epochs() -> None:
    log = ReplicaLog(MemoryDisk("/d0"), "orders-0")
    log.append_as_leader(batch(7), 0, 1_000)
    hosted = HostedPartition(
        (bytes(16), 0),
        "orders",
        Partition(1, lambda _broker_id: None),
        lambda: TopicSettings(1, LogConfig()),
        lambda _key: log,
        lambda _hosted, _change: None,
        lambda: None,
    )
    hosted.append_fetched(batch(8, base_offset=1))
    hosted.lead(Assignment(leader=1, leader_epoch=1, isr=(1,), replicas=(1,), partition_epoch=1), 0)
    again = [hosted.append(batch(producer_id), 1, 1_000).base_offset for producer_id in (7, 8)]
    assert again == [0, 1]
    assert log.end_offset == 2

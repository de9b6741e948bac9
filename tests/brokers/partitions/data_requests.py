"""Data requests for partition 0 of the topic `orders`, and their answers."""

from __future__ import annotations

import struct
from typing import Any

from crc32c import crc32c
from mockraft.brokers.log_dirs.transaction_markers import with_producer as with_attributes
from mockraft.wire import record_batch
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from mockraft.wire.record_batch import TRANSACTIONAL

BATCH = record_batch.encode([b"a", b"b"], base_offset=0, leader_epoch=-1, timestamp_ms=1_000)

OF_REQUEST = {
    "isolation_level",
    "max_wait_ms",
    "min_bytes",
    "max_bytes",
    "session_id",
    "session_epoch",
    "replica_state",
}


def produced(topic_id: bytes, records: bytes = BATCH, *, acks: int = -1, partition: int = 0) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    topic = TopicProduceData(name="orders", topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=3_000, topic_data=[topic])


def fetch(topic_id: bytes, offset: int = 0, **fields: Any) -> FetchRequest:
    whole: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    for name in OF_REQUEST & fields.keys():
        whole[name] = fields.pop(name)
    asked = FetchPartition(**{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **fields})
    return FetchRequest(**whole, topics=[FetchTopic(topic="orders", topic_id=topic_id, partitions=[asked])])


def with_producer(producer_id: int, epoch: int, sequence: int) -> bytes:
    """BATCH of an idempotent producer."""
    batch = bytearray(BATCH)
    struct.pack_into(">qhi", batch, 43, producer_id, epoch, sequence)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


def transactional(producer_id: int, sequence: int = 0) -> bytes:
    """BATCH in a transaction."""
    return with_attributes(with_producer(producer_id, 0, sequence), producer_id, 0, TRANSACTIONAL)


def answered(response: Any) -> Any:
    """The one partition of an answer."""
    topic = (response.responses if hasattr(response, "responses") else response.topics)[0]
    return (topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions)[0]

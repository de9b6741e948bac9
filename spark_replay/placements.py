"""Where a captured controller put replicas, so that a replay does not depend on what another one draws.

A controller places the replicas of a new topic beginning at a random broker. What came of that is in the metadata log
that the capture's Fetches brought; a replayed CreateTopics asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mockraft.spark_replay.endpoints import FETCH
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.messages.create_topics_request import CreatableReplicaAssignment
from mockraft.wire.records.partition_record import PartitionRecord

_PARTITION_RECORD = bytes((metadata_log_frame.FRAME_VERSION, PartitionRecord.api_key))


class Placements:
    """Replicas by topic id and partition, out of captured responses of Fetch."""

    def __init__(self, responses: Iterable[tuple[int, Any]]) -> None:
        """`responses` are (API key, response); those of other APIs are passed over."""
        self._replicas: dict[bytes, dict[int, list[int]]] = {}
        for api_key, response in responses:
            if api_key == FETCH:
                for partition in (partition for topic in response.responses for partition in topic.partitions):
                    self._read(bytes(partition.records or b""))

    def put_into(self, request: Any, response: Any) -> None:
        """Give the topics of a CreateTopics request, in place, the replicas they got as `response` says it."""
        created = {topic.name: topic.topic_id for topic in response.topics if topic.error_code == 0}
        for topic in request.topics:
            replicas = self._replicas.get(created.get(topic.name, b""))
            if replicas and not topic.assignments:
                topic.assignments = [
                    CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                    for index, brokers in sorted(replicas.items())
                ]
                topic.num_partitions = topic.replication_factor = -1

    def _read(self, records: bytes) -> None:
        if _PARTITION_RECORD not in records:
            return
        try:
            for batch in record_batch.read_batches(records, allow_partial_tail=True):
                for _, value in batch.records:
                    if value is not None and not batch.is_control and value.startswith(_PARTITION_RECORD):
                        record = metadata_log_frame.decode(value).record
                        # The first one is the topic's creation; a partition that was added later comes later.
                        partitions = self._replicas.setdefault(record.topic_id, {})
                        partitions.setdefault(record.partition_id, list(record.replicas))
        except WireError:
            return

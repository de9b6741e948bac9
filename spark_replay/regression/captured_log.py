"""What the metadata log in a capture says: topics by id and name, and where their replicas were put.

Both are in the records that the capture's Fetches brought. A topic has another id in a replay, told by the live log
where answers do not tell it (CreateTopics below version 7). A controller places replicas beginning at a random broker;
a replayed CreateTopics asks for what came of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockraft.spark_replay.regression.classes import TOPIC_ID
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.wire import metadata_log_frame, record_batch, uuids
from mockraft.wire.errors import WireError
from mockraft.wire.messages.create_topics_request import CreatableReplicaAssignment
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord

_TOPIC, _PARTITION = (
    bytes((metadata_log_frame.FRAME_VERSION, record.api_key)) for record in (TopicRecord, PartitionRecord)
)


class CapturedLog:
    """The topics of a capture, as the answers to its Fetches tell of them."""

    def __init__(self) -> None:
        # Ids by name, in the order of creation: a name may be used again. Captured ones, and live ones so far.
        self._ids: dict[str, list[bytes]] = {}
        self._live_ids: dict[str, list[bytes]] = {}
        self._replicas: dict[bytes, dict[int, list[int]]] = {}

    @property
    def topic_ids(self) -> set[str]:
        """The ids of all topics in the captured log, as text."""
        return {uuids.text_of(topic_id) for ids in self._ids.values() for topic_id in ids}

    def read(self, response: Any) -> None:
        """Take a captured answer to Fetch."""
        for record in _records(response):
            if record.api_key == TopicRecord.api_key:
                _add(self._ids.setdefault(record.name, []), record.topic_id)
            else:
                # The first one is the creation; a broker that reads later reads it again.
                self._replicas.setdefault(record.topic_id, {}).setdefault(record.partition_id, record.replicas)

    def learn_topics(self, response: Any, renaming: Renaming) -> None:
        """Pair the topics that a live answer to Fetch tells of."""
        for record in _records(response):
            if record.api_key == TopicRecord.api_key:
                _add(self._live_ids.setdefault(record.name, []), record.topic_id)
                for pair in zip(self._ids.get(record.name, ()), self._live_ids[record.name], strict=False):
                    renaming.learn(TOPIC_ID, *map(uuids.text_of, pair))

    def put_replicas(self, request: Any, response: Any) -> None:
        """Give the topics of a CreateTopics request, in place, the replicas they got as `response` says it."""
        for answer in response.topics:
            ids = [answer.topic_id] if any(answer.topic_id) else self._ids.get(answer.name, [])
            replicas = self._replicas.get(ids[0]) if ids and answer.error_code == 0 else None
            for topic in request.topics:
                if replicas and topic.name == answer.name and not topic.assignments:
                    topic.assignments = [
                        CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                        for index, brokers in sorted(replicas.items())
                    ]
                    topic.num_partitions = topic.replication_factor = -1


def _records(response: Any) -> Iterator[Any]:
    """The TopicRecords and PartitionRecords of a Fetch's answer."""
    for partition in (partition for topic in response.responses for partition in topic.partitions):
        records = bytes(partition.records or b"")
        if _TOPIC not in records and _PARTITION not in records:
            continue
        try:
            for batch in record_batch.read_batches(records, allow_partial_tail=True):
                for _, value in batch.records:
                    if value is not None and not batch.is_control and value.startswith((_TOPIC, _PARTITION)):
                        yield metadata_log_frame.decode(value).record
        except WireError:
            continue


def _add(ids: list[bytes], topic_id: bytes) -> None:
    if topic_id not in ids:
        ids.append(topic_id)

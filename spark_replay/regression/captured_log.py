"""The metadata log in a capture: topic ids and names, and replica placements.

Both come from the records in the capture's Fetch responses. In a replay a topic has another id, found in the live log
if responses do not contain it (CreateTopics below version 7). A controller places replicas starting at a random broker,
so a replayed CreateTopics requests the captured placement explicitly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mockraft.spark_replay.regression.classes import TOPIC_ID
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.wire import metadata_log_frame, record_batch, uuids
from mockraft.wire.errors import WireError
from mockraft.wire.messages.create_topics_request import CreatableReplicaAssignment
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord

if TYPE_CHECKING:
    from mockraft.wire.messages import CreateTopicsRequest, CreateTopicsResponse, FetchResponse

_TOPIC, _PARTITION = (
    bytes((metadata_log_frame.FRAME_VERSION, record.api_key)) for record in (TopicRecord, PartitionRecord)
)


class CapturedLog:
    """The topics of a capture, from its Fetch responses."""

    def __init__(self) -> None:
        # Captured ids and live ids so far by name, in the order of creation, since a name may be reused.
        self._ids: dict[str, list[bytes]] = {}
        self._live_ids: dict[str, list[bytes]] = {}
        self._replicas: dict[bytes, dict[int, list[int]]] = {}

    @property
    def topic_ids(self) -> set[str]:
        """Return the ids of all topics in the captured log, as text."""
        return {uuids.text_of(topic_id) for ids in self._ids.values() for topic_id in ids}

    def read(self, response: FetchResponse) -> None:
        """Add a captured Fetch response."""
        for record in _records(response):
            if isinstance(record, TopicRecord):
                _add(self._ids.setdefault(record.name, []), record.topic_id)
            else:
                # The first record is the creation; brokers that fetch later get it again.
                self._replicas.setdefault(record.topic_id, {}).setdefault(record.partition_id, record.replicas)

    def learn_topics(self, response: FetchResponse, renaming: Renaming) -> None:
        """Pair the topic ids found in a live Fetch response."""
        for record in _records(response):
            if isinstance(record, TopicRecord):
                _add(self._live_ids.setdefault(record.name, []), record.topic_id)
                for pair in zip(self._ids.get(record.name, ()), self._live_ids[record.name], strict=False):
                    renaming.learn(TOPIC_ID, *map(uuids.text_of, pair))

    def put_replicas(self, request: CreateTopicsRequest, response: CreateTopicsResponse) -> None:
        """Set the replica assignments of a CreateTopics request, in place, to those in `response`."""
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


def _records(response: FetchResponse) -> Iterator[TopicRecord | PartitionRecord]:
    """Yield the TopicRecords and PartitionRecords of a Fetch response."""
    for partition in (partition for topic in response.responses for partition in topic.partitions):
        records = bytes(partition.records or b"")
        if _TOPIC not in records and _PARTITION not in records:
            continue
        try:
            for batch in record_batch.read_batches(records, allow_partial_tail=True):
                for _, value in batch.records:
                    if value is not None and not batch.is_control and value.startswith((_TOPIC, _PARTITION)):
                        record = metadata_log_frame.decode(value).record
                        assert isinstance(record, TopicRecord | PartitionRecord)
                        yield record
        except WireError:
            continue


def _add(ids: list[bytes], topic_id: bytes) -> None:
    if topic_id not in ids:
        ids.append(topic_id)

"""The metadata log in a capture: topic ids and names, and replica placements.

Both come from the records in the capture's Fetch responses. In a replay a topic has another id, found in the live log
if responses do not contain it (CreateTopics below version 7). A controller places replicas starting at a random broker,
so a replayed CreateTopics requests the captured placement explicitly.

Positions of the log's readers, captured and live, translate offsets in replayed requests. A reader is a replica id. Its
live Fetch continues where its last live response ended, whatever the captured offset was. The offset of a heartbeat is
the live end of what the broker had read when the captured offset was sent, and stays on its side of the broker epoch:
that comparison decides whether the broker has caught up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from mockraft.spark_replay.regression.classes import BROKER_EPOCH, TOPIC_ID
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.wire import metadata_log_frame, record_batch, uuids
from mockraft.wire.errors import WireError
from mockraft.wire.messages import (
    BrokerHeartbeatRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    FetchRequest,
    FetchResponse,
)
from mockraft.wire.messages.create_topics_request import CreatableReplicaAssignment
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.topic_record import TopicRecord

_TOPIC, _PARTITION = (
    bytes((metadata_log_frame.FRAME_VERSION, record.api_key)) for record in (TopicRecord, PartitionRecord)
)


class CapturedLog:
    """The topics of a capture, from its Fetch responses."""

    def __init__(self) -> None:
        # Captured ids and live ids so far by name, in the order of creation, since a name may be reused.
        self._ids: dict[str, dict[bytes, None]] = {}
        self._live_ids: dict[str, dict[bytes, None]] = {}
        self._replicas: dict[bytes, dict[int, list[int]]] = {}

    @property
    def topic_ids(self) -> set[str]:
        """Return the ids of all topics in the captured log, as text."""
        return {uuids.text_of(topic_id) for ids in self._ids.values() for topic_id in ids}

    def read(self, response: FetchResponse) -> None:
        """Add a captured Fetch response."""
        for record in _records(response):
            if isinstance(record, TopicRecord):
                self._ids.setdefault(record.name, {})[record.topic_id] = None
            else:
                # The first record is the creation; brokers that fetch later get it again.
                self._replicas.setdefault(record.topic_id, {}).setdefault(record.partition_id, record.replicas)

    def learn_topics(self, response: FetchResponse, renaming: Renaming) -> None:
        """Pair the topic ids found in a live Fetch response."""
        names = set[str]()
        for record in _records(response):
            if isinstance(record, TopicRecord):
                self._live_ids.setdefault(record.name, {})[record.topic_id] = None
                names.add(record.name)
        for name in names:
            for pair in zip(self._ids.get(name, ()), self._live_ids[name], strict=False):
                renaming.learn(TOPIC_ID, *map(uuids.text_of, pair))

    def put_replicas(self, request: CreateTopicsRequest, response: CreateTopicsResponse) -> None:
        """Set the replica assignments of a CreateTopics request, in place, to those in `response`."""
        asked = defaultdict(list)
        for topic in request.topics:
            asked[topic.name].append(topic)
        for answer in response.topics:
            first = answer.topic_id if any(answer.topic_id) else next(iter(self._ids.get(answer.name, ())), b"")
            replicas = self._replicas.get(first, {}) if answer.error_code == 0 else {}
            for topic in asked.get(answer.name, ()) if replicas else ():
                if not topic.assignments:
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


REGISTRATION_RECORDS_MAX = 100
"""Maximum number of records of one registration (PartitionChanges before the RegisterBrokerRecord) to allow for."""


class _Reader:
    def __init__(self) -> None:
        self.captured_end = self.live_end = 0
        self.live_epoch = 0
        self.live_high_watermark = -1
        # Captured and live log end after each response; the captured ends ascend.
        self.captured_ends = [0]
        self.live_ends = [0]


class LogReaders:
    """All readers of a replay."""

    def __init__(self, renaming: Renaming) -> None:
        self._renaming = renaming
        self._readers: defaultdict[int, _Reader] = defaultdict(_Reader)

    def bind_fetch(self, request: FetchRequest) -> None:
        """Set the position of a Fetch request in the log, in place."""
        reader = self._readers[replica_of(request)]
        for partition in (partition for topic in request.topics for partition in topic.partitions):
            partition.fetch_offset = reader.live_end
            partition.last_fetched_epoch = (
                reader.live_epoch if reader.live_end else min(partition.last_fetched_epoch, 0)
            )
            if partition.high_watermark != -1 and partition.high_watermark < 1 << 62:
                partition.high_watermark = max(reader.live_high_watermark, 0)

    def bind_heartbeat(self, request: BrokerHeartbeatRequest, captured_epoch: int) -> None:
        """Set a heartbeat's offset, in place. The epoch is live already; `captured_epoch` is the captured one."""
        offset = request.current_metadata_offset
        if offset < 0:
            return
        reader = self._readers[request.broker_id]
        index = bisect_right(reader.captured_ends, offset + 1) - 1
        live = reader.live_ends[index] - 1
        live_epoch = self._renaming.live(BROKER_EPOCH, captured_epoch)
        assert isinstance(live_epoch, int)
        if offset < captured_epoch:
            live = min(live, live_epoch - 1)
        elif live <= live_epoch:
            # The live reader is behind. Stay past the registration; its batch may begin with other records.
            live = live_epoch + min(offset - captured_epoch, REGISTRATION_RECORDS_MAX)
        request.current_metadata_offset = live

    def answered(self, request: FetchRequest, captured: FetchResponse, live: FetchResponse) -> None:
        """Learn from the captured and the live response to one Fetch."""
        reader = self._readers[replica_of(request)]
        reader.captured_end = _end(captured)[0] or reader.captured_end
        if reader.captured_ends[-1] < reader.captured_end:
            reader.captured_ends.append(reader.captured_end)
            reader.live_ends.append(reader.live_end)
        self.read(request, live)

    def read(self, request: FetchRequest, live: FetchResponse) -> None:
        """Learn from a live response alone."""
        reader = self._readers[replica_of(request)]
        for partition in (partition for topic in live.responses for partition in topic.partitions):
            reader.live_high_watermark = max(reader.live_high_watermark, partition.high_watermark)
        end, epoch = _end(live)
        if end > reader.live_end:
            reader.live_end, reader.live_epoch = end, epoch
        reader.live_ends[-1] = reader.live_end


def replica_of(request: FetchRequest) -> int:
    """Return the replica id of a Fetch request; newer versions have it in another field."""
    return int(request.replica_state.replica_id if request.replica_id == -1 else request.replica_id)


def _end(response: FetchResponse) -> tuple[int, int]:
    """Return the offset after the last whole batch of a Fetch response and its epoch; 0, 0 without one."""
    end = epoch = 0
    for partition in (partition for topic in response.responses for partition in topic.partitions):
        try:
            for header in record_batch.read_headers(bytes(partition.records or b""), allow_partial_tail=True):
                end, epoch = header.last_offset + 1, header.leader_epoch
        except WireError:
            continue
    return end, epoch

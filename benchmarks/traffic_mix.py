"""The exchanges in a generated capture of a controller: encoded bodies, and the bytes that change between them.

The shares resemble those of a controller with many brokers: mostly heartbeats, then metadata fetches, some with
records, registrations, and assignments of replicas to directories, which need four segments in each direction.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from codec_peers.bodies import bodies
from mockraft.wire import connection, messages, record_batch
from mockraft.wire.message import Message
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from mockraft.wire.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.messages.broker_registration_response import BrokerRegistrationResponse
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.messages.fetch_response import FetchableTopicResponse, FetchResponse
from mockraft.wire.messages.fetch_response import PartitionData as FetchedPartition
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

BROKER_ID, SESSION_ID, SESSION_EPOCH = 0x7A7B7C71, 0x7A7B7C72, 0x7A7B7C73
BROKER_EPOCH, OFFSET = 0x7A7B7C7D7E7F7174, 0x7A7B7C7D7E7F7175
_MARKS = {"broker_id": (BROKER_ID, 4), "session_id": (SESSION_ID, 4), "session_epoch": (SESSION_EPOCH, 4)} | {
    "broker_epoch": (BROKER_EPOCH, 8),
    "offset": (OFFSET, 8),
}


class Place(NamedTuple):
    """Bytes of a frame that differ from one exchange to the next: `what` they say, where, and how many."""

    what: str
    at: int
    size: int


class Kind(NamedTuple):
    """One kind of exchange: both frames with their lengths, the bytes that change, and its share of all exchanges."""

    name: str
    share: float
    request: bytes
    response: bytes
    request_places: list[Place]
    response_places: list[Place]


def opening() -> Kind:
    """The first exchange of a connection."""
    answer = next(body.message for body in bodies() if body.name == "ApiVersionsResponse.v4")
    asked = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.1")
    return _kind("ApiVersions", 0.0, asked, answer, 4)


def kinds() -> list[Kind]:
    """All other exchanges; the shares are 1 together."""
    rng = random.Random(7)
    registration = next(body.message for body in bodies() if body.name == "BrokerRegistrationRequest.v4")
    assert isinstance(registration, BrokerRegistrationRequest)
    registration.broker_id = BROKER_ID
    assignment = next(body.message for body in bodies() if body.name == "AssignReplicasToDirsRequest.v0")
    assert isinstance(assignment, AssignReplicasToDirsRequest)
    assignment.broker_id, assignment.broker_epoch = BROKER_ID, BROKER_EPOCH
    heartbeat = BrokerHeartbeatRequest(
        broker_id=BROKER_ID, broker_epoch=BROKER_EPOCH, current_metadata_offset=OFFSET, cordoned_log_dirs=[]
    )
    return [
        _kind("BrokerHeartbeat", 0.60, heartbeat, BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False), 2),
        _kind("Fetch", 0.26, _fetch(), _fetched(b""), 18),
        _kind("Fetch with records", 0.05, _fetch(), _fetched(_batch(rng)), 18),
        _kind("BrokerRegistration", 0.05, registration, BrokerRegistrationResponse(broker_epoch=BROKER_EPOCH), 4),
        _kind("AssignReplicasToDirs", 0.04, assignment, _assigned(assignment), 0),
    ]


def _kind(name: str, share: float, asked: Message, answer: Message, version: int) -> Kind:
    request = connection.write_request(asked, version, 0, "broker-1")
    header_version = messages.response_header_version(asked.api_key, version)
    response = connection.write_response(answer.write(version), 0, header_version)
    request_places = [Place("correlation_id", 8, 4), *_places(request)]
    return Kind(name, share, request, response, request_places, [Place("correlation_id", 4, 4), *_places(response)])


def _places(frame: bytes) -> list[Place]:
    found = []
    for what, (mark, size) in _MARKS.items():
        at = frame.find(mark.to_bytes(size))
        while at >= 0:
            found.append(Place(what, at, size))
            at = frame.find(mark.to_bytes(size), at + size)
    return found


def _fetch() -> FetchRequest:
    partition = FetchPartition(
        current_leader_epoch=1,
        fetch_offset=OFFSET,
        last_fetched_epoch=1,
        log_start_offset=0,
        replica_directory_id=bytes(range(16)),
        high_watermark=OFFSET,
    )
    return FetchRequest(
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        replica_state=ReplicaState(replica_id=BROKER_ID),
        max_wait_ms=500,
        max_bytes=8 << 20,
        session_id=SESSION_ID,
        session_epoch=SESSION_EPOCH,
        topics=[FetchTopic(topic_id=(1).to_bytes(16), partitions=[partition])],
    )


def _fetched(batch: bytes) -> FetchResponse:
    partition = FetchedPartition(high_watermark=OFFSET, last_stable_offset=OFFSET, log_start_offset=0, records=batch)
    topic = FetchableTopicResponse(topic_id=(1).to_bytes(16), partitions=[partition])
    return FetchResponse(session_id=SESSION_ID, responses=[topic])


def _batch(rng: random.Random) -> bytes:
    """Eight partition changes as the metadata log holds them: framed by version, type and record version."""
    values = [
        b"\x01\x05\x02"
        + PartitionChangeRecord(partition_id=index, topic_id=rng.randbytes(16), isr=[1, 2, 3], leader=2).write(2)
        for index in range(8)
    ]
    return record_batch.encode(values, base_offset=88_000, leader_epoch=1, timestamp_ms=1_700_000_000_000)


def _assigned(asked: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(
        directories=[
            DirectoryData(
                id=directory.id,
                topics=[
                    TopicData(
                        topic_id=topic.topic_id,
                        partitions=[PartitionData(partition_index=each.partition_index) for each in topic.partitions],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in asked.directories
        ]
    )

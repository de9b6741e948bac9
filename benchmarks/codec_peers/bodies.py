"""The fourteen messages that the codec is measured on: realistic sizes, the same bytes at every run."""

from __future__ import annotations

import random
from typing import NamedTuple

from mockraft.wire.message import Message
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from mockraft.wire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from mockraft.wire.messages.assign_replicas_to_dirs_request import DirectoryData as AssignedDirectory
from mockraft.wire.messages.assign_replicas_to_dirs_request import PartitionData as AssignedPartition
from mockraft.wire.messages.assign_replicas_to_dirs_request import TopicData as AssignedTopic
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.messages.fetch_response import FetchableTopicResponse, FetchResponse
from mockraft.wire.messages.fetch_response import PartitionData as FetchedPartition
from mockraft.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.partition_record import PartitionRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord

FEATURES = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    "metadata.version": 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


class Body(NamedTuple):
    """A message and the version it is measured in."""

    message: Message
    version: int

    @property
    def name(self) -> str:
        return f"{type(self.message).__name__}.v{self.version}"


def bodies() -> list[Body]:
    """All fourteen; uuids and record bytes come from a seeded generator."""
    rng = random.Random(4)
    return [
        Body(BrokerHeartbeatRequest(broker_id=7, broker_epoch=1042, current_metadata_offset=88_123), 1),
        Body(_heartbeat(rng), 2),
        Body(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False), 1),
        Body(_registration(rng), 4),
        Body(_api_versions(), 4),
        Body(_fetch_request(rng), 17),
        Body(_fetch_response(rng), 17),
        Body(_metadata(rng), 13),
        Body(_assignment(rng), 0),
        Body(_creation(), 7),
        Body(_alteration(rng), 3),
        Body(_registration_record(rng), 4),
        Body(_partition(rng), 2),
        Body(PartitionChangeRecord(partition_id=3, topic_id=rng.randbytes(16), isr=[1, 2, 3], leader=2), 2),
    ]


def _heartbeat(rng: random.Random) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=7,
        broker_epoch=1042,
        current_metadata_offset=88_123,
        offline_log_dirs=[rng.randbytes(16)],
        cordoned_log_dirs=[rng.randbytes(16), rng.randbytes(16)],
    )


def _registration(rng: random.Random) -> BrokerRegistrationRequest:
    names = ("PLAINTEXT", "INTERNAL", "REPLICATION", "EXTERNAL")
    return BrokerRegistrationRequest(
        broker_id=7,
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        incarnation_id=rng.randbytes(16),
        listeners=[
            Listener(name=name, host=f"broker-7.{name.lower()}.kafka.example.com", port=9092 + i)
            for i, name in enumerate(names)
        ],
        features=[
            Feature(name=name, min_supported_version=0, max_supported_version=level) for name, level in FEATURES.items()
        ],
        rack="eu-west-1a",
        log_dirs=[rng.randbytes(16) for _ in range(4)],
        previous_broker_epoch=977,
    )


def _api_versions() -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, min_version=key % 3, max_version=key % 18 + 3) for key in range(60)],
        supported_features=[SupportedFeatureKey(name=name, max_version=level) for name, level in FEATURES.items()],
        finalized_features_epoch=88_123,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in FEATURES.items()
        ],
    )


def _fetch_request(rng: random.Random) -> FetchRequest:
    def partition(index: int) -> FetchPartition:
        return FetchPartition(
            partition=index,
            current_leader_epoch=index % 5,
            fetch_offset=rng.randrange(1 << 40),
            last_fetched_epoch=index % 5,
            log_start_offset=0,
            partition_max_bytes=1_048_576,
        )

    return FetchRequest(
        replica_state=ReplicaState(replica_id=7, replica_epoch=1042),
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=10_485_760,
        session_id=345_678,
        session_epoch=12,
        topics=[
            FetchTopic(topic_id=rng.randbytes(16), partitions=[partition(index) for index in range(10)])
            for _ in range(5)
        ],
        rack_id="eu-west-1a",
    )


def _fetch_response(rng: random.Random) -> FetchResponse:
    def partition(index: int) -> FetchedPartition:
        return FetchedPartition(
            partition_index=index,
            high_watermark=100_000 + index,
            last_stable_offset=100_000 + index,
            log_start_offset=0,
            records=rng.randbytes(2083),
        )

    topic = FetchableTopicResponse(topic_id=rng.randbytes(16), partitions=[partition(0), partition(1)])
    return FetchResponse(session_id=345_678, responses=[topic])


def _metadata(rng: random.Random) -> MetadataResponse:
    def partition(index: int) -> MetadataResponsePartition:
        replicas = [index % 9, (index + 1) % 9, (index + 2) % 9]
        isr = replicas[:2] if index % 50 == 0 else list(replicas)
        return MetadataResponsePartition(
            partition_index=index,
            leader_id=replicas[0],
            leader_epoch=index % 7,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=replicas[2:] if index % 50 == 0 else [],
        )

    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=node, host=f"broker-{node}.kafka.example.com", port=9092, rack=f"rack-{node % 3}"
            )
            for node in range(9)
        ],
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        controller_id=3,
        topics=[
            MetadataResponseTopic(
                name=f"orders.region-{topic:02}.events.v1",
                topic_id=rng.randbytes(16),
                partitions=[partition(index) for index in range(20)],
            )
            for topic in range(50)
        ],
    )


def _assignment(rng: random.Random) -> AssignReplicasToDirsRequest:
    def topic() -> AssignedTopic:
        partitions = [AssignedPartition(partition_index=index) for index in range(20)]
        return AssignedTopic(topic_id=rng.randbytes(16), partitions=partitions)

    return AssignReplicasToDirsRequest(
        broker_id=7,
        broker_epoch=1042,
        directories=[AssignedDirectory(id=rng.randbytes(16), topics=[topic() for _ in range(10)]) for _ in range(4)],
    )


def _creation() -> CreateTopicsRequest:
    configs = {"cleanup.policy": "compact", "min.insync.replicas": "2", "retention.ms": "604800000"}
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=f"orders.region-{topic:02}.events.v1",
                num_partitions=12,
                replication_factor=3,
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
            )
            for topic in range(50)
        ],
        timeout_ms=30_000,
    )


def _alteration(rng: random.Random) -> AlterPartitionRequest:
    def partition(index: int) -> PartitionData:
        isr = [BrokerState(broker_id=broker, broker_epoch=1000 + broker) for broker in (1, 2, 3)]
        return PartitionData(partition_index=index, leader_epoch=4, new_isr_with_epochs=isr, partition_epoch=11)

    return AlterPartitionRequest(
        broker_id=1,
        broker_epoch=1042,
        topics=[
            TopicData(topic_id=rng.randbytes(16), partitions=[partition(index) for index in range(5)]) for _ in range(4)
        ],
    )


def _registration_record(rng: random.Random) -> RegisterBrokerRecord:
    names = ("PLAINTEXT", "INTERNAL", "REPLICATION", "EXTERNAL")
    return RegisterBrokerRecord(
        broker_id=7,
        incarnation_id=rng.randbytes(16),
        broker_epoch=1042,
        end_points=[
            BrokerEndpoint(name=name, host=f"broker-7.{name.lower()}.kafka.example.com", port=9092 + i)
            for i, name in enumerate(names)
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=0, max_supported_version=level)
            for name, level in FEATURES.items()
        ],
        rack="eu-west-1a",
        log_dirs=[rng.randbytes(16) for _ in range(4)],
    )


def _partition(rng: random.Random) -> PartitionRecord:
    return PartitionRecord(
        partition_id=3,
        topic_id=rng.randbytes(16),
        replicas=[1, 2, 3],
        isr=[1, 2, 3],
        leader=1,
        leader_epoch=4,
        leader_recovery_state=1,
        partition_epoch=11,
        directories=[rng.randbytes(16), rng.randbytes(16), rng.randbytes(16)],
    )

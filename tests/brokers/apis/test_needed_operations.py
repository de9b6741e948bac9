"""The operations that each API of simulated brokers asks the authorizer for, and its refusals (Kafka's KafkaApis)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from mockraft.brokers.apis.registry import APIS
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.kafka_api.authorization.authorizer import Authorizer
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.message import Struct, field_names
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.schema_files import schema_of

from ...filled_messages import filled
from ..partitions.data_requests import transactional
from .conftest import Cluster, topic_id

ON_TOPIC = (
    "READ TOPIC, WRITE TOPIC, CREATE TOPIC, DELETE TOPIC, ALTER TOPIC, DESCRIBE_CONFIGS TOPIC, ALTER_CONFIGS TOPIC"
)
NEEDED = {
    "Produce": "WRITE TRANSACTIONAL_ID, WRITE TOPIC",
    "Fetch": "READ TOPIC",
    "ListOffsets": "DESCRIBE TOPIC",
    "Metadata": "DESCRIBE TOPIC",
    "OffsetCommit": "READ GROUP, READ TOPIC",
    "OffsetFetch": "DESCRIBE GROUP, DESCRIBE TOPIC",
    "FindCoordinator": "DESCRIBE GROUP",
    "JoinGroup": "READ GROUP",
    "Heartbeat": "READ GROUP",
    "LeaveGroup": "READ GROUP",
    "SyncGroup": "READ GROUP",
    "DescribeGroups": "DESCRIBE GROUP",
    "ListGroups": "DESCRIBE CLUSTER, DESCRIBE GROUP",
    "DeleteRecords": "DELETE TOPIC",
    "InitProducerId": "WRITE TRANSACTIONAL_ID",
    "OffsetForLeaderEpoch": "CLUSTER_ACTION CLUSTER, DESCRIBE TOPIC",
    "AddPartitionsToTxn": "WRITE TRANSACTIONAL_ID, WRITE TOPIC, CLUSTER_ACTION CLUSTER",
    "AddOffsetsToTxn": "WRITE TRANSACTIONAL_ID, READ GROUP",
    "EndTxn": "WRITE TRANSACTIONAL_ID",
    "WriteTxnMarkers": "ALTER CLUSTER, CLUSTER_ACTION CLUSTER",
    "TxnOffsetCommit": "WRITE TRANSACTIONAL_ID, READ GROUP, READ TOPIC",
    "DescribeAcls": "DESCRIBE CLUSTER",
    "DescribeConfigs": "DESCRIBE_CONFIGS TOPIC",
    "AlterReplicaLogDirs": "ALTER CLUSTER",
    "DescribeLogDirs": "DESCRIBE CLUSTER",
    "DeleteGroups": "DELETE GROUP",
    "OffsetDelete": "DELETE GROUP, READ TOPIC",
    "DescribeClientQuotas": "DESCRIBE_CONFIGS CLUSTER",
    "DescribeUserScramCredentials": "DESCRIBE CLUSTER",
    "DescribeProducers": "READ TOPIC",
    "DescribeTransactions": "DESCRIBE TRANSACTIONAL_ID",
    "ListTransactions": "DESCRIBE TRANSACTIONAL_ID",
    "ConsumerGroupHeartbeat": "READ GROUP, DESCRIBE TOPIC",
    "ConsumerGroupDescribe": "DESCRIBE GROUP",
    "ListConfigResources": "DESCRIBE_CONFIGS CLUSTER",
    "ShareGroupHeartbeat": "READ GROUP, DESCRIBE TOPIC",
    "ShareGroupDescribe": "DESCRIBE GROUP",
    "ShareFetch": "READ GROUP, READ TOPIC",
    "ShareAcknowledge": "READ GROUP",
    "DescribeShareGroupOffsets": "DESCRIBE GROUP, DESCRIBE TOPIC",
    "AlterShareGroupOffsets": "READ GROUP",
    "DeleteShareGroupOffsets": "DELETE GROUP",
    "DescribeTopicPartitions": f"DESCRIBE TOPIC, {ON_TOPIC}",
    "InitializeShareGroupState": "CLUSTER_ACTION CLUSTER",
    "ReadShareGroupState": "CLUSTER_ACTION CLUSTER",
    "WriteShareGroupState": "CLUSTER_ACTION CLUSTER",
    "DeleteShareGroupState": "CLUSTER_ACTION CLUSTER",
    "ReadShareGroupStateSummary": "CLUSTER_ACTION CLUSTER",
}
"""What is not here is forwarded, and authorized by the controller, or refused to everybody, or allowed to everybody."""
HIDDEN = {"ListGroups", "ListTransactions"}
"""They leave out what the client may not describe."""


class Recording:
    """An authorizer that allows everything, or nothing, and keeps the operations that it was asked for."""

    def __init__(self, *, allowed: bool) -> None:
        self.asked: dict[str, ResourceType] = {}
        self._allowed = allowed

    def allows(self, _acls: Any, _principal: str, _host: str, operation: int, kind: int, _name: str) -> bool:
        resource_type = ResourceType(kind)
        self.asked[f"{AclOperation(operation).name} {resource_type.name}"] = resource_type
        return self._allowed


def codes(part: Any) -> Iterator[str]:
    """Yield the name of each error in a response."""
    for each in part if isinstance(part, list) else [part]:
        for name in field_names(type(each)) if isinstance(each, Struct) else ():
            value = getattr(each, name)
            if name.endswith("error_code") and value:
                yield error_codes.name(value)
            yield from codes(value)


def test_each_api_asks_for_kafkas_operations_and_refuses_as_kafka_does(cluster: Cluster) -> None:
    cluster.register(1)
    for name in ("a", "__consumer_offsets", "__transaction_state"):
        cluster.create(name, {"replicas": [1]}, {"replicas": [1]})
    cluster.apply(*(FeatureLevelRecord(name=f"{each}.version", feature_level=1) for each in ("group", "share")))
    cluster.coordinate()
    cluster.ask(InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=1_000), 4)
    cluster.broker.groups.create("a")
    singular = "name topic topic_name key resource_name group_id transactional_id v3_and_below_transactional_id"
    plural = "groups group_ids transactional_ids coordinator_keys subscribed_topic_names"
    known = {
        **dict.fromkeys(f"{singular} {plural}".split(), "a"),
        "groups_names": ["b"],
        "producer_id_filters": [],
        "topic_id": topic_id("a"),
        "resource_type": 2,
        "acks": 1,
        "records": transactional(1),
        "member_id": "a",
        "acknowledgement_batches": [],
    }
    needed: dict[str, str] = {}
    for key, api in ((key, api) for key, api in APIS.items() if not api.forwarded):
        asked: dict[str, ResourceType] = {}
        cls, name = messages.request(key), api_keys.name(key)
        for version in sorted({max(api.min_version, cls.min_version), api.max_version}):
            request = filled(sys.modules[cls.__module__], schema_of(cls).root, version, known)
            for authorizer in (Recording(allowed=True), Recording(allowed=False)):
                cluster.broker.config = replace(cluster.broker.config, authorizer=cast(Authorizer, authorizer))
                response = cluster.ask(request, version)
                asked.update(authorizer.asked)
        if asked:
            needed[name] = ", ".join(asked)
            refused = set() if name in HIDDEN else {f"{[*authorizer.asked.values()][-1].name}_AUTHORIZATION_FAILED"}
            assert set(codes(response)) == refused, name
    assert needed == NEEDED

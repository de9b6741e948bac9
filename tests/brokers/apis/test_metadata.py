"""Metadata as KafkaApis and KRaftMetadataCache make it; beside a real broker in tests/real_kafka."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

ALL_ON_TOPIC, ALL_ON_CLUSTER, NOT_ASKED = 3576, 8096, -(2**31)


def named(*names: str | None, **fields: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def fenced(broker_id: int) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=10 + broker_id, fenced=1)


@pytest.fixture
def cluster(cluster: Any) -> Any:
    """Three brokers, topics a (two partitions, 1 leads one, 2 the other) and b."""
    for broker_id in (1, 2, 3):
        cluster.register(broker_id, rack=f"r{broker_id}")
    cluster.create("a", {"replicas": [1, 2]}, {"replicas": [2, 3]})
    cluster.create("b", {"replicas": [3, 1]})
    return cluster


@pytest.mark.parametrize(
    ("version", "topics", "expected"),
    [
        (0, [], ["a", "b"]),
        (1, [], []),
        (1, None, ["a", "b"]),
        (13, [], []),
        (13, None, ["a", "b"]),
        (13, ["b", "a", "b"], ["b", "a"]),
        (13, ["none", "b"], ["b", "none"]),
    ],
)
def test_topics_are_those_that_were_asked_for(
    cluster: Any, version: int, topics: list[str] | None, expected: list[str]
) -> None:
    request = MetadataRequest(topics=None) if topics is None else named(*topics)
    request.allow_auto_topic_creation = version < 4
    assert [topic.name for topic in (cluster.ask(request, version)).topics] == expected


def test_brokers_and_cluster_are_returned(cluster: Any) -> None:
    response = cluster.ask(named())
    assert [(each.node_id, each.host, each.port, each.rack) for each in response.brokers] == [
        (1, "b1", 9092, "r1"),
        (2, "b2", 9092, "r2"),
        (3, "b3", 9092, "r3"),
    ]
    assert response.cluster_id == "a-cluster"
    assert response.controller_id in (1, 2, 3)


def test_a_partition_has_its_leader_replicas_and_isr(cluster: Any) -> None:
    (topic,) = (cluster.ask(named("a"))).topics
    assert (topic.error_code, topic.topic_id, topic.is_internal) == (
        0,
        cluster.image.topics_by_name["a"].topic_id,
        False,
    )
    result = [
        (each.partition_index, each.leader_id, each.replica_nodes, each.isr_nodes, each.offline_replicas)
        for each in topic.partitions
    ]
    assert result == [(0, 1, [1, 2], [1, 2], []), (1, 2, [2, 3], [2, 3], [])]


def test_a_topic_by_its_id_hides_those_by_name(cluster: Any) -> None:
    known, unknown = cluster.image.topics_by_name["b"].topic_id, b"u" * 16
    asked = [MetadataRequestTopic(name=None, topic_id=each) for each in (known, unknown)]
    response = cluster.ask(MetadataRequest(topics=[*asked, MetadataRequestTopic(name="a")]))
    assert [(each.error_code, each.name, each.topic_id) for each in response.topics] == [
        (error_codes.UNKNOWN_TOPIC_ID, None, unknown),
        (0, "b", known),
    ]


@pytest.mark.parametrize(
    "topic", [{"name": None}, {"name": "a", "topic_id": b"i" * 16}, {"name": None, "topic_id": b"i" * 16}]
)
@pytest.mark.parametrize("version", [10, 11])
def test_topic_ids_are_refused_before_version_12(cluster: Any, version: int, topic: dict[str, Any]) -> None:
    response = cluster.ask(MetadataRequest(topics=[MetadataRequestTopic(**topic)]), version)
    assert [each.error_code for each in response.topics] == [error_codes.INVALID_REQUEST]
    assert response.brokers == []


@pytest.mark.parametrize(
    ("name", "code", "is_internal"),
    [
        ("none", error_codes.UNKNOWN_TOPIC_OR_PARTITION, False),
        ("__consumer_offsets", error_codes.UNKNOWN_TOPIC_OR_PARTITION, True),
        ("no/name", error_codes.INVALID_TOPIC_EXCEPTION, False),
        ("", error_codes.INVALID_TOPIC_EXCEPTION, False),
        ("..", error_codes.INVALID_TOPIC_EXCEPTION, False),
        ("n" * 249, error_codes.UNKNOWN_TOPIC_OR_PARTITION, False),
        ("n" * 250, error_codes.INVALID_TOPIC_EXCEPTION, False),
    ],
)
def test_a_topic_that_nobody_knows_is_an_error_of_its_own(
    cluster: Any, name: str, code: int, is_internal: bool
) -> None:
    request = named(name, allow_auto_topic_creation=False)
    (topic,) = (cluster.ask(request)).topics
    assert (topic.error_code, topic.name, topic.is_internal, topic.partitions) == (code, name, is_internal, [])


def test_a_topic_without_partitions_is_unknown_yet(cluster: Any) -> None:
    cluster.create("empty")
    (topic,) = (cluster.ask(named("empty", allow_auto_topic_creation=False))).topics
    assert topic.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert "empty" not in [each.name for each in (cluster.ask(MetadataRequest(topics=None))).topics]


def test_a_fenced_broker_is_no_broker_but_may_still_lead(cluster: Any) -> None:
    cluster.apply(fenced(2))
    response = cluster.ask(named("a"))
    assert [each.node_id for each in response.brokers] == [1, 3]
    assert [(each.error_code, each.leader_id, each.offline_replicas) for each in response.topics[0].partitions] == [
        (0, 1, [2]),
        (0, 2, [2]),
    ]


def test_version_0_reports_and_leaves_out_who_cannot_be_reached(cluster: Any) -> None:
    cluster.apply(fenced(3))
    (topic,) = (cluster.ask(named("a"), 0)).topics
    assert [(each.error_code, each.replica_nodes, each.isr_nodes) for each in topic.partitions] == [
        (0, [1, 2], [1, 2]),
        (error_codes.REPLICA_NOT_AVAILABLE, [2], [2]),
    ]


@pytest.mark.parametrize(
    ("version", "is_gone", "code"),
    [
        (5, False, "LEADER_NOT_AVAILABLE"),
        (6, False, "LISTENER_NOT_FOUND"),
        *((version, True, "LEADER_NOT_AVAILABLE") for version in (5, 6, 13)),
    ],
)
def test_a_leader_that_is_gone_or_without_the_clients_listener_is_none(
    cluster: Any, version: int, is_gone: bool, code: str
) -> None:
    if is_gone:
        cluster.apply(UnregisterBrokerRecord(broker_id=2, broker_epoch=12))
    else:
        cluster.register(2, ("INSIDE",))
    response = cluster.ask(named("a"), version)
    assert [each.node_id for each in response.brokers] == [1, 3]
    partition = response.topics[0].partitions[1]
    found = (partition.error_code, partition.leader_id, partition.offline_replicas)
    assert found == (getattr(error_codes, code), -1, [2])


def test_a_replica_in_an_offline_directory_is_offline(cluster: Any) -> None:
    cluster.apply(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=12, log_dirs=[b"d" * 16]))
    partitions = (cluster.ask(named("a"))).topics[0].partitions
    assert [each.offline_replicas for each in partitions] == [[2], [2]]


def test_no_broker_alive_is_no_controller(cluster: Any) -> None:
    cluster.apply(*map(fenced, (1, 2, 3)))
    response = cluster.ask(named())
    assert (response.controller_id, response.brokers) == (-1, [])


@pytest.mark.parametrize(("version", "on_cluster"), [(8, ALL_ON_CLUSTER), (10, ALL_ON_CLUSTER)])
def test_everything_is_allowed_where_nobody_is_asked(cluster: Any, version: int, on_cluster: int) -> None:
    wanted = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    response = cluster.ask(named("a", "none", allow_auto_topic_creation=False, **wanted), version)
    assert response.cluster_authorized_operations == on_cluster
    assert [each.topic_authorized_operations for each in response.topics] == [ALL_ON_TOPIC, ALL_ON_TOPIC]


def test_operations_are_returned_only_on_request(cluster: Any) -> None:
    response = cluster.ask(named("a"))
    assert response.topics[0].topic_authorized_operations == NOT_ASKED


def test_a_large_answer_has_all_topics(cluster: Any) -> None:
    for number in range(40):
        cluster.create(f"large-{number}", *({"replicas": [1, 2]} for _ in range(100)))
    response = cluster.ask(MetadataRequest(topics=None))
    assert len(response.topics) == 42
    assert sum(len(topic.partitions) for topic in response.topics if topic.name.startswith("large")) == 4_000

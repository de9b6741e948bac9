"""ACLs at simulated brokers: what clients may do is in the image, and refusals are Kafka's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from mockraft import Controller, SyncController
from mockraft.brokers.coordinators.group_coordinator import GroupCoordinator
from mockraft.wire import client, error_codes
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import endpoint_of
from mockraft.wire.message import Message
from mockraft.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from mockraft.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.messages.describe_groups_request import DescribeGroupsRequest
from mockraft.wire.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from mockraft.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.share_fetch_request import FetchPartition, FetchTopic, ShareFetchRequest
from mockraft.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from mockraft.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from mockraft.wire.sasl import SaslLogin

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

LITERAL, ALLOW = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
ResponseT = TypeVar("ResponseT", bound=Message)
USERS = {"admin": "a", "alice": "b"}
OPTIONS: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": ("PLAIN",),
    "plain_users": USERS,
    "super_users": "User:admin",
}


def settings(bootstrap: str, user: str, **more: Any) -> dict[str, Any]:
    login = {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": USERS[user]}
    return {"bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT", **login, **more}


@pytest.fixture
def cluster() -> Iterator[SyncController]:
    with Controller.sync(brokers=1, **OPTIONS) as controller:
        admin = AdminClient(settings(controller.bootstrap_servers, "admin"))
        for created in admin.create_topics([NewTopic("orders", 1, 1), NewTopic("secrets", 1, 1)]).values():
            created.result(10)
        yield controller


def allow(cluster: SyncController, resource: ResourceType, name: str, operation: AclOperation) -> None:
    """Let alice do this, and wait until the broker knows."""
    admin = AdminClient(settings(cluster.bootstrap_servers, "admin"))
    acl = AclBinding(resource, name, LITERAL, "User:alice", "*", operation, ALLOW)
    admin.create_acls([acl])[acl].result(10)
    image = cluster.brokers[1].inside.node.image
    assert image is not None
    cluster.wait_until(lambda: len(image.acls) == len(cluster.running.controller.image.security.acls))


def produced(bootstrap: str, topic: str) -> int | None:
    """The error of a record of alice's, None for none."""
    errors: list[KafkaError | None] = []
    producer = Producer(settings(bootstrap, "alice"))
    producer.produce(topic, b"tea", on_delivery=lambda error, _: errors.append(error))
    producer.flush(10)
    return None if errors[0] is None else errors[0].code()


def consumed(bootstrap: str, topic: str) -> bytes | int:
    """The first record that alice reads as the group `kitchen`, or the error."""
    consumer = Consumer(settings(bootstrap, "alice", **{"group.id": "kitchen", "auto.offset.reset": "earliest"}))
    try:
        consumer.subscribe([topic])
        message = consumer.poll(20)
        assert message is not None
        error = message.error()
        if error is None:
            consumer.commit(message=message, asynchronous=False)
            return bytes(message.value() or b"")
        return error.code()
    finally:
        consumer.close()


def answer(cluster: SyncController, request: RequestMessage[ResponseT], user: str = "alice") -> ResponseT:
    """Return the broker's answer to the user."""

    async def sent() -> ResponseT:
        login = ClientSecurity("SASL_PLAINTEXT", login=SaslLogin("PLAIN", user, USERS[user]))
        connection = await client.connect(*endpoint_of(cluster.bootstrap_servers), client_id="t", security=login)
        response = await connection.send(request)
        await connection.close()
        return response

    return asyncio.run(sent())


def test_a_client_may_do_what_acls_allow_and_nothing_else(cluster: SyncController) -> None:
    bootstrap = cluster.bootstrap_servers
    alice = AdminClient(settings(bootstrap, "alice"))
    assert set(alice.list_topics(timeout=10).topics) == set(), "topics that may not be described are not listed"
    assert produced(bootstrap, "orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert produced(bootstrap, "new") == KafkaError.TOPIC_AUTHORIZATION_FAILED, "nor may it create one"

    allow(cluster, ResourceType.TOPIC, "orders", AclOperation.WRITE)
    assert set(alice.list_topics(timeout=10).topics) == {"orders"}, "WRITE implies DESCRIBE"
    assert produced(bootstrap, "orders") is None
    assert consumed(bootstrap, "orders") == KafkaError.GROUP_AUTHORIZATION_FAILED

    allow(cluster, ResourceType.GROUP, "kitchen", AclOperation.READ)
    assert consumed(bootstrap, "orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow(cluster, ResourceType.TOPIC, "orders", AclOperation.READ)
    assert consumed(bootstrap, "orders") == b"tea"
    committed = Consumer(settings(bootstrap, "alice", **{"group.id": "kitchen"}))
    assert committed.committed([TopicPartition("orders", 0)], timeout=10)[0].offset == 1
    committed.close()


def test_acls_are_described_to_whoever_may_describe_the_cluster(cluster: SyncController) -> None:
    everything = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )

    assert answer(cluster, everything).error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED
    allow(cluster, ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE)
    (resource,) = answer(cluster, everything).resources
    assert [(each.principal, each.operation) for each in resource.acls] == [("User:alice", 8)]


def coordinating(cluster: SyncController) -> GroupCoordinator:
    """The broker's coordinator, once it has loaded the group `kitchen`."""
    coordinators = cluster.brokers[1].inside.node.coordinators
    assert coordinators is not None
    answer(cluster, FindCoordinatorRequest(coordinator_keys=["kitchen"]), "admin")
    groups: GroupCoordinator = coordinators.groups
    cluster.wait_until(lambda: groups.log.is_loaded(groups.log.partition_of("kitchen")))
    return groups


def joined(cluster: SyncController, member_id: str, pattern: str | None = None, user: str = "alice") -> int:
    """The error of a member that joins `kitchen`; without a pattern it subscribes to `orders`."""
    beat = ConsumerGroupHeartbeatRequest(
        group_id="kitchen",
        member_id=member_id,
        rebalance_timeout_ms=9_000,
        subscribed_topic_names=["orders"] if pattern is None else None,
        subscribed_topic_regex=pattern,
        topic_partitions=[],
    )
    return answer(cluster, beat, user).error_code


def test_members_of_the_consumer_protocol_need_their_group_and_topics(cluster: SyncController) -> None:
    groups = coordinating(cluster)
    assert joined(cluster, "a") == error_codes.GROUP_AUTHORIZATION_FAILED
    allow(cluster, ResourceType.GROUP, "kitchen", AclOperation.READ)
    assert joined(cluster, "a") == error_codes.TOPIC_AUTHORIZATION_FAILED
    allow(cluster, ResourceType.TOPIC, "orders", AclOperation.DESCRIBE)
    assert (joined(cluster, "a", ".*"), joined(cluster, "b")) == (error_codes.NONE, error_codes.NONE)
    assert groups.consumer_group("kitchen").snapshot.patterns[".*"].topics == {"orders"}, "hidden topics do not match"


def test_members_of_share_groups_need_their_group_and_topics(cluster: SyncController) -> None:
    coordinating(cluster)
    topics = cluster.running.controller.image.topics
    topic = FetchTopic(topic_id=topics.by_name["orders"].topic_id, partitions=[FetchPartition(partition_index=0)])
    fetch = ShareFetchRequest(group_id="kitchen", member_id="a", topics=[topic])
    beat = ShareGroupHeartbeatRequest(group_id="kitchen", member_id="a", subscribed_topic_names=["orders"])
    described = DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id="kitchen")])

    def codes() -> tuple[int, int, int]:
        return (
            answer(cluster, beat).error_code,
            answer(cluster, described).groups[0].error_code,
            answer(cluster, ShareGroupDescribeRequest(group_ids=["kitchen"])).groups[0].error_code,
        )

    assert codes() == (error_codes.GROUP_AUTHORIZATION_FAILED,) * 3
    assert answer(cluster, fetch).error_code == error_codes.GROUP_AUTHORIZATION_FAILED
    allow(cluster, ResourceType.GROUP, "kitchen", AclOperation.READ)
    assert answer(cluster, beat, "admin").error_code == error_codes.NONE
    hidden = error_codes.TOPIC_AUTHORIZATION_FAILED
    assert codes() == (hidden, error_codes.NONE, hidden)
    assert answer(cluster, fetch).responses[0].partitions[0].error_code == hidden
    allow(cluster, ResourceType.TOPIC, "orders", AclOperation.READ)
    assert codes() == (error_codes.NONE,) * 3
    assert answer(cluster, fetch).responses[0].partitions[0].error_code == error_codes.NONE


def test_groups_and_topics_are_described_to_whoever_may_describe_them(cluster: SyncController) -> None:
    newer = ConsumerGroupDescribeRequest(group_ids=["kitchen"])
    classic = DescribeGroupsRequest(groups=["kitchen"])
    topics = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="secrets"), TopicRequest(name="none")])

    def codes() -> tuple[int, int]:
        return answer(cluster, newer).groups[0].error_code, answer(cluster, classic).groups[0].error_code

    coordinating(cluster)
    assert joined(cluster, "a", user="admin") == error_codes.NONE
    assert codes() == (error_codes.GROUP_AUTHORIZATION_FAILED,) * 2
    allow(cluster, ResourceType.GROUP, "kitchen", AclOperation.DESCRIBE)
    assert codes() == (error_codes.TOPIC_AUTHORIZATION_FAILED, error_codes.GROUP_ID_NOT_FOUND)
    allow(cluster, ResourceType.TOPIC, "orders", AclOperation.DESCRIBE)
    assert codes() == (error_codes.NONE, error_codes.GROUP_ID_NOT_FOUND)
    assert {each.error_code for each in answer(cluster, topics).topics} == {error_codes.TOPIC_AUTHORIZATION_FAILED}
    assert [each.name for each in answer(cluster, DescribeTopicPartitionsRequest()).topics] == ["orders"]


def test_transactions_need_their_id_and_idempotence_some_topic(cluster: SyncController) -> None:
    bootstrap = cluster.bootstrap_servers
    idempotent = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
    transactional = InitProducerIdRequest(transactional_id="till", transaction_timeout_ms=1_000)

    coordinating(cluster)
    alice = AdminClient(settings(bootstrap, "alice"))
    assert answer(cluster, idempotent).error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED
    allow(cluster, ResourceType.TOPIC, "orders", AclOperation.WRITE)
    assert answer(cluster, idempotent).error_code == error_codes.NONE
    assert answer(cluster, transactional).error_code == error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allow(cluster, ResourceType.TRANSACTIONAL_ID, "till", AclOperation.WRITE)
    producer = Producer(settings(bootstrap, "alice", **{"transactional.id": "till"}))
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", b"tea")
    producer.commit_transaction(10)
    allow(cluster, ResourceType.GROUP, "kitchen", AclOperation.DESCRIBE)
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        alice.delete_consumer_groups(["kitchen"])["kitchen"].result(10)

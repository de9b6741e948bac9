"""Examples for docs/authorisation.md: super users, ACLs, a quota and policies."""

import pytest
from mockraft import BrokerState, Controller, NewTopic, SimulatedBroker
from mockraft.wire import client
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
from mockraft.wire.sasl import SaslLogin


async def test_acl_allows_a_user_to_delete_a_topic() -> None:
    async with Controller(
        super_users="User:admin",
        security_protocol="SASL_PLAINTEXT",
        sasl_enabled_mechanisms=("PLAIN",),
        plain_users={"admin": "a", "alice": "b"},
    ) as controller:
        address = (controller.host, controller.port)
        admin = await client.connect(*address, security=login_of("admin", "a"))
        alice = await client.connect(*address, security=login_of("alice", "b"))
        delete = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000)

        refused = await alice.send(delete, version=5)
        assert refused.responses[0].error_code == 29  # TOPIC_AUTHORIZATION_FAILED, whether or not the topic exists

        acl = AclCreation(
            resource_type=2,  # TOPIC
            resource_name="ord",
            resource_pattern_type=4,  # PREFIXED
            principal="User:alice",
            host="*",
            operation=6,  # DELETE, which implies DESCRIBE
            permission_type=3,  # ALLOW
        )
        await admin.send(CreateAclsRequest(creations=[acl]))
        allowed = await alice.send(delete, version=5)
        assert allowed.responses[0].error_code == 3  # UNKNOWN_TOPIC_OR_PARTITION: alice has DESCRIBE now
        await admin.close()
        await alice.close()


async def test_broker_needs_cluster_action() -> None:
    async with Controller(
        super_users="User:admin",
        security_protocol="SASL_PLAINTEXT",
        sasl_enabled_mechanisms=("PLAIN",),
        plain_users={"admin": "a", "broker": "b"},
    ) as controller:
        where, login = (controller.bootstrap, controller.cluster_id, 1), login_of("broker", "b")
        async with SimulatedBroker.joining(*where, security=login) as broker:
            with pytest.raises(RuntimeError, match="stopped: received cluster authorization error"):
                await broker.wait_until(BrokerState.RUNNING)

        admin = await client.connect(controller.host, controller.port, security=login_of("admin", "a"))
        acl = AclCreation(
            resource_type=4,  # CLUSTER
            resource_name="kafka-cluster",
            principal="User:broker",
            host="*",
            operation=9,  # CLUSTER_ACTION
            permission_type=3,  # ALLOW
        )
        await admin.send(CreateAclsRequest(creations=[acl]))
        await admin.close()
        async with SimulatedBroker.joining(*where, security=login) as broker:
            await broker.wait_until(BrokerState.RUNNING)


async def test_quota_refuses_requests_above_the_rate() -> None:
    async with (
        Controller() as controller,
        SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        connection = await client.connect(controller.host, controller.port)

        everybody = [EntityData(entity_type="user", entity_name=None)]
        rate = OpData(key="controller_mutation_rate", value=0.01)  # a partition in 100 seconds
        await connection.send(AlterClientQuotasRequest(entries=[EntryData(entity=everybody, ops=[rate])]))

        first = await connection.send(CreateTopicsRequest(topics=[new_topic("first")], timeout_ms=1000))
        second = await connection.send(CreateTopicsRequest(topics=[new_topic("second")], timeout_ms=1000))
        assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
        assert second.topics[0].error_code == 89  # THROTTLING_QUOTA_EXCEEDED
        assert 0 < second.throttle_time_ms <= 89_000
        await connection.close()


def small_names_only(topic: NewTopic) -> str | None:
    return None if topic.topic.islower() else "names are written small here"


async def test_policy_function_refuses_a_topic() -> None:
    async with (
        Controller(create_topic_policy=small_names_only) as controller,
        SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        connection = await client.connect(controller.host, controller.port)
        answer = await connection.send(CreateTopicsRequest(topics=[new_topic("Orders")], timeout_ms=1000))
        (refused,) = answer.topics
        assert (refused.error_code, refused.error_message) == (44, "names are written small here")
        await connection.close()


def new_topic(name: str) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=1, replication_factor=1)


def login_of(user: str, password: str) -> ClientSecurity:
    return ClientSecurity("SASL_PLAINTEXT", login=SaslLogin("PLAIN", user, password))

"""kafka-acls on a real broker and directly at the controller, and its effect on clients."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from mockraft.kafka.cluster import ControllerKind, KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaTool, wait_until

from .conftest import add_client_listener, login_address

pytestmark = pytest.mark.real_kafka

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS = {"super.users": "User:ANONYMOUS;User:admin"}
ALICE = ("--allow-principal", "User:alice")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, controller_kind: ControllerKind) -> Iterator[KafkaCluster]:
    """One broker with an authorizer; clients of its listener CLIENT have a name, brokers and tools are super users."""
    with_class = {"authorizer.class.name": STANDARD_AUTHORIZER}
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("acls"),
        controller=controller_kind,
        versions=(KAFKA_VERSION,),
        controller_properties=SUPER_USERS | (with_class if controller_kind == "kafka" else {}),
    )
    (broker,) = cluster.brokers.values()
    add_client_listener(broker)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = " ".join(f'user_{name}="{name}-password"' for name in ("alice", "admin"))
    broker.properties |= {
        **SUPER_USERS,
        **with_class,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": f"{module} {users};",
    }
    with cluster:
        yield cluster


def acls(cluster: KafkaCluster, *arguments: str, directly: bool = False) -> str:
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    if directly:
        server = ("--bootstrap-controller", cluster.controller.bootstrap)
    return KafkaTool("kafka-acls").run(*server, *arguments)


def client(cluster: KafkaCluster, user: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": login_address(cluster),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-password",
            "log_level": 0,
        }
    )


def refusal(futures: dict[str, Future[Any]]) -> str:
    """The name of the error of one request, "" for none."""
    (future,) = futures.values()
    try:
        future.result(20)
    except KafkaException as error:
        return str(error.args[0].name())
    return ""


def create(cluster: KafkaCluster, user: str, topic: str) -> str:
    admin = client(cluster, user)
    return refusal(admin.create_topics([NewTopic(topic, 1, 1)]))


def test_an_acl_lets_a_client_make_topics_until_it_is_removed(cluster: KafkaCluster) -> None:
    orders = ("--topic", "orders-", "--resource-pattern-type", "prefixed")
    assert create(cluster, "alice", "orders-1") == "TOPIC_AUTHORIZATION_FAILED"
    result = acls(cluster, "--add", *ALICE, "--operation", "Create", "--operation", "Alter", *orders)
    assert "(principal=User:alice, host=*, operation=CREATE, permissionType=ALLOW)" in result
    wait_until(lambda: create(cluster, "alice", "orders-1") == "", 60, "alice may create orders-1")
    assert create(cluster, "alice", "payments") == "TOPIC_AUTHORIZATION_FAILED"
    assert create(cluster, "admin", "payments") == ""
    admin = client(cluster, "alice")
    assert refusal(admin.create_partitions([NewPartitions("orders-1", 2)])) == ""
    assert refusal(admin.create_partitions([NewPartitions("payments", 2)])) == "TOPIC_AUTHORIZATION_FAILED"

    acls(cluster, "--add", "--deny-principal", "User:alice", "--operation", "Create", "--topic", "orders-2")
    wait_until(lambda: "DENY" in acls(cluster, "--list", "--topic", "orders-2"), 60, "the denial is listed")
    assert create(cluster, "alice", "orders-2") == "TOPIC_AUTHORIZATION_FAILED"
    assert create(cluster, "alice", "orders-3") == ""

    acls(cluster, "--remove", "--force", "--topic", "orders-9", "--resource-pattern-type", "match")
    wait_until(lambda: "alice" not in acls(cluster, "--list", *orders), 60, "the ACL is removed")
    assert create(cluster, "alice", "orders-4") == "TOPIC_AUTHORIZATION_FAILED"
    listed = acls(cluster, "--list")
    assert "operation=CREATE, permissionType=DENY" in listed
    assert "ALLOW" not in listed


def test_acls_are_managed_at_the_controller_too(cluster: KafkaCluster) -> None:
    in_cluster = ("--cluster", "--operation", "Create")
    result = acls(cluster, "--add", *ALICE, "--allow-host", "127.0.0.1", *in_cluster, directly=True)
    assert "resourceType=CLUSTER, name=kafka-cluster" in result
    wait_until(lambda: create(cluster, "alice", "anything") == "", 60, "alice may create")
    assert "host=127.0.0.1, operation=CREATE" in acls(cluster, "--list", "--cluster", directly=True)
    acls(cluster, "--remove", "--force", "--cluster", directly=True)
    wait_until(lambda: "alice" not in acls(cluster, "--list", "--cluster", directly=True), 60, "the ACL is removed")
    assert create(cluster, "alice", "more") == "TOPIC_AUTHORIZATION_FAILED"

"""The two ways to a cluster for Kafka's tools, and a listener for clients that log in."""

import pytest
from mockraft.kafka.child_process import free_port
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaBroker


@pytest.fixture
def by_broker(cluster: KafkaCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.bootstrap_servers


@pytest.fixture
def by_controller(cluster: KafkaCluster) -> tuple[str, str]:
    return "--bootstrap-controller", cluster.controller.bootstrap


@pytest.fixture(params=["by_broker", "by_controller"])
def bootstrap(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Once through a broker, once at the controller."""
    found: tuple[str, str] = request.getfixturevalue(request.param)
    return found


def add_client_listener(broker: KafkaBroker) -> None:
    """Let clients reach a broker that is not started yet with SASL, too, as its listener CLIENT."""
    broker.properties |= {
        "listeners": f"PLAINTEXT://{broker.bootstrap},CLIENT://127.0.0.1:{free_port()}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CLIENT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


def login_address(cluster: KafkaCluster) -> str:
    """The address of the listener CLIENT of the only broker."""
    (broker,) = cluster.brokers.values()
    return broker.properties["listeners"].rpartition("CLIENT://")[2]

"""SCRAM users and delegation tokens made with Kafka's tools on a real broker: valid until deleted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from mockraft.kafka.cluster import ControllerKind, KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaProcessError, KafkaTool, wait_until

from .conftest import add_client_listener, login_address

pytestmark = pytest.mark.real_kafka

_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_TOKEN_KEY = {"delegation.token.secret.key": "the key of all nodes"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, controller_kind: ControllerKind) -> Iterator[KafkaCluster]:
    """One broker, which clients reach without and, as its listener CLIENT, with SCRAM."""
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("login"),
        controller=controller_kind,
        versions=(KAFKA_VERSION,),
        controller_properties=_TOKEN_KEY,
    )
    (broker,) = cluster.brokers.values()
    add_client_listener(broker)
    broker.properties |= _TOKEN_KEY | {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.client.scram-sha-256.sasl.jaas.config": f"{_LOGIN_MODULE};",
        "listener.name.client.scram-sha-512.sasl.jaas.config": f"{_LOGIN_MODULE};",
    }
    with cluster:
        yield cluster


def configs(cluster: KafkaCluster, *arguments: str) -> str:
    users = ("--bootstrap-server", cluster.bootstrap_servers, "--entity-type", "users")
    return KafkaTool("kafka-configs").run(*users, *arguments)


def may_log_in(cluster: KafkaCluster, user: str, password: str, mechanism: str) -> bool:
    admin = AdminClient(
        {
            "bootstrap.servers": login_address(cluster),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
        }
    )
    try:
        return bool(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def test_a_user_is_made_logs_in_and_is_deleted(cluster: KafkaCluster) -> None:
    alice = ("--entity-name", "alice")
    for added in ("SCRAM-SHA-256=[iterations=8192,password=wonderland]", "SCRAM-SHA-512=[password=looking-glass]"):
        result = configs(cluster, "--alter", *alice, "--add-config", added)
        assert result.strip() == "Completed updating config for user alice."
    wait_until(lambda: may_log_in(cluster, "alice", "wonderland", "SCRAM-SHA-256"), 60, "alice logged in")
    assert may_log_in(cluster, "alice", "looking-glass", "SCRAM-SHA-512")
    assert not may_log_in(cluster, "alice", "looking-glass", "SCRAM-SHA-256")
    described = configs(cluster, "--describe", *alice)
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    configs(cluster, "--alter", *alice, "--delete-config", "SCRAM-SHA-256")
    wait_until(lambda: "SCRAM-SHA-256" not in configs(cluster, "--describe"), 60, "one credential gone")
    assert not may_log_in(cluster, "alice", "wonderland", "SCRAM-SHA-256")
    assert may_log_in(cluster, "alice", "looking-glass", "SCRAM-SHA-512")


def test_refusal_of_the_controller_is_reported(cluster: KafkaCluster) -> None:
    both = "SCRAM-SHA-256=[password=one],SCRAM-SHA-512=[password=two]"
    with pytest.raises(KafkaProcessError, match="cannot be altered twice in the same request"):
        configs(cluster, "--alter", "--entity-name", "bob", "--add-config", both)
    with pytest.raises(KafkaProcessError, match="credential that does not exist"):
        configs(cluster, "--alter", "--entity-name", "nobody", "--delete-config", "SCRAM-SHA-256")


@pytest.fixture
def as_user(cluster: KafkaCluster, tmp_path: Path) -> Callable[..., tuple[str, ...]]:
    """`as_user(name, password, **login)`: a tool's options that log in with SCRAM-SHA-256."""

    def options(name: str, password: str, **login: str) -> tuple[str, ...]:
        file = tmp_path / f"{name}.properties"
        given = " ".join(f'{key}="{value}"' for key, value in {"username": name, "password": password, **login}.items())
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            f"sasl.jaas.config={_LOGIN_MODULE} {given};\n"
        )
        return "--bootstrap-server", login_address(cluster), "--command-config", str(file)

    return options


def test_a_token_is_made_logs_in_is_renewed_and_ends(
    cluster: KafkaCluster, as_user: Callable[..., tuple[str, ...]]
) -> None:
    configs(cluster, "--alter", "--entity-name", "carol", "--add-config", "SCRAM-SHA-256=[password=secret]")
    wait_until(lambda: may_log_in(cluster, "carol", "secret", "SCRAM-SHA-256"), 60, "carol logged in")
    tokens, carol = KafkaTool("kafka-delegation-tokens"), as_user("carol", "secret")
    made = tokens.run(*carol, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:dave")
    token_id, token_hmac, *_ = made.strip().splitlines()[-1].split()
    assert re.search(r"User:carol\s.*User:dave", made)

    def described() -> str:
        return tokens.run(*carol, "--describe", "--owner-principal", "User:carol")

    wait_until(lambda: token_id in described(), 60, "the token described")
    bearer = as_user(token_id, token_hmac, tokenauth="true")
    assert KafkaTool("kafka-topics").run(*bearer, "--list").split() == []
    with pytest.raises(KafkaProcessError, match="Delegation Token requests are not allowed"):
        tokens.run(*bearer, "--create", "--max-life-time-period", "-1")
    renewed = tokens.run(*carol, "--renew", "--renew-time-period", "-1", "--hmac", token_hmac)
    assert "Completed renew operation" in renewed
    assert "Completed expire operation" in tokens.run(
        *carol, "--expire", "--expiry-time-period", "-1", "--hmac", token_hmac
    )
    wait_until(lambda: token_id not in described(), 60, "the token gone")

"""Controller listeners that are not PLAINTEXT: real brokers on ours, our clients on Kafka's."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaProcessError, KafkaTool, random_uuid, wait_until
from mockraft.kafka.security import ListenerSecurity
from mockraft.testing.controller import SyncController
from mockraft.wire import api_keys, client
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.sasl import SaslLogin

from ..clients import consume, create_topic, produce
from .running import running

pytestmark = pytest.mark.real_kafka

USERS = "SCRAM-SHA-512=[iterations=8192,password=carol-secret]"


@contextmanager
def broker_on(directory: Path, controller: SyncController, properties: Mapping[str, str]) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(
        1, directory, controller.cluster_id, controller.bootstrap, log_dir_count=1, properties=properties
    )
    broker.format()
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def test_broker_is_identified_by_its_certificate(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path / "security", "SSL", client_auth="required")
    # Nobody else is in charge of anything: the broker runs because the authorizer knows it by this name.
    with Controller.sync(**security.controller_options, super_users="User:CN=broker,O=mockraft") as controller:
        with broker_on(tmp_path / "broker", controller, security.broker_properties) as broker:
            broker.wait_until_running()
        exchanges = controller.journal.exchanges()
    assert {exchange.principal for exchange in exchanges} == {"User:CN=broker,O=mockraft"}
    (registered,) = [each.response for each in exchanges if each.api_key == api_keys.BROKER_REGISTRATION]
    assert registered.error_code == 0


def test_keystores_of_keytool_are_read_as_kafka_reads_them(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path / "security", "SSL", client_auth="required")
    trusted = tmp_path / "trusted.p12"
    keytool = ("keytool", "-noprompt", "-storepass", "changeit", "-storetype", "PKCS12")
    assert security.authority is not None
    imported = ("-importcert", "-alias", "ca", "-file", security.authority.certificate, "-keystore", trusted)
    subprocess.run([*keytool, *imported], check=True)
    stores = {}
    for holder in (security.controller_certificate, security.broker_certificate):
        stores[holder] = holder.keystore.with_suffix(".p12")
        exported = ("-in", holder.keystore, "-out", stores[holder], "-passout", "pass:changeit")
        subprocess.run(["openssl", "pkcs12", "-export", *exported], check=True)
    options = {
        **security.controller_options,
        "ssl_certificate_file": stores[security.controller_certificate],
        "ssl_key_file": None,
        "ssl_key_password": "changeit",
        "ssl_truststore_file": trusted,
        "ssl_truststore_password": "changeit",
    }
    broker_stores = {"keystore": stores[security.broker_certificate], "truststore": trusted}
    properties = {**security.broker_properties}
    for store, path in broker_stores.items():
        prefix = f"listener.name.controller.ssl.{store}"
        properties |= {f"{prefix}.type": "PKCS12", f"{prefix}.location": str(path), f"{prefix}.password": "changeit"}
    with Controller.sync(**options) as controller, broker_on(tmp_path / "b", controller, properties) as broker:
        broker.wait_until_running()
        assert {each.principal for each in controller.journal.exchanges()} == {"User:CN=broker,O=mockraft"}


def test_a_broker_logs_in_with_plain_over_tls(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path / "security", "SASL_SSL", mechanism="PLAIN")
    with Controller.sync(**security.controller_options, connections_max_reauth_ms=3_000) as controller:
        with broker_on(tmp_path / "broker", controller, security.broker_properties) as broker:
            broker.wait_until_running()
            # Every connection logs in again before three seconds are over.
            wait_until(lambda: reauthentications(controller) >= 2, 60, "a connection that logged in again")
        principals = {exchange.principal for exchange in controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)}
        assert principals == {"User:broker"}
        assert "broker-secret" not in "".join(controller.journal.json_lines())


def reauthentications(controller: SyncController) -> int:
    handshakes = controller.journal.exchanges(api_keys.SASL_HANDSHAKE)
    return len(handshakes) - len({exchange.connection_id for exchange in handshakes})


def test_a_broker_with_a_wrong_password_stays_outside(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path / "security", "SASL_PLAINTEXT", mechanism="SCRAM-SHA-512")
    options = security.controller_options
    security.password = "wrong"
    with (
        Controller.sync(**options) as controller,
        broker_on(tmp_path / "broker", controller, security.broker_properties) as broker,
    ):
        wait_until(lambda: controller.journal.closed_by_reason["authentication"] >= 2, 60, "two log-ins that failed")
        message = (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
        )
        broker.wait_for_log(message)
        assert {closed.reason for closed in controller.journal.closed()} == {
            "refused: SCRAM-SHA-512: wrong password of 'broker'"
        }
        assert controller.call(lambda: dict(controller.running.controller.image.cluster.brokers)) == {}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    security = ListenerSecurity(tmp_path_factory.mktemp("security"), "SASL_SSL", mechanism="SCRAM-SHA-512")
    return start_cluster(versions=(KAFKA_VERSION,) * 2, security=security)


def test_clients_are_served(cluster: Any) -> None:
    create_topic(cluster.bootstrap_servers, "topic", partitions=2, replicas=2)
    values = [f"value {number}" for number in range(20)]
    assert sorted(produce(cluster.bootstrap_servers, "topic", values)) == sorted(values)
    assert sorted(consume(cluster.bootstrap_servers, "topic")) == sorted(values)


def test_a_user_made_through_a_broker_may_log_in_at_the_controller(cluster: Any) -> None:
    configs, user = KafkaTool("kafka-configs"), ("--entity-type", "users", "--entity-name", "carol")
    configs.run("--bootstrap-server", cluster.brokers[1].bootstrap, "--alter", "--add-config", USERS, *user)
    assert status(cluster, "carol", "carol-secret").startswith("ClusterId:")
    with pytest.raises(KafkaProcessError, match="due to invalid credentials with SASL mechanism SCRAM-SHA-512"):
        status(cluster, "carol", "broker-secret")
    configs.run(
        "--bootstrap-server", cluster.brokers[1].bootstrap, "--alter", "--delete-config", "SCRAM-SHA-512", *user
    )
    with pytest.raises(KafkaProcessError, match="due to invalid credentials with SASL mechanism SCRAM-SHA-512"):
        status(cluster, "carol", "carol-secret")


def test_the_controllers_listener_is_registered_with_its_protocol(cluster: Any) -> None:
    if isinstance(cluster.controller, MockraftController):
        assert cluster.controller.data_dir is not None
        log = next(cluster.controller.data_dir.rglob("00000000000000000000.log"))
        dumped = KafkaTool("kafka-dump-log").run("--cluster-metadata-decoder", "--files", str(log))
        (record,) = [line for line in dumped.splitlines() if '"REGISTER_CONTROLLER_RECORD"' in line]
        payload = json.loads(record.partition("payload: ")[2])
        assert [endpoint["securityProtocol"] for endpoint in payload["data"]["endPoints"]] == [3]


def status(cluster: Any, user: str, password: str) -> str:
    security = cluster.security
    was = security.user, security.password
    security.user, security.password = user, password
    try:
        config = str(security.client_properties(f"{user}.properties"))
    finally:
        security.user, security.password = was
    return KafkaTool("kafka-metadata-quorum").run(
        "--bootstrap-controller", cluster.controller.bootstrap, "--command-config", config, "describe", "--status"
    )


SESSION_MS = 2_600
SESSION_PART_USED = 0.4
"""More than the second that must lie between two log-ins, and much less than the session."""


class Secured(NamedTuple):
    controller: KafkaController
    security: ListenerSecurity


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("kafka")
    security = ListenerSecurity(directory / "security", "SASL_SSL", mechanism="SCRAM-SHA-512", client_auth="required")
    properties = {
        **security.controller_properties,
        "listener.name.controller.scram-sha-512.connections.max.reauth.ms": str(SESSION_MS),
    }
    controller = KafkaController(directory / "controller", random_uuid(), properties=properties)
    with running(controller, *security.format_options):
        yield Secured(controller, security)


async def test_a_simulated_broker_runs_on_it(secured: Secured) -> None:
    controller, security = secured
    async with SimulatedBroker.joining(
        controller.bootstrap, controller.cluster_id, broker_id=1, security=security.client
    ) as broker:
        await broker.wait_until(BrokerState.RUNNING)
        assert broker.end is None


async def test_a_connection_outlives_its_sessions(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_SESSION_PART_USED", SESSION_PART_USED)
    controller, security = secured
    connection = await client.connect(controller.host, controller.port, security=security.client)
    loop = asyncio.get_running_loop()
    until_s = loop.time() + 1.2 * SESSION_MS / 1000
    while loop.time() < until_s:
        response = await connection.send(DescribeClusterRequest(endpoint_type=2))
        assert response.error_code == 0
    await connection.close()


async def test_wrong_password_is_reported(secured: Secured) -> None:
    controller, security = secured
    good = security.client
    login = SaslLogin("SCRAM-SHA-512", "broker", "wrong")
    wrong = ClientSecurity("SASL_SSL", good.truststore_file, good.keystore_file, login=login)
    with pytest.raises(client.AuthenticationFailedError, match="invalid credentials with SASL mechanism SCRAM-SHA-512"):
        await client.connect(controller.host, controller.port, security=wrong)


async def test_required_client_certificate_is_enforced(secured: Secured) -> None:
    controller, security = secured
    bare = ClientSecurity("SASL_SSL", security.client.truststore_file, login=security.client.login)
    with pytest.raises(client.DisconnectedError):
        await client.connect(controller.host, controller.port, security=bare)

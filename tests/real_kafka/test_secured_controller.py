"""Real brokers whose controller listener is not PLAINTEXT."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.double.controller import SyncController
from mockraft.double.process import MockraftController
from mockraft.kafka.processes import KafkaBroker, KafkaProcessError, KafkaTool, wait_until
from mockraft.kafka.security import ListenerSecurity
from mockraft.wire import api_keys

from ..clients import consume, create_topic, produce

pytestmark = pytest.mark.real_kafka

USERS = "SCRAM-SHA-512=[iterations=8192,password=carol-secret]"


@contextmanager
def broker_on(directory: Path, controller: SyncController, security: ListenerSecurity) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(
        1,
        directory,
        controller.cluster_id,
        controller.bootstrap,
        log_dir_count=1,
        properties=security.broker_properties,
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
        with broker_on(tmp_path / "broker", controller, security) as broker:
            broker.wait_until_running()
        exchanges = controller.journal.exchanges()
    assert {exchange.principal for exchange in exchanges} == {"User:CN=broker,O=mockraft"}
    (registered,) = [each.response for each in exchanges if each.api_key == api_keys.BROKER_REGISTRATION]
    assert registered.error_code == 0


def test_a_broker_logs_in_with_plain_over_tls(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path / "security", "SASL_SSL", mechanism="PLAIN")
    with Controller.sync(**security.controller_options, connections_max_reauth_ms=3_000) as controller:
        with broker_on(tmp_path / "broker", controller, security) as broker:
            broker.wait_until_running()
            # Every connection logs in again before three seconds are over.
            wait_until(lambda: reauthentications(controller) >= 2, 20, "a connection that logged in again")
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
    with Controller.sync(**options) as controller, broker_on(tmp_path / "broker", controller, security) as broker:
        wait_until(lambda: controller.journal.closed_by_reason["authentication"] >= 2, 30, "two log-ins that failed")
        told = (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
        )
        broker.wait_for_log(told)
        assert {closed.reason for closed in controller.journal.closed()} == {
            "refused: SCRAM-SHA-512: wrong password of 'broker'"
        }
        assert controller.call(lambda: dict(controller.running.controller.image.cluster.brokers)) == {}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    security = ListenerSecurity(tmp_path_factory.mktemp("security"), "SASL_SSL", mechanism="SCRAM-SHA-512")
    return start_cluster(versions=("4.3.1",) * 2, security=security)


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

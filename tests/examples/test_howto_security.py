"""Examples for docs/security.md: TLS and SASL."""

from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, Quorum, SimulatedBroker
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.processes import KafkaTool
from mockraft.kafka.security import ListenerSecurity
from mockraft.wire import api_keys, client
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.sasl import SaslLogin


async def test_simulated_broker_authenticates(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path, "SASL_SSL", mechanism="SCRAM-SHA-512", user="broker", password="s3cret")
    async with (
        Controller(**security.controller_options) as controller,
        SimulatedBroker.joining(
            controller.bootstrap, controller.cluster_id, broker_id=1, security=security.client
        ) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)

        (registration,) = controller.journal.exchanges(api_keys.BROKER_REGISTRATION)
        assert registration.principal == "User:broker"


async def test_wrong_password_is_refused_without_reason() -> None:
    async with Controller(
        security_protocol="SASL_PLAINTEXT", sasl_enabled_mechanisms=("PLAIN",), plain_users={"alice": "s3cret"}
    ) as controller:
        wrong = ClientSecurity("SASL_PLAINTEXT", login=SaslLogin("PLAIN", "alice", "secret"))
        with pytest.raises(client.AuthenticationFailedError, match="Invalid username or password"):
            await client.connect(controller.host, controller.port, security=wrong)

        assert controller.journal.closed()[-1].reason == "refused: PLAIN: wrong password of 'alice'"


@pytest.mark.real_kafka
def test_real_brokers_authenticate_with_certificates(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path / "certificates", "SSL", client_auth="required")
    with KafkaCluster(tmp_path / "cluster", versions=("4.3.1",), security=security) as cluster:
        status = KafkaTool("kafka-metadata-quorum").run(
            "--bootstrap-controller",
            cluster.controller.bootstrap,
            "--command-config",
            str(security.client_properties()),
            "describe",
            "--status",
        )
        assert '"id": 1' in status


async def test_controllers_of_a_quorum_authenticate(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path, "SASL_SSL", mechanism="PLAIN")
    async with Quorum(3, **security.controller_options, client_security=security.client) as quorum:
        assert quorum.active is not None
        fetches = quorum.node(quorum.active).node.journal.exchanges(api_keys.FETCH)
        assert {fetch.principal for fetch in fetches} == {"User:broker"}

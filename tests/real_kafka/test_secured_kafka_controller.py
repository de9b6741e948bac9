"""The client's side of TLS and SASL, ours, on Kafka's own controller."""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from mockraft import BrokerState, SimulatedBroker
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.kafka.security import ListenerSecurity
from mockraft.wire import client
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.sasl import SaslLogin

pytestmark = pytest.mark.real_kafka

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
    controller.format(*security.format_options)
    controller.start()
    try:
        controller.wait_until_running()
        yield Secured(controller, security)
    finally:
        controller.kill()


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

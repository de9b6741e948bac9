"""The security of simulated brokers: principals of their clients, and logins that cannot work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.kafka.security import ListenerSecurity, Mechanism
from mockraft.wire import client, error_codes
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import endpoint_of
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from mockraft.wire.sasl import SaslLogin


async def connected(controller: Controller, security: ClientSecurity) -> client.KafkaConnection:
    return await client.connect(*endpoint_of(controller.bootstrap_servers), client_id="shop", security=security)


async def test_the_name_in_a_clients_certificate_goes_with_its_forwarded_requests(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path, "SSL", client_auth="required")
    rules = "RULE:^CN=(.*?),.*$/$1/U, DEFAULT"
    options = {**security.controller_options, "ssl_principal_mapping_rules": rules}
    async with Controller(brokers=1, **options) as controller:
        connection = await connected(controller, security.client)
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        created = await connection.send(CreateTopicsRequest(topics=[topic]))
        await connection.close()
        assert created.topics[0].error_code == error_codes.NONE
        assert {each.principal for each in controller.requests("CreateTopics")} == {"User:BROKER"}
        assert controller.requests("BrokerRegistration")[0].principal == "User:CONTROLLER"


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
async def test_only_a_client_that_has_logged_in_may_ask_for_tokens(tmp_path: Path, mechanism: Mechanism) -> None:
    security = ListenerSecurity(tmp_path, "SASL_PLAINTEXT", mechanism=mechanism)
    async with Controller(brokers=1, **security.controller_options) as controller:
        connection = await connected(controller, security.client)
        requests = (CreateDelegationTokenRequest(), DescribeDelegationTokenRequest())
        codes = [(await connection.send(each)).error_code for each in requests]  # type: ignore[attr-defined]
        await connection.close()
        assert codes == [error_codes.DELEGATION_TOKEN_AUTH_DISABLED] * 2
        created = controller.requests("CreateDelegationToken")[-1]
        assert created.forwarded_by == 1
        assert created.principal == "User:broker"


async def test_a_broker_that_cannot_log_in_is_not_waited_for(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path, "SASL_SSL", mechanism="PLAIN")
    ca = security.controller_options["ssl_truststore_file"]
    rows = {
        "Invalid username or password": ClientSecurity("SASL_SSL", ca, login=SaslLogin("PLAIN", "broker", "no")),
        "certificate verify failed": ClientSecurity("SASL_SSL", login=SaslLogin("PLAIN", "broker", "broker-secret")),
    }
    for reason, wrong in rows.items():
        with pytest.raises(RuntimeError, match=f"broker 1 cannot log in to its controller: .*{reason}"):
            await _start(brokers=1, **security.controller_options, client_security=wrong)
    with pytest.raises(ValueError, match="there is no user: give plain_users, scram_users, or client_security"):
        await _start(brokers=1, **{**security.controller_options, "plain_users": {}})
    with pytest.raises(ValueError, match="client_security: it is for PLAINTEXT"):
        Controller(**security.controller_options, client_security=ClientSecurity())
    other = ClientSecurity("SASL_SSL", ca, login=SaslLogin("SCRAM-SHA-256", "broker", "broker-secret"))
    with pytest.raises(ValueError, match=r"it logs in with SCRAM-SHA-256, .* sasl_enabled_mechanisms=PLAIN"):
        Controller(**security.controller_options, client_security=other)
    with pytest.raises(ValueError, match=r"security: it is for PLAINTEXT, .* security_protocol=SASL_SSL"):
        async with Controller(**security.controller_options) as controller:
            await controller.start_broker(1, security=None)
    required = {**security.controller_options, "ssl_client_auth": "required"}
    with pytest.raises(ValueError, match=r"it has no keystore_file, .* ssl_client_auth=required"):
        Controller(**required, client_security=rows["certificate verify failed"])


async def test_where_one_side_alone_has_tls_the_client_asks_about_it(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path, "SSL")
    for options, own, why in (
        (security.controller_options, ClientSecurity(), "before it answered ApiVersions; does it expect TLS"),
        ({}, security.client, "closed by the other side in TLS's handshake; does it have TLS"),
    ):
        async with Controller(**options) as controller:
            with pytest.raises(client.DisconnectedError, match=why):
                await client.connect(controller.host, controller.port, security=own)


async def test_a_broker_without_the_login_of_its_controller_is_not_waited_for(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path, "SASL_PLAINTEXT", mechanism="PLAIN")
    async with Controller(**security.controller_options) as controller:
        broker = SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1)
        broker.start()
        with pytest.raises(RuntimeError, match=r"does it expect SASL\?; give it security="):
            await broker.wait_until(BrokerState.RUNNING)
        await broker.kill()


async def _start(**options: Any) -> None:
    async with Controller(**options):
        pass

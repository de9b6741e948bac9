"""Options of the controller, the releases that it can be, and its APIs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.releases import release
from mockraft.server.apis.registry import APIS
from mockraft.server.config import BOUNDS, ControllerConfig
from mockraft.server.controller.settings.offers import read_ranges
from mockraft.wire import api_keys, client, error_codes, messages
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.sasl import SaslLogin
from mockraft.wire.scram import ScramUser

from ..rows import each_row
from .conftest import OFFERED

ROOT = Path(__file__).parents[2]


@each_row(
    ("option", "value"),
    [
        ("node_id", -1),
        ("port", 65_536),
        ("advertised_port", 0),
        ("metadata_version", 6),
        ("metadata_version", 34),
        ("session_timeout_ms", 0),
        ("leader_imbalance_check_interval_seconds", 0),
        ("unclean_leader_election_interval_ms", 0),
        ("num_partitions", 0),
        ("frame_bytes_max", 63),
        ("cluster_id", ""),
        ("cluster_id", "with space"),
        ("session_timeout_ms", "1500"),
        ("num_partitions", True),
        ("delete_topic_enable", "no"),
    ],
)
def test_an_option_out_of_range_is_named(option: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{option}={value!r}: "):
        ControllerConfig(**{option: value})


# The range of metadata_version is its release's.
@each_row("option", sorted(set(BOUNDS) - {"metadata_version"}))
def test_both_ends_of_a_range_are_in_it(option: str) -> None:
    for value in BOUNDS[option]:
        options: dict[str, Any] = {option: value}
        assert getattr(ControllerConfig(**options), option) == value


def test_a_seed_may_be_any_number() -> None:
    assert ControllerConfig(seed=-5).seed == -5


NOWHERE = Path("/nowhere.pem")


@each_row(
    ("options", "reason"),
    [
        ({"security_protocol": "ssl"}, "security_protocol='ssl': it must be PLAINTEXT or SSL"),
        ({"security_protocol": "SASL_SSL"}, "needs sasl_enabled_mechanisms"),
        (
            {"security_protocol": "SSL", "ssl_certificate_file": Path("/c"), "ssl_key_file": Path("/k")},
            "/c: No such file",
        ),
        ({"sasl_enabled_mechanisms": ("plain",)}, "sasl_enabled_mechanisms='plain'"),
        ({"plain_users": {"": "x"}}, "plain_users"),
        ({"plain_users": {"alice": ""}}, "plain_users"),
        ({"scram_users": (ScramUser("alice", ""),)}, "scram_users"),
        ({"scram_users": (ScramUser("alice", "a", "MD5"),)}, "scram_users: mechanism='MD5'"),
        ({"scram_users": (ScramUser("alice", "a", iterations=4095),)}, "iterations of alice must be 4096 to 16384"),
        ({"scram_users": (ScramUser("alice", "a"),), "metadata_version": 10}, "need metadata_version 11"),
    ],
)
def test_security_options_that_do_not_go_together_are_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        ControllerConfig(**options)


def test_passwords_are_not_shown() -> None:
    login = SaslLogin("PLAIN", "alice", "secret-1")
    config = ControllerConfig(
        security_protocol="SASL_PLAINTEXT",
        sasl_enabled_mechanisms=("PLAIN",),
        plain_users={"alice": "secret-1"},
        scram_users=(ScramUser("bob", "secret-2"),),
        delegation_token_secret_key="secret-3",
        client_security=ClientSecurity("SASL_PLAINTEXT", login=login),
    )
    assert "secret-" not in repr(config)


ASK = ApiVersionsRequest(client_software_name="test", client_software_version="1")


async def said_by(controller: Controller, version: int = 3) -> Any:
    connection = await client.connect(controller.host, controller.port, client_id="test")
    answer = await connection.send(ASK, version=version)
    await connection.close()
    return answer


def ranges(answer: Any) -> dict[int, tuple[int, int]]:
    return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}


def test_the_page_of_the_listener_names_every_api() -> None:
    page = (ROOT / "docs/reference/listener.md").read_text()
    listed = page.partition("Kafka's controller: ")[2].partition(". Envelope")[0]
    assert sorted(re.findall(r"\w+", listed)) == sorted(map(api_keys.name, APIS))


@pytest.mark.parametrize("name", ["3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4"])
async def test_api_versions_are_those_of_the_release(name: str) -> None:
    async with Controller(release=name) as controller:
        assert ranges(await said_by(controller)) == release(name).api_versions
        # ControlledShutdown is offered by Kafka before 4.0, which refuses it when it comes.
        assert set(release(name).api_versions) - set(APIS) <= {7}


@pytest.mark.parametrize(("name", "level", "kraft"), [("3.9.1", 21, ["kraft.version"]), ("3.7", 19, [])])
async def test_features_are_those_of_the_release_and_new_logs_begin_with_them(
    name: str, level: int, kraft: list[str]
) -> None:
    async with Controller(as_version=name) as controller:
        answer = await said_by(controller)
        assert {row.name: row.max_version for row in answer.supported_features} == {"metadata.version": level}
        finalized = {row.name: row.max_version_level for row in answer.finalized_features}
        assert finalized["metadata.version"] == level
        assert sorted(finalized) == [*kraft, "metadata.version"]


async def test_a_request_that_the_release_has_not_closes_its_connection_as_kafka_does() -> None:
    async with Controller(as_version="3.9") as controller:
        connection = await client.connect(controller.host, controller.port, client_id="test")
        with pytest.raises(client.DisconnectedError):
            await connection.send(BrokerHeartbeatRequest(broker_id=1), version=2)
        reasons = [line.reason for line in controller.journal.closed()]
        assert reasons == ["refused: BrokerHeartbeat (63) has no version 2 here; it has 0 to 1"]


async def test_unsupported_version_of_api_versions_is_answered_with_the_releases_ranges() -> None:
    async with Controller(as_version="3.8") as controller:
        answer = await said_by(controller, version=3)
        assert ranges(answer)[18] == (0, 3)
        connection = await client.connect(controller.host, controller.port, client_id="test")
        assert connection.api_versions[18] == (0, 3)
        await connection.close()


async def test_single_apis_offer_the_configured_versions() -> None:
    result: dict[Any, Any] = {"BrokerHeartbeat": "0-1", 1: (12, 16), "Vote": "off"}
    async with Controller(api_versions=result) as controller:
        found = ranges(await said_by(controller))
        assert found[63] == (0, 1)
        assert found[1] == (12, 16)
        assert 52 not in found
        assert found[62] == (0, APIS[62].max_version)


async def test_it_may_change_while_the_controller_runs_and_outlives_a_restart() -> None:
    async with Controller() as controller:
        controller.as_version("3.9", {"Fetch": "4-16"})
        assert ranges(await said_by(controller))[1] == (4, 16)
        controller.restart_in_place()
        assert ranges(await said_by(controller))[63] == (0, 1)
        controller.as_version(None)
        assert ranges(await said_by(controller)) == dict(release().api_versions)


async def test_simulated_brokers_run_on_each_release() -> None:
    async with Controller(as_version="3.9", brokers=2) as controller:
        assert [broker.fenced for broker in controller.state.brokers()] == [False, False]


@each_row(
    ("make", "complaint"),
    [
        (
            lambda: Controller(as_version="2.8"),
            r"'2.8' is not a Kafka release that mockraft knows: 3\.7, 3\.8, 3\.9, 4\.0, 4\.1, 4\.2, 4\.3, 4\.4",
        ),
        (lambda: Controller(as_version="3.9", metadata_version=30), "metadata_version=30: controllers of Kafka 3.9"),
        (
            lambda: Controller(as_version="4.1", controller_quorum_auto_join_enable=True),
            "Kafka 4.1 has no such property",
        ),
        (lambda: Controller(api_versions={"Fetsch": "1-2"}), "there is no API Fetsch"),
        (lambda: Controller(api_versions={"Fetch": "2-1"}), "Fetch=2-1: needs MIN <= MAX"),
        (lambda: read_ranges({"Fetch": "one"}), "Fetch=one: must be MIN-MAX"),
    ],
)
def test_invalid_release_is_refused(make: Callable[[], Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()


FORWARDABLE = {19, 20, 37, 30, 31, 33, 44, 38, 39, 40, 43, 45, 46, 49, 51, 55, 57, 64, 67, 80, 81, 94}
"""ApiKeys.forwardable of Kafka 4.4.0."""


def test_every_api_of_this_listener_is_in_order_and_under_its_own_key() -> None:
    assert list(APIS) == sorted(APIS)
    for key, api in APIS.items():
        assert api.api_key == key
        assert api.request is messages.request(key)
        assert api.response is messages.response(key)
        assert api.request.min_version <= api.min_version <= api.max_version <= api.request.max_version


def test_forwarded_apis_equal_kafkas() -> None:
    assert {key for key, api in APIS.items() if api.forwardable} == FORWARDABLE & set(APIS)


@each_row("key", sorted(APIS))
def test_the_error_form_can_be_written_in_every_version(key: int) -> None:
    api = APIS[key]
    for version in range(api.min_version, api.max_version + 1):
        request = api.request.read(api.request().write(version), version)
        response = api.error(request, error_codes.UNKNOWN_SERVER_ERROR, "why")
        assert api.response.read(response.write(version), version) is not None


@pytest.mark.parametrize("key", sorted(OFFERED), ids=api_keys.name)
def test_every_api_takes_its_default_request_in_every_version(rig: Any, key: int) -> None:
    api = OFFERED[key]
    # Kafka refuses the defaults of DescribeAcls, which say UNKNOWN.
    filters = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
    request = api.request(**filters) if api.request is DescribeAclsRequest else api.request()
    for version in range(api.min_version, api.max_version + 1):
        rig.send(rig.connect(), rig.frame(request, version))
        assert rig.closes() == []
        assert rig.sends() or rig.node.parked
    assert [exchange.failure for exchange in rig.node.journal.exchanges() if exchange.failure] == []

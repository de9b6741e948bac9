"""Passing for a controller of another release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mockraft import Controller
from mockraft.server.apis.offered import offered
from mockraft.server.apis.registry import APIS
from mockraft.server.controller.settings.releases import Offer, api_ranges, read_ranges
from mockraft.wire import client
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

ASK = ApiVersionsRequest(client_software_name="test", client_software_version="1")


async def said_by(controller: Controller, version: int = 3) -> Any:
    connection = await client.connect(controller.host, controller.port, client_id="test")
    answer = await connection.send(ASK, version=version)
    await connection.close()
    return answer


def ranges(answer: Any) -> dict[int, tuple[int, int]]:
    return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}


def test_newest_release_profile_equals_the_default() -> None:
    assert offered(APIS, Offer("4.3")) == APIS


@pytest.mark.parametrize("release", ["3.7", "3.8", "3.9", "4.0", "4.1", "4.2"])
async def test_api_versions_are_those_of_the_release(release: str) -> None:
    async with Controller(as_version=release) as controller:
        expected = {key: versions for key, versions in api_ranges(release).items() if key in APIS}
        assert ranges(await said_by(controller)) == expected
        # ControlledShutdown is offered by Kafka before 4.0, which refuses it when it comes.
        assert set(api_ranges(release)) - set(expected) <= {7}


async def test_features_are_those_of_the_release_and_new_logs_begin_with_them() -> None:
    async with Controller(as_version="3.9.1") as controller:
        answer = await said_by(controller)
        assert {row.name: row.max_version for row in answer.supported_features} == {"metadata.version": 21}
        assert {row.name: row.max_version_level for row in answer.finalized_features}["metadata.version"] == 21


async def test_a_release_without_dynamic_quorums_omits_kraft_version() -> None:
    async with Controller(as_version="3.7") as controller:
        answer = await said_by(controller)
        assert [row.name for row in answer.finalized_features] == ["metadata.version"]


async def test_a_request_that_the_release_has_not_closes_its_connection_as_kafka_does() -> None:
    async with Controller(as_version="3.9") as controller:
        connection = await client.connect(controller.host, controller.port, client_id="test")
        with pytest.raises(client.DisconnectedError):
            await connection.send(BrokerHeartbeatRequest(broker_id=1), version=2)
        reasons = [line.reason for line in controller.journal.closed()]
        assert reasons == ["refused: BrokerHeartbeat (63) has no version 2 here"]


async def test_unsupported_version_of_api_versions_is_answered_with_the_releases_ranges() -> None:
    async with Controller(as_version="3.8") as controller:
        answer = await said_by(controller, version=3)
        assert ranges(answer)[18] == (0, 3)
        connection = await client.connect(controller.host, controller.port, client_id="test")
        assert connection.api_versions[18] == (0, 3)
        await connection.close()


async def test_single_apis_offer_the_configured_versions() -> None:
    told: dict[Any, Any] = {"BrokerHeartbeat": "0-1", 1: (12, 16), "Vote": "off"}
    async with Controller(api_versions=told) as controller:
        found = ranges(await said_by(controller))
        assert found[63] == (0, 1)
        assert found[1] == (12, 16)
        assert 52 not in found
        assert found[62] == (0, APIS[62].max_version)


async def test_it_may_change_while_the_controller_runs_and_outlives_a_restart() -> None:
    async with Controller() as controller:
        controller.double.as_version("3.9", {"Fetch": "4-16"})
        assert ranges(await said_by(controller))[1] == (4, 16)
        controller.double.restart()
        assert ranges(await said_by(controller))[63] == (0, 1)
        controller.double.as_version(None)
        assert ranges(await said_by(controller)) == ranges_of(APIS)


def ranges_of(apis: Any) -> dict[int, tuple[int, int]]:
    return {key: (api.min_version, api.max_version) for key, api in apis.items()}


async def test_simulated_brokers_run_on_each_release() -> None:
    async with Controller(as_version="3.9", brokers=2) as controller:
        assert [broker.fenced for broker in controller.double.state.brokers()] == [False, False]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (
            lambda: Controller(as_version="2.8"),
            r"as_version='2.8': known releases are 3\.7, 3\.8, 3\.9, 4\.0, 4\.1, 4\.2, 4\.3",
        ),
        (lambda: Controller(as_version="3.9", metadata_version=30), "metadata_version=30: controllers of Kafka 3.9"),
        (lambda: Controller(api_versions={"Fetsch": "1-2"}), "there is no API Fetsch"),
        (lambda: Controller(api_versions={"Fetch": "2-1"}), "Fetch=2-1: needs MIN <= MAX"),
        (lambda: read_ranges({"Fetch": "one"}), "Fetch=one: must be MIN-MAX"),
    ],
)
def test_invalid_release_is_refused(make: Callable[[], Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()

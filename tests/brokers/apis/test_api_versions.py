"""ApiVersions of a broker; beside a real one's in tests/real_kafka."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.brokers.apis.registry import APIS
from mockraft.wire import api_keys, error_codes
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

ASKED = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")


def test_what_is_served_is_what_is_told(cluster: Any) -> None:
    response = cluster.ask(ASKED)
    assert {each.api_key: (each.min_version, each.max_version) for each in response.api_keys} == {
        api_key: api.versions for api_key, api in APIS.items()
    }


def test_finalized_features_come_from_the_log(cluster: Any) -> None:
    cluster.apply(FeatureLevelRecord(name="group.version", feature_level=1))
    cluster.apply(FeatureLevelRecord(name="share.version", feature_level=1))
    cluster.apply(FeatureLevelRecord(name="share.version", feature_level=0))
    response = cluster.ask(ASKED)
    told = {each.name: each.max_version_level for each in response.finalized_features}
    assert told == {"metadata.version": 30, "group.version": 1, "kraft.version": 1}
    assert response.finalized_features_epoch == 41


@pytest.mark.parametrize(("version", "names"), [(3, {"metadata.version"}), (4, None)])
def test_features_that_may_be_off_are_told_from_version_4_on(
    cluster: Any, version: int, names: set[str] | None
) -> None:
    response = cluster.ask(ASKED, version)
    told = {each.name for each in response.supported_features}
    assert told == (names or set(cluster.broker.config.features))


def test_a_client_must_name_its_software_properly(cluster: Any) -> None:
    response = cluster.ask(ApiVersionsRequest(client_software_name="-", client_software_version="1"))
    assert (response.error_code, response.api_keys) == (error_codes.INVALID_REQUEST, [])


def test_of_what_a_controller_answers_only_what_it_has_is_told(cluster: Any) -> None:
    cluster.broker.forwarding.api_versions = {api_keys.CREATE_TOPICS: (0, 6), api_keys.METADATA: (0, 1)}
    told = {each.api_key: each for each in (cluster.ask(ASKED)).api_keys}
    assert told[api_keys.METADATA].max_version == 13
    assert (told[api_keys.CREATE_TOPICS].min_version, told[api_keys.CREATE_TOPICS].max_version) == (2, 6)
    assert api_keys.DELETE_TOPICS not in told

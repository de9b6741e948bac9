"""ApiVersions and other describe requests, answered from the image (quotas, credentials, configs) or always refused."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.brokers.apis.registry import ALL, APIS
from mockraft.wire import api_keys, error_codes
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from mockraft.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from mockraft.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from mockraft.wire.messages.list_config_resources_request import ListConfigResourcesRequest
from mockraft.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.records.client_quota_record import ClientQuotaRecord, EntityData
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord


def quota(value: float, remove: bool = False, **entity: str | None) -> ClientQuotaRecord:
    parts = [EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()]
    return ClientQuotaRecord(entity=parts, key="producer_byte_rate", value=value, remove=remove)


def part(kind: str, how: int, match: str | None = None) -> ComponentData:
    return ComponentData(entity_type=kind, match_type=how, match=match)


@pytest.fixture
def quotas(cluster: Any) -> Any:
    cluster.apply(
        quota(1, user="u"),
        quota(2, user="u", client_id="c"),
        quota(3, user=None),
        quota(4, ip="1.2.3.4"),
        quota(5, user="gone"),
    )
    cluster.apply(quota(5, remove=True, user="gone"))
    return cluster


@pytest.mark.parametrize(
    ("components", "strict", "values"),
    [
        ([], False, {1, 2, 3, 4}),
        ([], True, set()),
        ([part("user", 0, "u")], False, {1, 2}),
        ([part("user", 0, "u")], True, {1}),
        ([part("user", 1)], True, {3}),
        ([part("user", 2)], False, {1, 2, 3}),
        ([part("user", 2), part("client-id", 0, "c")], True, {2}),
        ([part("ip", 2)], False, {4}),
    ],
)
def test_quotas_match_as_kafka_matches(quotas: Any, components: list[Any], strict: bool, values: set[float]) -> None:
    response = quotas.ask(DescribeClientQuotasRequest(components=components, strict=strict))
    assert {each.values[0].value for each in response.entries} == values


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([part("", 0, "u")], "INVALID_REQUEST", "Invalid empty entity type."),
        ([part("user", 2), part("user", 1)], "INVALID_REQUEST", "cannot appear more than once"),
        ([part("group", 2)], "UNSUPPORTED_VERSION", "Unsupported entity type group"),
        ([part("user", 0)], "INVALID_REQUEST", "set match string to null"),
        ([part("user", 1, "u")], "INVALID_REQUEST", "MATCH_TYPE_DEFAULT, but also"),
        ([part("user", 2, "u")], "INVALID_REQUEST", "MATCH_TYPE_SPECIFIED, but also"),
        ([part("user", 7)], "INVALID_REQUEST", "Unknown match type 7"),
        ([part("ip", 2), part("user", 2)], "INVALID_REQUEST", "IP filter component should not be used"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(quotas: Any, components: list[Any], code: str, message: str) -> None:
    response = quotas.ask(DescribeClientQuotasRequest(components=components))
    assert (response.error_code, response.entries) == (getattr(error_codes, code), None)
    assert message in response.error_message


def test_scram_credentials_are_returned_without_their_secrets(cluster: Any) -> None:
    for mechanism in (2, 1):
        cluster.apply(UserScramCredentialRecord(name="u", mechanism=mechanism, iterations=4096 * mechanism))
    cluster.apply(UserScramCredentialRecord(name="v", mechanism=1, iterations=4096))
    cluster.apply(RemoveUserScramCredentialRecord(name="v", mechanism=1))
    (result,) = (cluster.ask(DescribeUserScramCredentialsRequest(users=None))).results
    assert [(each.mechanism, each.iterations) for each in result.credential_infos] == [(1, 4096), (2, 8192)]
    users = [UserName(name=name) for name in ("u", "v", "w", "w")]
    response = cluster.ask(DescribeUserScramCredentialsRequest(users=users))
    assert [(each.user, each.error_code) for each in response.results] == [
        ("u", 0),
        ("v", error_codes.RESOURCE_NOT_FOUND),
        ("w", error_codes.DUPLICATE_RESOURCE),
    ]


def test_config_resources_are_listed_by_type(cluster: Any) -> None:
    cluster.register(1)
    cluster.create("t", {"replicas": [1]})
    cluster.apply(ConfigRecord(resource_type=16, resource_name="m", name="interval.ms", value="100"))
    cluster.apply(ConfigRecord(resource_type=32, resource_name="g", name="consumer.session.timeout.ms", value="45000"))

    def listed(version: int, *types: int) -> list[tuple[int, str]]:
        response = cluster.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
        return [(each.resource_type, each.resource_name) for each in response.config_resources]

    assert listed(0) == [(16, "m")]
    assert listed(1) == [(32, "g"), (16, "m"), (8, "1"), (4, "1"), (2, "t")]
    assert listed(1, 2, 4) == [(4, "1"), (2, "t")]
    response = cluster.ask(ListConfigResourcesRequest(resource_types=[99]))
    assert response.error_code == error_codes.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (SaslHandshakeRequest(mechanism="PLAIN"), error_codes.ILLEGAL_SASL_STATE),
        (SaslAuthenticateRequest(auth_bytes=b""), error_codes.ILLEGAL_SASL_STATE),
        (DescribeAclsRequest(resource_type_filter=2), error_codes.SECURITY_DISABLED),
        (RenewDelegationTokenRequest(hmac=b"h"), error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (ExpireDelegationTokenRequest(hmac=b"h"), error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (DescribeDelegationTokenRequest(owners=None), error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    ],
)
def test_what_needs_a_log_in_or_an_authorizer_is_refused(cluster: Any, request_: Any, code: int) -> None:
    assert (cluster.ask(request_)).error_code == code


@pytest.mark.parametrize(("owner", "expected"), [("", "ANONYMOUS"), ("somebody", "somebody")])
def test_a_token_is_refused_with_its_owner_and_requester(cluster: Any, owner: str, expected: str) -> None:
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name=owner, max_lifetime_ms=-1)
    response = cluster.ask(request)
    assert response.error_code == error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (response.principal_name, response.token_requester_principal_name) == (expected, "ANONYMOUS")
    assert response.expiry_timestamp_ms == -1


def test_each_api_is_in_the_table_once_with_its_response() -> None:
    assert len(APIS) == len(ALL)
    assert [key for key, api in APIS.items() if api.response.api_key != key] == []


ASKED = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")


def test_the_served_apis_are_those_returned(cluster: Any) -> None:
    response = cluster.ask(ASKED)
    assert {each.api_key: (each.min_version, each.max_version) for each in response.api_keys} == {
        api_key: api.versions for api_key, api in APIS.items()
    }


def test_finalized_features_come_from_the_log(cluster: Any) -> None:
    cluster.apply(FeatureLevelRecord(name="group.version", feature_level=1))
    cluster.apply(FeatureLevelRecord(name="share.version", feature_level=1))
    cluster.apply(FeatureLevelRecord(name="share.version", feature_level=0))
    response = cluster.ask(ASKED)
    result = {each.name: each.max_version_level for each in response.finalized_features}
    assert result == {"metadata.version": 30, "group.version": 1, "kraft.version": 1}
    assert response.finalized_features_epoch == 41


@pytest.mark.parametrize(("version", "names"), [(3, {"metadata.version"}), (4, None)])
def test_features_that_may_be_off_are_returned_from_version_4_on(
    cluster: Any, version: int, names: set[str] | None
) -> None:
    response = cluster.ask(ASKED, version)
    result = {each.name for each in response.supported_features}
    assert result == (names or set(cluster.broker.config.features))


def test_a_client_must_name_its_software_properly(cluster: Any) -> None:
    response = cluster.ask(ApiVersionsRequest(client_software_name="-", client_software_version="1"))
    assert (response.error_code, response.api_keys) == (error_codes.INVALID_REQUEST, [])


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        ("a-cluster", 1, error_codes.NONE),
        ("a-cluster", 2, error_codes.REBOOTSTRAP_REQUIRED),
        ("b-cluster", 1, error_codes.REBOOTSTRAP_REQUIRED),
        ("a-cluster", -1, error_codes.INVALID_REQUEST),
        (None, 1, error_codes.INVALID_REQUEST),
        (None, -1, error_codes.NONE),
    ],
)
def test_a_client_of_another_broker_must_bootstrap_again(
    cluster: Any, cluster_id: str | None, node_id: int, code: int
) -> None:
    request = ApiVersionsRequest(
        client_software_name="test", client_software_version="1", cluster_id=cluster_id, node_id=node_id
    )
    response = cluster.ask(request, 5)
    assert (response.error_code, response.api_keys == []) == (code, code != error_codes.NONE)


def test_forwarded_apis_are_those_of_the_controller(cluster: Any) -> None:
    cluster.broker.forwarding.api_versions = {api_keys.CREATE_TOPICS: (0, 6), api_keys.METADATA: (0, 1)}
    result = {each.api_key: each for each in (cluster.ask(ASKED)).api_keys}
    assert result[api_keys.METADATA].max_version == 13
    assert (result[api_keys.CREATE_TOPICS].min_version, result[api_keys.CREATE_TOPICS].max_version) == (2, 6)
    assert api_keys.DELETE_TOPICS not in result

"""ApiVersions, DescribeCluster and Envelope, as the node answers them."""

from typing import Any

import pytest
from mockraft import Controller
from mockraft.releases import release
from mockraft.server.apis import envelope
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes, messages
from mockraft.wire.connection import write_request
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest, Listener
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_cluster_response import DescribeClusterBroker
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.envelope_response import EnvelopeResponse

from .conftest import OFFERED, allocation_api, controller_in_memory

SUPPORTED = {
    "metadata.version": (7, 33),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    "share.version": (0, 2),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
}
FINALIZED = {name: highest for name, (_, highest) in SUPPORTED.items()}


def java_client(name: str = "apache-kafka-java", version: str = "4.4.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


def test_every_api_has_the_versions_of_a_real_controller() -> None:
    assert {key: (api.min_version, api.max_version) for key, api in OFFERED.items()} == release().api_versions


@pytest.mark.parametrize("version", range(6))
def test_offers_exactly_the_handled_apis(rig: Any, version: int) -> None:
    response = rig.ask(rig.connect(), java_client(), version)
    assert response.error_code == error_codes.NONE
    assert response.api_keys == [
        ApiVersion(api_key=key, min_version=api.min_version, max_version=api.max_version)
        for key, api in OFFERED.items()
    ]


def test_features_equal_those_of_a_real_controller(rig: Any) -> None:
    response = rig.ask(rig.connect(), java_client(), 4)
    assert {f.name: (f.min_version, f.max_version) for f in response.supported_features} == SUPPORTED
    finalized = response.finalized_features
    assert {f.name: f.max_version_level for f in finalized} == FINALIZED
    assert all(f.min_version_level == f.max_version_level for f in finalized)
    assert response.finalized_features_epoch == 11
    assert response.zk_migration_ready is False


@pytest.mark.parametrize(("option", "highest"), [("unstable_feature", 30), ("unstable_api", 31)])
def test_names_levels_that_are_not_ready_for_unstable_api_versions_alone(
    make_rig: Any, option: str, highest: int
) -> None:
    options: dict[str, Any] = {f"{option}_versions_enable": True}
    rig = make_rig(controller=controller_in_memory(ControllerConfig(release="4.3", **options)))
    response = rig.ask(rig.connect(), java_client(), 4)
    levels = {feature.name: feature.max_version for feature in response.supported_features}
    assert levels["metadata.version"] == highest


def test_leaves_features_that_may_be_0_out_below_version_4(rig: Any) -> None:
    response = rig.ask(rig.connect(), java_client(), 3)
    assert [f.name for f in response.supported_features] == ["metadata.version"]
    assert len(response.finalized_features) == len(FINALIZED)


async def test_older_metadata_version_is_reported() -> None:
    async with Controller(metadata_version=7, kraft_version=0) as controller:
        levels = controller.running.controller.image.features
        assert levels["metadata.version"] == 7


@pytest.mark.parametrize("version", [6, 99, 32767, -1])
def test_answers_an_unknown_version_in_version_0(rig: Any, version: int) -> None:
    connection = rig.connect()
    header = b"\x00\x12" + version.to_bytes(2, "big", signed=True) + b"\x00\x00\x00\x2a\xff\xff"
    frame = header + (b"\x00" if version >= 3 else b"") + b"what a later client might say"
    rig.send(connection, len(frame).to_bytes(4, "big") + frame)
    (data,) = rig.sends()
    assert data[4:] == bytes.fromhex("0000002a 0023 00000001 0012 0000 0005")
    assert rig.ask(connection, java_client(), 4).error_code == error_codes.NONE


@pytest.mark.parametrize("name", ["a", "librdkafka", "a-b.c", "0.1-RC"])
def test_takes_a_valid_client_software(rig: Any, name: str) -> None:
    assert rig.ask(rig.connect(), java_client(name, name), 3).error_code == error_codes.NONE


CONTROLLERS = DescribeClusterRequest(endpoint_type=2)


@pytest.mark.parametrize("version", [1, 2])
def test_lists_the_controllers(rig: Any, version: int) -> None:
    response = rig.ask(rig.connect(), CONTROLLERS, version)
    config = rig.controller.config
    assert (response.error_code, response.endpoint_type, response.cluster_id) == (0, 2, config.cluster_id)
    assert response.controller_id == config.node_id
    assert response.brokers == [DescribeClusterBroker(broker_id=config.node_id, host="127.0.0.1", port=9093)]
    assert response.cluster_authorized_operations == -(1 << 31)


def test_lists_another_controllers_endpoint_on_this_listener_only(rig: Any) -> None:
    other = ControllerRegistrationRequest(
        controller_id=3001,
        incarnation_id=bytes(range(16)),
        listeners=[
            Listener(name="CONTROLLER", host="there", port=1234, security_protocol=0),
            Listener(name="OTHER", host="elsewhere", port=99, security_protocol=0),
        ],
    )
    assert rig.ask(rig.connect(), other, 0).error_code == error_codes.NONE
    response = rig.ask(rig.connect(), CONTROLLERS, 2)
    assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [
        (3000, "127.0.0.1", 9093),
        (3001, "there", 1234),
    ]


def test_authorized_operations_are_included_on_request(rig: Any) -> None:
    request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True)
    assert rig.ask(rig.connect(), request, 2).cluster_authorized_operations == 0b1_1111_1010_0000


@pytest.mark.parametrize(
    ("endpoint_type", "version", "code"),
    [
        (1, 0, error_codes.INVALID_REQUEST),
        (1, 1, error_codes.MISMATCHED_ENDPOINT_TYPE),
        (1, 2, error_codes.MISMATCHED_ENDPOINT_TYPE),
        (3, 1, error_codes.UNSUPPORTED_ENDPOINT_TYPE),
        (-1, 2, error_codes.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_refuses_other_endpoint_types(rig: Any, endpoint_type: int, version: int, code: int) -> None:
    response = rig.ask(rig.connect(), DescribeClusterRequest(endpoint_type=endpoint_type), version)
    assert response.error_code == code
    assert response.brokers == []


@pytest.mark.parametrize(("metadata_version", "code"), [(14, error_codes.UNSUPPORTED_VERSION), (15, error_codes.NONE)])
def test_needs_controller_registration(make_rig: Any, make_controller: Any, metadata_version: int, code: int) -> None:
    controller = make_controller(ControllerConfig(metadata_version=metadata_version))
    rig = make_rig(*OFFERED.values(), controller=controller)
    assert rig.ask(rig.connect(), CONTROLLERS, 2).error_code == code


ANONYMOUS = b"\0\0\x05User\x0aANONYMOUS\0\0"
LOOPBACK = b"\x7f\0\0\1"
CORRELATION_ID = 77


def carried(message: Any, version: int) -> bytes:
    return write_request(message, version, CORRELATION_ID, "console-producer")[4:]


def wrapped(data: bytes, principal: bytes | None = ANONYMOUS, address: bytes = LOOPBACK) -> EnvelopeRequest:
    return EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=address)


def unwrapped(response: Any, api_key: int, version: int) -> Any:
    assert response.error_code == error_codes.NONE
    data = response.response_data
    assert int.from_bytes(data[:4], "big") == CORRELATION_ID
    header_version = messages.response_header_version(api_key, version)
    assert data[4 : 4 + header_version] == b"\0" * header_version
    return messages.response(api_key).read(data[4 + header_version :], version)


@pytest.mark.parametrize(("api_key", "version"), [(20, 6), (20, 1), (55, 2), (44, 1)])
def test_carries_each_forwardable_api(rig: Any, api_key: int, version: int) -> None:
    response = rig.ask(rig.connect(), wrapped(carried(messages.request(api_key)(), version)), 0)
    assert unwrapped(response, api_key, version) is not None


def test_handler_receives_the_forwarded_principal(make_rig: Any) -> None:
    seen = []

    def handle(request: Any, ctx: Any, controller: Any) -> Any:
        seen.append(ctx)
        return AllocateProducerIdsResponse(producer_id_len=5)

    rig = make_rig(envelope.API, allocation_api(handle))
    principal = b"\0\0\x05User\x06alice\1\0"
    ipv6 = bytes(15) + b"\1"
    rig.ask(rig.connect(), wrapped(carried(AllocateProducerIdsRequest(), 0), principal, ipv6), 0)
    (ctx,) = seen
    assert (ctx.principal, ctx.client_address, ctx.forwarded) == ("User:alice", "::1", True)
    assert (ctx.api_key, ctx.api_version, ctx.correlation_id) == (67, 0, CORRELATION_ID)
    assert (ctx.client_id, ctx.listener) == ("console-producer", "CONTROLLER")


GOOD = carried(DeleteTopicsRequest(), 6)
BAD_PRINCIPAL = b"\0\0\x05Us"
BAD_ADDRESS = b"\x7f\0\0"
NOT_FORWARDABLE = carried(BrokerHeartbeatRequest(), 1)


@pytest.mark.parametrize(
    ("request_data", "principal", "address", "code"),
    [
        (b"", BAD_PRINCIPAL, BAD_ADDRESS, error_codes.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"", ANONYMOUS, BAD_ADDRESS, error_codes.INVALID_REQUEST),
        (NOT_FORWARDABLE[:-3], ANONYMOUS, LOOPBACK, error_codes.INVALID_REQUEST),
        (b"\x00\x03" + GOOD[2:], ANONYMOUS, LOOPBACK, error_codes.INVALID_REQUEST),
    ],
)
def test_refuses_in_kafkas_order(rig: Any, request_data: bytes, principal: Any, address: bytes, code: int) -> None:
    connection = rig.connect()
    response = rig.ask(connection, wrapped(request_data, principal, address), 0)
    assert (response.error_code, response.response_data) == (code, None)
    assert rig.node.journal.exchanges()[-1].failure is None


@pytest.mark.parametrize(
    ("error", "code", "failure"),
    [
        (ApiError(error_codes.STALE_BROKER_EPOCH), error_codes.STALE_BROKER_EPOCH, None),
        (LookupError("our bug"), error_codes.UNKNOWN_SERVER_ERROR, "our bug"),
        (ApiError(error_codes.NOT_CONTROLLER), None, None),
    ],
    ids=["a refusal is inside", "a handler that breaks is journalled", "NOT_CONTROLLER is lifted"],
)
def test_errors_of_a_carried_request(make_rig: Any, error: Exception, code: int | None, failure: str | None) -> None:
    def refuse(request: Any, ctx: Any, controller: Any) -> Any:
        raise error

    rig = make_rig(envelope.API, allocation_api(refuse))
    response = rig.ask(rig.connect(), wrapped(carried(AllocateProducerIdsRequest(), 0)), 0)
    if code is None:
        assert response == EnvelopeResponse(error_code=error_codes.NOT_CONTROLLER)
    else:
        assert unwrapped(response, 67, 0).error_code == code
    assert (failure or "") in (rig.node.journal.exchanges()[0].failure or "")

from typing import Any

import pytest
from mockraft.server.apis import envelope
from mockraft.server.apis.registry import APIS
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes, messages
from mockraft.wire.connection import write_request
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.envelope_response import EnvelopeResponse

from .conftest import allocation_api

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


@pytest.fixture
def rig(make_rig: Any, controller: Any) -> Any:
    return make_rig(*APIS.values(), controller=controller)


@pytest.mark.parametrize(("message", "version"), [(CreateTopicsRequest, 7), (CreateTopicsRequest, 4)])
def test_answers_inside_the_envelope(rig: Any, message: Any, version: int) -> None:
    request = message(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=1000)
    response = rig.ask(rig.connect(), wrapped(carried(request, version)), 0)
    (topic,) = unwrapped(response, 19, version).topics
    assert (topic.name, topic.error_code) == ("t", error_codes.INVALID_REPLICATION_FACTOR)


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
        (GOOD, None, LOOPBACK, error_codes.PRINCIPAL_DESERIALIZATION_FAILURE),
        (GOOD, b"", LOOPBACK, error_codes.PRINCIPAL_DESERIALIZATION_FAILURE),
        (GOOD, b"\0\1" + ANONYMOUS[2:], LOOPBACK, error_codes.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"", BAD_PRINCIPAL, BAD_ADDRESS, error_codes.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"", ANONYMOUS, BAD_ADDRESS, error_codes.INVALID_REQUEST),
        (GOOD, ANONYMOUS, b"", error_codes.INVALID_REQUEST),
        (b"", ANONYMOUS, LOOPBACK, error_codes.UNSUPPORTED_VERSION),
        (b"\x03\xe7" + GOOD[2:], ANONYMOUS, LOOPBACK, error_codes.UNSUPPORTED_VERSION),
        (GOOD[:9], ANONYMOUS, LOOPBACK, error_codes.UNSUPPORTED_VERSION),
        (NOT_FORWARDABLE, ANONYMOUS, LOOPBACK, error_codes.INVALID_REQUEST),
        (NOT_FORWARDABLE[:-3], ANONYMOUS, LOOPBACK, error_codes.INVALID_REQUEST),
        (b"\x00\x03" + GOOD[2:], ANONYMOUS, LOOPBACK, error_codes.INVALID_REQUEST),
        (GOOD[:2] + b"\0\x63" + GOOD[4:], ANONYMOUS, LOOPBACK, error_codes.UNSUPPORTED_VERSION),
        (GOOD[:-2], ANONYMOUS, LOOPBACK, error_codes.UNSUPPORTED_VERSION),
    ],
)
def test_refuses_in_kafkas_order(rig: Any, request_data: bytes, principal: Any, address: bytes, code: int) -> None:
    connection = rig.connect()
    response = rig.ask(connection, wrapped(request_data, principal, address), 0)
    assert (response.error_code, response.response_data) == (code, None)
    assert rig.node.journal.exchanges()[-1].failure is None


def test_refusal_is_inside_the_envelope(make_rig: Any) -> None:
    def refuse(request: Any, ctx: Any, controller: Any) -> Any:
        raise ApiError(error_codes.STALE_BROKER_EPOCH)

    rig = make_rig(envelope.API, allocation_api(refuse))
    response = rig.ask(rig.connect(), wrapped(carried(AllocateProducerIdsRequest(), 0)), 0)
    assert unwrapped(response, 67, 0).error_code == error_codes.STALE_BROKER_EPOCH


def test_lifts_not_controller(make_rig: Any) -> None:
    def refuse(request: Any, ctx: Any, controller: Any) -> Any:
        raise ApiError(error_codes.NOT_CONTROLLER)

    rig = make_rig(envelope.API, allocation_api(refuse))
    response = rig.ask(rig.connect(), wrapped(carried(AllocateProducerIdsRequest(), 0)), 0)
    assert response == EnvelopeResponse(error_code=error_codes.NOT_CONTROLLER)


def test_a_carried_handler_that_breaks_is_journalled(make_rig: Any) -> None:
    def break_down(request: Any, ctx: Any, controller: Any) -> Any:
        raise LookupError("our bug")

    rig = make_rig(envelope.API, allocation_api(break_down))
    response = rig.ask(rig.connect(), wrapped(carried(AllocateProducerIdsRequest(), 0)), 0)
    assert unwrapped(response, 67, 0).error_code == error_codes.UNKNOWN_SERVER_ERROR
    assert "our bug" in rig.node.journal.exchanges()[0].failure


def test_a_carried_describe_quorum_is_answered(rig: Any) -> None:
    request = DescribeQuorumRequest()
    response = rig.ask(rig.connect(), wrapped(carried(request, 2)), 0)
    assert unwrapped(response, 55, 2).topics == []

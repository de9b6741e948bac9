"""Envelope (58), version 0: KIP-590, a broker forwards its client's request.

The carried request is handled as if it had come on this connection, with the client's principal and address; its
response, header included, is wrapped. Errors of the envelope are in its own error code, in Kafka's order
(EnvelopeUtils): principal 97, address 42, carried header 35, not forwardable 42, carried body 35. Errors of the
carried request are in the carried response, but NOT_CONTROLLER is lifted (RequestChannel), and so is
NOT_LEADER_OR_FOLLOWER of DescribeQuorum, so that the broker looks for the active controller. The forwarding broker
needs CLUSTER_ACTION, the carried principal what the carried request requires.
"""

from __future__ import annotations

import ipaddress
from struct import Struct
from typing import TYPE_CHECKING, Any

from mockraft.kafka_api.api import Client, Parked
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import AnyApi, Api, RequestContext, Result, answer
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.connection import Request, parse_request, read_request_body
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.messages.describe_quorum_response import DescribeQuorumResponse
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.envelope_response import EnvelopeResponse
from mockraft.wire.principals import read_principal

if TYPE_CHECKING:
    from mockraft.wire.message import MessageLookup

_CORRELATION = Struct(">i")


def handle(
    request: EnvelopeRequest, ctx: RequestContext, controller: Controller
) -> EnvelopeResponse | Parked[EnvelopeResponse]:
    """Handle the carried request and wrap its response."""
    principal = _principal(request.request_principal)
    client_address = _client_address(request.client_host_address)
    lookup = controller.config.overlay or messages
    carried = _carried_header(request.request_data, lookup)
    api = ctx.apis.get(carried.api_key)
    if api is None or not api.forwardable:
        name = api_keys.name(carried.api_key)
        raise ApiError(error_codes.INVALID_REQUEST, f"API {name} is not enabled or is not eligible for forwarding")
    body = _carried_body(api, carried, controller.config)
    client = Client(
        ctx.connection_id,
        client_address,
        ctx.listener,
        f"{principal.type}:{principal.name}",
        token_authenticated=principal.token_authenticated,
    )
    inner = RequestContext(carried, client, ctx.now_ms, ctx.apis, forwarded=True)

    def own() -> Result:
        return answer(api, body, inner, controller)

    response = own() if ctx.carried is None else ctx.carried(api, body, inner, own)

    def wrap(response: Message) -> EnvelopeResponse:
        ctx.failure = inner.failure
        if _says_not_controller(response, inner):
            return EnvelopeResponse(error_code=error_codes.NOT_CONTROLLER)
        head = _CORRELATION.pack(carried.correlation_id)
        if lookup.response_header_version(carried.api_key, carried.api_version) >= 1:
            head += b"\0"
        return EnvelopeResponse(response_data=head + response.write(carried.api_version))

    def follow(response: Result) -> EnvelopeResponse | Parked[EnvelopeResponse]:
        if isinstance(response, Parked):
            waiting: Parked[Any] = response.then(lambda later, _now_ms: follow(later))  # under a stub, for a wait
            return waiting
        assert isinstance(response, Message), "a controller's handlers return messages"
        return wrap(response)

    return follow(response)


def _principal(data: bytes | None) -> DefaultPrincipalData:
    try:
        return read_principal(data)
    except WireError as wrong:
        raise ApiError(
            error_codes.PRINCIPAL_DESERIALIZATION_FAILURE,
            f"Failed to deserialize client principal from envelope: {wrong}",
        ) from wrong


def _client_address(data: bytes) -> str:
    if len(data) not in (4, 16):
        raise ApiError(error_codes.INVALID_REQUEST, "Failed to parse client address from envelope")
    return str(ipaddress.ip_address(data))


def _carried_header(data: bytes, lookup: MessageLookup) -> Request:
    try:
        return parse_request(data, lookup)
    except WireError as wrong:
        raise ApiError(
            error_codes.UNSUPPORTED_VERSION, f"Failed to parse request header from envelope: {wrong}"
        ) from wrong


def _carried_body(api: AnyApi, carried: Request, config: ControllerConfig) -> Message:
    try:
        if not api.min_version <= carried.api_version <= api.max_version:
            raise WireError(f"{api_keys.name(carried.api_key)} version {carried.api_version} is not supported")
        most = api.elements_max(config)
        body: Message = read_request_body(carried, api.request, most, is_bounded=config.is_bounded)
        if api.validate is not None:
            api.validate(body)
        return body
    except WireError as wrong:
        raise ApiError(error_codes.UNSUPPORTED_VERSION, f"Failed to parse forwarded request: {wrong}") from wrong


def _says_not_controller(response: Message, inner: RequestContext) -> bool:
    """Return True for NOT_CONTROLLER (RequestChannel.shouldReturnNotController)."""
    if isinstance(response, DescribeQuorumResponse):
        refused = error_codes.NOT_LEADER_OR_FOLLOWER
        return any(partition.error_code == refused for topic in response.topics for partition in topic.partitions)
    return inner.refused_with == error_codes.NOT_CONTROLLER


API = Api(EnvelopeRequest, EnvelopeResponse, handle, active_only=False, operation=AclOperation.CLUSTER_ACTION)

"""APIs that a broker without a delegation token key or streams groups refuses, each with its own error (KafkaApis).

SASL requests are illegal on a connection that needs no login any more. Delegation tokens require an authenticated
client, whose requests are forwarded; tokens cannot be described without the key. APIs of streams groups are answered at
once as by a broker whose cluster has not enabled these groups, and the log and the journal say why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from mockraft.brokers.apis.api import AnyApi, Api, ApiError, Parked, RequestContext
from mockraft.kafka_api.api import error_code_only, error_with_message
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes, messages
from mockraft.wire.message import Message
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.create_delegation_token_response import CreateDelegationTokenResponse

_LOG_IN_TOO_LATE = "SaslAuthenticate request received after successful authentication"
_NO_TOKENS = error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def _refused(
    name: str,
    code: int,
    form: Callable[..., Callable[[Message, int, str | None], Message]] = error_code_only,
    message: str | None = None,
    *,
    forwarded: bool = False,
    **fields: int,
) -> AnyApi:
    """Return the API of this name; `fields` are those of its response besides the error."""
    error = form(partial(messages.by_name(f"{name}Response"), **fields))

    def handle(body: Message, ctx: RequestContext) -> Message | Parked[Message | bytes]:
        if code != _NO_TOKENS or not _may_request_tokens(ctx):
            return error(body, code, message)
        if not forwarded:
            return error(body, error_codes.DELEGATION_TOKEN_AUTH_DISABLED, message)
        return ctx.broker.forwarding.forward(api, ctx)

    request, response = messages.by_name(f"{name}Request"), messages.by_name(f"{name}Response")
    api: AnyApi = Api(request, response, handle, error, forwarded=forwarded)
    return api


def _may_request_tokens(ctx: RequestContext) -> bool:
    """Return True if a client of the listener may use delegation tokens (KafkaApis.allowTokenRequests)."""
    return ctx.client.may_request_tokens(ctx.broker.config.listener_security.security_protocol)


_no_token = error_code_only(
    partial(CreateDelegationTokenResponse, issue_timestamp_ms=-1, expiry_timestamp_ms=-1, max_timestamp_ms=-1)
)


def _create_token(
    request: CreateDelegationTokenRequest, ctx: RequestContext
) -> CreateDelegationTokenResponse | Parked[CreateDelegationTokenResponse | bytes]:
    if _may_request_tokens(ctx):
        return ctx.broker.forwarding.forward(_CREATE, ctx)
    response = _no_token(request, _NO_TOKENS, None)
    kind, _, name = ctx.principal.partition(":")
    response.principal_type, response.principal_name = kind, name
    if ctx.api_version >= 3:
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
        if request.owner_principal_name:
            response.principal_type = request.owner_principal_type or ""
            response.principal_name = request.owner_principal_name
    return response


_CREATE = Api(CreateDelegationTokenRequest, CreateDelegationTokenResponse, _create_token, _no_token, forwarded=True)


def _without_groups(name: str, *levels: Items) -> AnyApi:
    """Return the API of streams groups of this name."""
    response = messages.by_name(f"{name}Response")

    def handle(_body: Message, ctx: RequestContext) -> Message:
        ctx.remark = f"{name}: simulated brokers have no streams groups"
        raise ApiError(error_codes.UNSUPPORTED_VERSION)

    api: AnyApi = Api(messages.by_name(f"{name}Request"), response, handle, error_for_each(response, *levels))
    return api


APIS: Final[tuple[AnyApi, ...]] = (
    _refused("SaslHandshake", error_codes.ILLEGAL_SASL_STATE),
    _refused("SaslAuthenticate", error_codes.ILLEGAL_SASL_STATE, error_with_message, _LOG_IN_TOO_LATE),
    _CREATE,
    _refused("RenewDelegationToken", _NO_TOKENS, forwarded=True, expiry_timestamp_ms=-1),
    _refused("ExpireDelegationToken", _NO_TOKENS, forwarded=True, expiry_timestamp_ms=-1),
    _refused("DescribeDelegationToken", _NO_TOKENS),
    _without_groups("StreamsGroupHeartbeat"),
    _without_groups("StreamsGroupDescribe", Items("group_ids", "groups", ("group_id",))),
    _without_groups("StreamsGroupTopologyDescriptionUpdate"),
)

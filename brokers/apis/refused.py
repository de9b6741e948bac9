"""APIs that a broker with PLAINTEXT listeners and no authorizer always refuses, each with its own error (KafkaApis).

SASL requests are illegal on a connection that needs no login, delegation tokens require an authenticated client, and
there are no ACLs to describe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mockraft.brokers.apis.api import AnyApi, Api, RequestContext
from mockraft.wire import error_codes, messages

_LOG_IN_TOO_LATE = "SaslAuthenticate request received after successful authentication"
_NO_AUTHORIZER = "No Authorizer is configured on the broker"


ErrorFields = dict[str, Any]
"""The fields of an error response."""


def _code(code: int, _message: str | None) -> ErrorFields:
    return {"error_code": code}


def _code_and_message(code: int, message: str | None) -> ErrorFields:
    return {"error_code": code, "error_message": message}


def _no_token(code: int, _message: str | None) -> ErrorFields:
    return {"error_code": code, "issue_timestamp_ms": -1, "expiry_timestamp_ms": -1, "max_timestamp_ms": -1}


def _no_expiry(code: int, _message: str | None) -> ErrorFields:
    return {"error_code": code, "expiry_timestamp_ms": -1}


def _nothing_of(_request: Any, _ctx: RequestContext) -> ErrorFields:
    return {}


def _owner_and_requester(request: Any, ctx: RequestContext) -> ErrorFields:
    kind, _, name = ctx.principal.partition(":")
    error_fields = {"principal_type": kind, "principal_name": name}
    if ctx.api_version >= 3:
        error_fields |= {"token_requester_principal_type": kind, "token_requester_principal_name": name}
        if request.owner_principal_name:
            error_fields |= {
                "principal_type": request.owner_principal_type,
                "principal_name": request.owner_principal_name,
            }
    return error_fields


def _refused(
    name: str,
    code: int,
    error_fields: Callable[[int, str | None], ErrorFields],
    message: str | None = None,
    of: Callable[[Any, RequestContext], ErrorFields] = _nothing_of,
    *,
    forwarded: bool = False,
) -> AnyApi:
    response = messages.by_name(f"{name}Response")

    def handle(request: Any, ctx: RequestContext) -> Any:
        return response(**error_fields(code, message), **of(request, ctx))

    def error(_request: Any, error_code: int, message: str | None) -> Any:
        return response(**error_fields(error_code, message))

    return Api(messages.by_name(f"{name}Request"), response, handle, error, forwarded=forwarded)


_NO_TOKENS = error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

APIS: Final = [
    _refused("SaslHandshake", error_codes.ILLEGAL_SASL_STATE, _code),
    _refused("SaslAuthenticate", error_codes.ILLEGAL_SASL_STATE, _code_and_message, _LOG_IN_TOO_LATE),
    _refused("DescribeAcls", error_codes.SECURITY_DISABLED, _code_and_message, _NO_AUTHORIZER),
    _refused("CreateDelegationToken", _NO_TOKENS, _no_token, None, _owner_and_requester, forwarded=True),
    _refused("RenewDelegationToken", _NO_TOKENS, _no_expiry, forwarded=True),
    _refused("ExpireDelegationToken", _NO_TOKENS, _no_expiry, forwarded=True),
    _refused("DescribeDelegationToken", _NO_TOKENS, _code),
]

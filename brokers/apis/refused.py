"""APIs that a broker with PLAINTEXT listeners and no authorizer always refuses, each with its own error (KafkaApis).

SASL requests are illegal on a connection that needs no login, delegation tokens require an authenticated client, and
there are no ACLs to describe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from mockraft.brokers.apis.api import AnyApi, Api, RequestContext, RequestT, ResponseT
from mockraft.serving.api import error_code_only, error_with_message
from mockraft.wire import error_codes
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest
from mockraft.wire.messages.describe_acls_response import DescribeAclsResponse
from mockraft.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from mockraft.wire.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from mockraft.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from mockraft.wire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from mockraft.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from mockraft.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.messages.sasl_handshake_response import SaslHandshakeResponse

_LOG_IN_TOO_LATE = "SaslAuthenticate request received after successful authentication"
_NO_AUTHORIZER = "No Authorizer is configured on the broker"
_NO_TOKENS = error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def _refused(
    request: type[RequestT],
    response: type[ResponseT],
    code: int,
    error: Callable[[RequestT, int, str | None], ResponseT],
    message: str | None = None,
    *,
    forwarded: bool = False,
) -> Api[RequestT, ResponseT]:
    return Api(request, response, lambda body, _ctx: error(body, code, message), error, forwarded=forwarded)


_no_token = error_code_only(
    partial(CreateDelegationTokenResponse, issue_timestamp_ms=-1, expiry_timestamp_ms=-1, max_timestamp_ms=-1)
)


def _create_token(request: CreateDelegationTokenRequest, ctx: RequestContext) -> CreateDelegationTokenResponse:
    response = _no_token(request, _NO_TOKENS, None)
    kind, _, name = ctx.principal.partition(":")
    response.principal_type, response.principal_name = kind, name
    if ctx.api_version >= 3:
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
        if request.owner_principal_name:
            response.principal_type = request.owner_principal_type or ""
            response.principal_name = request.owner_principal_name
    return response


APIS: Final[tuple[AnyApi, ...]] = (
    _refused(
        SaslHandshakeRequest,
        SaslHandshakeResponse,
        error_codes.ILLEGAL_SASL_STATE,
        error_code_only(SaslHandshakeResponse),
    ),
    _refused(
        SaslAuthenticateRequest,
        SaslAuthenticateResponse,
        error_codes.ILLEGAL_SASL_STATE,
        error_with_message(SaslAuthenticateResponse),
        _LOG_IN_TOO_LATE,
    ),
    _refused(
        DescribeAclsRequest,
        DescribeAclsResponse,
        error_codes.SECURITY_DISABLED,
        error_with_message(DescribeAclsResponse),
        _NO_AUTHORIZER,
    ),
    Api(CreateDelegationTokenRequest, CreateDelegationTokenResponse, _create_token, _no_token, forwarded=True),
    _refused(
        RenewDelegationTokenRequest,
        RenewDelegationTokenResponse,
        _NO_TOKENS,
        error_code_only(partial(RenewDelegationTokenResponse, expiry_timestamp_ms=-1)),
        forwarded=True,
    ),
    _refused(
        ExpireDelegationTokenRequest,
        ExpireDelegationTokenResponse,
        _NO_TOKENS,
        error_code_only(partial(ExpireDelegationTokenResponse, expiry_timestamp_ms=-1)),
        forwarded=True,
    ),
    _refused(
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
        _NO_TOKENS,
        error_code_only(DescribeDelegationTokenResponse),
    ),
)

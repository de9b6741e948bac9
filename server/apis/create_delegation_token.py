"""CreateDelegationToken (38), versions 1-3: KIP-48, KIP-373 (tokens for others), in KRaft since KIP-900.

Only forwarded requests are served: direct requests on a PLAINTEXT listener, or with a token login, are refused
(ControllerApis.allowTokenRequests). A token for another owner needs CREATE_TOKENS on that user.
"""

from mockraft.kafka_api.api import ANONYMOUS
from mockraft.kafka_api.authorization.acl_types import AclOperation, ResourceType
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import is_allowed
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.security import delegation_tokens
from mockraft.wire import error_codes
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.create_delegation_token_response import CreateDelegationTokenResponse

_REQUESTER_VERSION_MIN = 3


def handle(
    request: CreateDelegationTokenRequest, ctx: RequestContext, controller: Controller
) -> CreateDelegationTokenResponse:
    """Create a token for the named owner, by default the requester."""
    owner = ctx.principal
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            return _response(ctx, ANONYMOUS, ANONYMOUS, error_codes.UNKNOWN_SERVER_ERROR, -1)
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if not ctx.allows_token_requests(controller.config.security_protocol):
        return _response(ctx, owner, ctx.principal, error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
    if owner != ctx.principal and not is_allowed(controller, ctx, AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
        return _response(ctx, owner, ctx.principal, error_codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED, -1)
    renewers = [(each.principal_type, each.principal_name) for each in request.renewers]
    try:
        result = delegation_tokens.create_token(
            controller, owner, ctx.principal, renewers, request.max_lifetime_ms, ctx.now_ms
        )
    except ApiError as refusal:
        return _response(ctx, owner, ctx.principal, refusal.error_code, 0)
    token_id, hmac, token = controller.commit(result, ctx.now_ms)
    response = _response(ctx, owner, ctx.principal, error_codes.NONE, token.issue_timestamp)
    response.expiry_timestamp_ms, response.max_timestamp_ms = token.expiration_timestamp, token.max_timestamp
    response.token_id, response.hmac = token_id, hmac
    return response


def error(
    _request: CreateDelegationTokenRequest, error_code: int, _message: str | None
) -> CreateDelegationTokenResponse:
    """Return a top-level error without a token; versions before 3 have no requester fields."""
    return _of_owner(ANONYMOUS, error_code, -1)


def _response(
    ctx: RequestContext, owner: str, requester: str, error_code: int, timestamp_ms: int
) -> CreateDelegationTokenResponse:
    response = _of_owner(owner, error_code, timestamp_ms)
    if ctx.api_version >= _REQUESTER_VERSION_MIN:
        requester_type, _, requester_name = requester.partition(":")
        response.token_requester_principal_type = requester_type
        response.token_requester_principal_name = requester_name
    return response


def _of_owner(owner: str, error_code: int, timestamp_ms: int) -> CreateDelegationTokenResponse:
    owner_type, _, owner_name = owner.partition(":")
    return CreateDelegationTokenResponse(
        error_code=error_code,
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=timestamp_ms,
        expiry_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
    )


API = Api(CreateDelegationTokenRequest, CreateDelegationTokenResponse, handle, error, forwardable=True)

"""RenewDelegationToken (39), versions 1-2: KIP-48, in KRaft since KIP-900.

Only forwarded requests are served: direct requests on a PLAINTEXT listener, or with a token login, are refused
(ControllerApis.allowTokenRequests).
"""

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.security import delegation_tokens
from mockraft.wire import error_codes
from mockraft.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from mockraft.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse


def handle(
    request: RenewDelegationTokenRequest, ctx: RequestContext, controller: Controller
) -> RenewDelegationTokenResponse:
    """Return the renewed token's expiry."""
    if not ctx.allows_token_requests(controller.config.security_protocol):
        code = error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)
    result = delegation_tokens.renew_token(controller, request.hmac, ctx.principal, request.renew_period_ms, ctx.now_ms)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=controller.commit(result, ctx.now_ms))


API = Api(RenewDelegationTokenRequest, RenewDelegationTokenResponse, handle, forwardable=True)

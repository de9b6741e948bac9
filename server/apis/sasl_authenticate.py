"""SaslAuthenticate (36), versions 0-2: KIP-152, KIP-368. Not done: SASL.

Nobody authenticates on a PLAINTEXT listener (ControllerApis.handleSaslAuthenticateRequest).
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse


def handle(request: Any, ctx: RequestContext, controller: Controller) -> SaslAuthenticateResponse:
    """Always ApiError ILLEGAL_SASL_STATE."""
    raise ApiError(error_codes.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication")


def error(_request: Any, error_code: int, message: str | None) -> SaslAuthenticateResponse:
    """Code and message."""
    return SaslAuthenticateResponse(error_code=error_code, error_message=message)


API = Api(SaslAuthenticateRequest, SaslAuthenticateResponse, handle, 0, 2, error, active_only=False)

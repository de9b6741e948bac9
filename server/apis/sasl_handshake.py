"""SaslHandshake (17), versions 0-1: KIP-43, KIP-152. Not done: SASL.

There is nothing to negotiate on a PLAINTEXT listener (ControllerApis.handleSaslHandshakeRequest).
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.messages.sasl_handshake_response import SaslHandshakeResponse


def handle(request: Any, ctx: RequestContext, controller: Controller) -> SaslHandshakeResponse:
    """Always ApiError ILLEGAL_SASL_STATE."""
    raise ApiError(error_codes.ILLEGAL_SASL_STATE)


def error(_request: Any, error_code: int, _message: str | None) -> SaslHandshakeResponse:
    """A top-level error, and no mechanism; there is no room for a message."""
    return SaslHandshakeResponse(error_code=error_code)


API = Api(SaslHandshakeRequest, SaslHandshakeResponse, handle, 0, 1, error, active_only=False)

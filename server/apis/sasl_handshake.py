"""SaslHandshake (17), versions 0-1: KIP-43, KIP-152. Handles requests outside a login only.

There is nothing to negotiate on a PLAINTEXT listener (ControllerApis.handleSaslHandshakeRequest).
"""

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.messages.sasl_handshake_response import SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, ctx: RequestContext, controller: Controller) -> SaslHandshakeResponse:
    """Raise ApiError ILLEGAL_SASL_STATE, always."""
    raise ApiError(error_codes.ILLEGAL_SASL_STATE)


API = Api(SaslHandshakeRequest, SaslHandshakeResponse, handle, active_only=False)

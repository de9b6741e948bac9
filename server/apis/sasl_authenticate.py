"""SaslAuthenticate (36), versions 0-2: KIP-152, KIP-368. Handles requests outside a login only.

There is no authentication on a PLAINTEXT listener (ControllerApis.handleSaslAuthenticateRequest).
"""

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse


def handle(request: SaslAuthenticateRequest, ctx: RequestContext, controller: Controller) -> SaslAuthenticateResponse:
    """Raise ApiError ILLEGAL_SASL_STATE, always."""
    raise ApiError(error_codes.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication")


API = Api(SaslAuthenticateRequest, SaslAuthenticateResponse, handle, active_only=False)

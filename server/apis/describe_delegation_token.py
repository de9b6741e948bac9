"""DescribeDelegationToken (41), versions 1-3: brokers answer it from their metadata, a controller only offers it.

Kafka's controller has no handler for it and answers UNKNOWN_SERVER_ERROR (ControllerApis.handle). So do we.
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from mockraft.wire.messages.describe_delegation_token_response import DescribeDelegationTokenResponse


def handle(request: Any, ctx: RequestContext, controller: Controller) -> DescribeDelegationTokenResponse:
    """Always ApiError UNKNOWN_SERVER_ERROR."""
    raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)


def error(_request: Any, error_code: int, _message: str | None) -> DescribeDelegationTokenResponse:
    """A top-level error; there is no room for a message."""
    return DescribeDelegationTokenResponse(error_code=error_code)


API = Api(DescribeDelegationTokenRequest, DescribeDelegationTokenResponse, handle, 1, 3, error, active_only=False)

"""DescribeDelegationToken (41), versions 1-3: brokers answer it from their metadata, a controller only offers it.

Kafka's controller has no handler for it and answers UNKNOWN_SERVER_ERROR (ControllerApis.handle). So does this one.
"""

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from mockraft.wire.messages.describe_delegation_token_response import DescribeDelegationTokenResponse


def handle(
    request: DescribeDelegationTokenRequest, ctx: RequestContext, controller: Controller
) -> DescribeDelegationTokenResponse:
    """Raise ApiError UNKNOWN_SERVER_ERROR, always."""
    raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)


API = Api(DescribeDelegationTokenRequest, DescribeDelegationTokenResponse, handle, active_only=False)

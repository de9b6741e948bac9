"""DescribeUserScramCredentials (50), version 0: brokers answer it from their metadata, a controller only offers it.

Kafka's controller has no handler for it: a request that names users is answered with UNKNOWN_SERVER_ERROR; one for all
users gets no response at all, and the connection none from then on (ControllerApis.handle, and the request's
getErrorResponse, which fails on null). So does this one.
"""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.api import NEVER_MS, Parked
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from mockraft.wire.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse


def handle(
    request: DescribeUserScramCredentialsRequest, ctx: RequestContext, controller: Controller
) -> Parked[DescribeUserScramCredentialsResponse]:
    """Raise ApiError UNKNOWN_SERVER_ERROR, or leave the request without a response."""
    if request.users is None:
        return Parked(NEVER_MS, lambda now_ms, expired: None)
    raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)


API = Api(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    handle,
    error_responses.describe_user_scram_credentials,
    active_only=False,
)

"""DescribeUserScramCredentials (50), version 0: brokers answer it from their metadata, a controller only offers it.

Kafka's controller has no handler for it: a request that names users is answered with UNKNOWN_SERVER_ERROR; one for all
users gets no response at all, and the connection none from then on (ControllerApis.handle, and the request's
getErrorResponse, which fails on null). So does this one.
"""

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.serving.parked import Parked
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from mockraft.wire.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

_NEVER_MS = 1 << 62


def handle(
    request: DescribeUserScramCredentialsRequest, ctx: RequestContext, controller: Controller
) -> Parked[DescribeUserScramCredentialsResponse]:
    """Raise ApiError UNKNOWN_SERVER_ERROR, or leave the request without a response."""
    if request.users is None:
        return Parked(_NEVER_MS, lambda now_ms, expired: None)
    raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)


def error(
    request: DescribeUserScramCredentialsRequest, error_code: int, message: str | None
) -> DescribeUserScramCredentialsResponse:
    """Return the error at the top level and for each user, without names."""
    return DescribeUserScramCredentialsResponse(
        error_code=error_code,
        error_message=message,
        results=[
            DescribeUserScramCredentialsResult(error_code=error_code, error_message=message)
            for _ in request.users or ()
        ],
    )


API = Api(
    request=DescribeUserScramCredentialsRequest,
    response=DescribeUserScramCredentialsResponse,
    handle=handle,
    min_version=0,
    max_version=0,
    error=error,
    active_only=False,
)

"""DescribeUserScramCredentials (50): KIP-554. Mechanisms and iterations by user, from the image (ScramImage)."""

from __future__ import annotations

from collections import Counter

from mockraft.brokers.apis.api import Api, Need, RequestContext
from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from mockraft.wire.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

UNKNOWN_USER = "Attempt to describe a user credential that does not exist: "
DUPLICATE_USER = "Cannot describe SCRAM credentials for the same user twice in a single request: "


def handle(request: DescribeUserScramCredentialsRequest, ctx: RequestContext) -> DescribeUserScramCredentialsResponse:
    """Return the credentials of the requested users; of all users when none is named."""
    known = ctx.image.scram
    requested = Counter(user.name for user in request.users) if request.users else Counter(dict.fromkeys(known, 1))
    results = []
    for user in requested:
        if requested[user] > 1:
            result = _refused(user, error_codes.DUPLICATE_RESOURCE, DUPLICATE_USER + user)
        elif user not in known:
            result = _refused(user, error_codes.RESOURCE_NOT_FOUND, UNKNOWN_USER + user)
        else:
            infos = [CredentialInfo(mechanism=m, iterations=each.iterations) for m, each in sorted(known[user].items())]
            result = DescribeUserScramCredentialsResult(user=user, credential_infos=infos)
        results.append(result)
    return DescribeUserScramCredentialsResponse(results=results)


def _refused(user: str, error_code: int, message: str | None) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=user, error_code=error_code, error_message=message)


API = Api(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    handle,
    error_responses.describe_user_scram_credentials,
    needs=(Need(AclOperation.DESCRIBE),),
)

"""AlterUserScramCredentials (51), version 0: KIP-554, in KRaft since KIP-900."""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import error_fields
from mockraft.server.controller.security import scram
from mockraft.server.controller.security.scram import Deletion, Upsertion
from mockraft.wire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from mockraft.wire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def handle(
    request: AlterUserScramCredentialsRequest, ctx: RequestContext, controller: Controller
) -> AlterUserScramCredentialsResponse:
    """Alter each user's credential, or return its error."""
    deletions = [Deletion(each.name, each.mechanism) for each in request.deletions]
    upsertions = [
        Upsertion(each.name, each.mechanism, each.iterations, each.salt, each.salted_password)
        for each in request.upsertions
    ]
    done = controller.commit(scram.alter_credentials(controller.image, deletions, upsertions), ctx.now_ms)
    results = [AlterUserScramCredentialsResult(user=user, **error_fields(refusal)) for user, refusal in done.items()]
    return AlterUserScramCredentialsResponse(results=results)


API = Api(
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    handle,
    error_responses.alter_user_scram_credentials,
    forwardable=True,
    operation=AclOperation.ALTER,
)

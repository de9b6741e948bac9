"""BrokerRegistration (62), versions 0-4: a broker registers its id, endpoints, features and directories.

KIP-631, KIP-858 (directories, version 2), KIP-966 (previous epoch, version 3). The response has no message, so the
reason of a refusal is logged: once, for a broker tries again all the time.
"""

from typing import Final

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis import refusals
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers.registration import register_broker
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.messages.broker_registration_response import BrokerRegistrationResponse

_REMEDIES: Final = {
    error_codes.DUPLICATE_BROKER_REGISTRATION: "stop the other broker, or wait until its session has expired",
    error_codes.INCONSISTENT_CLUSTER_ID: refusals.OTHER_CLUSTER_REMEDY,
    error_codes.INVALID_REGISTRATION: "format its log directories anew if they are copies, and name all of them",
    error_codes.UNSUPPORTED_VERSION: "serve with --metadata-version or --feature at a level that the broker knows",
}


def handle(
    request: BrokerRegistrationRequest, ctx: RequestContext, controller: Controller
) -> BrokerRegistrationResponse:
    """Return the broker's epoch. ApiError: see `register_broker`."""
    try:
        result = register_broker(controller, request, ctx.api_version, ctx.now_ms)
    except ApiError as refusal:
        code, remedy = refusal.error_code, _REMEDIES.get(refusal.error_code)
        reason = f"{error_codes.name(code)}: {refusal.message}"
        refusals.warn_once(controller, request.broker_id, refusals.REGISTER, reason, remedy, ctx.now_ms)
        raise
    refusals.forget(controller, request.broker_id)
    return BrokerRegistrationResponse(broker_epoch=controller.commit(result, ctx.now_ms))


API = Api(BrokerRegistrationRequest, BrokerRegistrationResponse, handle, operation=AclOperation.CLUSTER_ACTION)

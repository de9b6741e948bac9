"""BrokerRegistration (62), versions 0-4: a broker registers its id, endpoints, features and directories.

KIP-631, KIP-858 (directories, version 2), KIP-966 (previous epoch, version 3). The response has no message, so the
reason of a refusal is logged: once, for a broker tries again all the time.
"""

import logging
from typing import Final

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers.registration import register_broker
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.security.acl_types import AclOperation
from mockraft.wire import error_codes
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.messages.broker_registration_response import BrokerRegistrationResponse

_LOGGER = logging.getLogger(__name__)
_REMEDIES: Final = {
    error_codes.DUPLICATE_BROKER_REGISTRATION: "stop the other broker, or wait until its session has expired",
    error_codes.INCONSISTENT_CLUSTER_ID: "format its directories with this cluster id, or serve with --cluster-id",
    error_codes.INVALID_REGISTRATION: "format its log directories anew if they are copies, and name all of them",
    error_codes.UNSUPPORTED_VERSION: "serve with --metadata-version or --feature at a level that the broker knows",
}
_REFUSALS_MAX: Final = 1_000
"""Number of brokers whose refusals are remembered; then all are logged again."""


def handle(
    request: BrokerRegistrationRequest, ctx: RequestContext, controller: Controller
) -> BrokerRegistrationResponse:
    """Return the broker's epoch. ApiError: see `register_broker`."""
    try:
        result = register_broker(controller, request, ctx.api_version, ctx.now_ms)
    except ApiError as refusal:
        _log_once(controller, request.broker_id, refusal)
        raise
    controller.refused_brokers.pop(request.broker_id, None)
    return BrokerRegistrationResponse(broker_epoch=controller.commit(result, ctx.now_ms))


def _log_once(controller: Controller, broker_id: int, refusal: ApiError) -> None:
    refused, reason = controller.refused_brokers, f"{error_codes.name(refusal.error_code)}: {refusal.message}"
    if refused.get(broker_id) == reason:
        return
    if len(refused) >= _REFUSALS_MAX:
        refused.clear()
    refused[broker_id] = reason
    remedy = _REMEDIES.get(refusal.error_code)
    _LOGGER.warning("broker %d may not register: %r%s", broker_id, reason, f"; {remedy}" if remedy else "")


API = Api(BrokerRegistrationRequest, BrokerRegistrationResponse, handle, operation=AclOperation.CLUSTER_ACTION)

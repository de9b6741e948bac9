"""BrokerRegistration (62), versions 0-4: a broker registers its id, endpoints, features and directories.

KIP-631, KIP-858 (directories, version 2), KIP-966 (previous epoch, version 3).
"""

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers.registration import register_broker
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.security.acl_types import AclOperation
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.messages.broker_registration_response import BrokerRegistrationResponse


def handle(
    request: BrokerRegistrationRequest, ctx: RequestContext, controller: Controller
) -> BrokerRegistrationResponse:
    """Return the broker's epoch. ApiError: see `register_broker`."""
    result = register_broker(controller, request, ctx.api_version, ctx.now_ms)
    return BrokerRegistrationResponse(broker_epoch=controller.commit(result, ctx.now_ms))


API = Api(BrokerRegistrationRequest, BrokerRegistrationResponse, handle, operation=AclOperation.CLUSTER_ACTION)

"""UnregisterBroker (64), version 0: an administrator unregisters a broker (KIP-185, KIP-631)."""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers.registration import unregister_broker
from mockraft.server.controller.controller import Controller
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.messages.unregister_broker_response import UnregisterBrokerResponse


def handle(request: UnregisterBrokerRequest, ctx: RequestContext, controller: Controller) -> UnregisterBrokerResponse:
    """Return success. ApiError BROKER_ID_NOT_REGISTERED."""
    controller.commit(unregister_broker(controller, request.broker_id), ctx.now_ms)
    return UnregisterBrokerResponse()


API = Api(UnregisterBrokerRequest, UnregisterBrokerResponse, handle, forwardable=True, operation=AclOperation.ALTER)

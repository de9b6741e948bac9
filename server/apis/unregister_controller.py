"""UnregisterController (94), version 0: an administrator removes the registration of a controller (KIP-1312)."""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers.registration import unregister_controller
from mockraft.server.controller.controller import Controller
from mockraft.wire.messages.unregister_controller_request import UnregisterControllerRequest
from mockraft.wire.messages.unregister_controller_response import UnregisterControllerResponse


def handle(
    request: UnregisterControllerRequest, ctx: RequestContext, controller: Controller
) -> UnregisterControllerResponse:
    """Return success. ApiError as `unregister_controller`."""
    controller.commit(unregister_controller(controller, request.controller_id), ctx.now_ms)
    return UnregisterControllerResponse()


API = Api(
    UnregisterControllerRequest, UnregisterControllerResponse, handle, forwardable=True, operation=AclOperation.ALTER
)

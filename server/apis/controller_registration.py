"""ControllerRegistration (70), version 0: a controller registers its endpoints and features (KIP-919)."""

from mockraft.kafka_api.api import error_with_default_message
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers.registration import register_controller
from mockraft.server.controller.controller import Controller
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest
from mockraft.wire.messages.controller_registration_response import ControllerRegistrationResponse


def handle(
    request: ControllerRegistrationRequest, ctx: RequestContext, controller: Controller
) -> ControllerRegistrationResponse:
    """Return success. ApiError UNSUPPORTED_VERSION below 3.7-IV0."""
    controller.commit(register_controller(controller, request), ctx.now_ms)
    return ControllerRegistrationResponse()


API = Api(
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    handle,
    error_with_default_message(ControllerRegistrationResponse),
    operation=AclOperation.CLUSTER_ACTION,
)

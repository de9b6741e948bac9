"""DescribeCluster (60), versions 0-2: KIP-700, KIP-919 (controllers as endpoints).

On a controller the `brokers` are the registered controllers with a listener of the request's listener name
(ControllerRegistrationsPublisher). Fenced brokers (v2) do not concern it. It requires ALTER on the cluster, checked
after the metadata.version.
"""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.releases import Behaviour
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.apis.authorization import check_cluster_operation, is_allowed_on_cluster
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

BROKER_ENDPOINT = 1
CONTROLLER_ENDPOINT = 2

CLUSTER_OPERATIONS = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
"""Operations on a cluster (AclEntry.supportedOperations)."""


def handle(request: DescribeClusterRequest, ctx: RequestContext, controller: Controller) -> DescribeClusterResponse:
    """Return the controllers of this cluster."""
    if not controller.has(Behaviour.CONTROLLER_REGISTRATION):
        raise ApiError(
            error_codes.UNSUPPORTED_VERSION,
            "Direct-to-controller communication is not supported with the current MetadataVersion.",
        )
    check_cluster_operation(controller, ctx, AclOperation.ALTER)
    endpoint_type = request.endpoint_type
    if endpoint_type not in (BROKER_ENDPOINT, CONTROLLER_ENDPOINT):
        return _refusal(ctx, error_codes.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}")
    if endpoint_type != CONTROLLER_ENDPOINT:
        return _refusal(
            ctx,
            error_codes.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER",
        )
    nodes = [
        DescribeClusterBroker(broker_id=registration.controller_id, host=endpoint.host, port=endpoint.port)
        for registration in controller.image.cluster.controllers.values()
        for endpoint in registration.endpoints
        if endpoint.name == ctx.listener
    ]
    leader_id = controller.raft.leader_id
    response = DescribeClusterResponse(
        endpoint_type=CONTROLLER_ENDPOINT,
        cluster_id=controller.config.cluster_id,
        controller_id=next((node.broker_id for node in nodes if node.broker_id == leader_id), -1),
        brokers=nodes,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _authorized_operations(ctx, controller)
    return response


def _authorized_operations(ctx: RequestContext, controller: Controller) -> int:
    if not is_allowed_on_cluster(controller, ctx, AclOperation.DESCRIBE):
        return 0
    return sum(1 << each for each in CLUSTER_OPERATIONS if is_allowed_on_cluster(controller, ctx, each))


def _refusal(ctx: RequestContext, error_code: int, message: str) -> DescribeClusterResponse:
    # Version 0 has no endpoint type to check (AuthHelper.computeDescribeClusterResponse).
    code = error_codes.INVALID_REQUEST if ctx.api_version == 0 else error_code
    return DescribeClusterResponse(error_code=code, error_message=message)


API = Api(DescribeClusterRequest, DescribeClusterResponse, handle, active_only=False)

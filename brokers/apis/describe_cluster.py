"""DescribeCluster (60): KIP-700, KIP-919 (endpoint types), KIP-1073 (fenced brokers).

Returns the brokers that have a listener with the name of the one that received the request. The controller id is the id
of some live broker, or -1 when that broker is not in the response (AuthHelper.computeDescribeClusterResponse).
"""

from __future__ import annotations

from mockraft.brokers.apis import operations
from mockraft.brokers.apis.api import Api, ApiError, RequestContext
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

BROKERS = 1
CONTROLLERS = 2
NO_CONTROLLER = -1


def handle(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    """Return the brokers of this cluster."""
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        raise _refusal(ctx, error_codes.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    if request.endpoint_type != BROKERS:
        message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        raise _refusal(ctx, error_codes.MISMATCHED_ENDPOINT_TYPE, message)
    image = ctx.image
    nodes = [
        DescribeClusterBroker(
            broker_id=broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced
        )
        for broker_id, broker in sorted(image.brokers.items())
        if (endpoint := broker.endpoints.get(ctx.listener)) is not None
        and (request.include_fenced_brokers or not broker.fenced)
    ]
    alive = [broker.broker_id for broker in image.alive()]
    controller_id = ctx.broker.rng.choice(alive) if alive else NO_CONTROLLER
    response = DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=ctx.broker.config.cluster_id,
        controller_id=controller_id if any(node.broker_id == controller_id for node in nodes) else NO_CONTROLLER,
        brokers=nodes,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = operations.on_cluster(ctx)
    return response


def _refusal(ctx: RequestContext, error_code: int, message: str) -> ApiError:
    # Version 0 has no endpoint type.
    return ApiError(error_codes.INVALID_REQUEST if ctx.api_version == 0 else error_code, message)


API = Api(DescribeClusterRequest, DescribeClusterResponse, handle)

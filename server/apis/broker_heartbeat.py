"""BrokerHeartbeat (63), versions 0-2: a broker reports liveness, its wishes and the state of its directories.

KIP-631, KIP-858 (offline directories, version 1), KIP-1066 (cordoned directories, version 2). Not implemented: a
heartbeat never waits in a queue, so REQUEST_TIMED_OUT is never returned.
"""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers.heartbeat import receive_heartbeat
from mockraft.server.controller.controller import Controller
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse


def handle(request: BrokerHeartbeatRequest, ctx: RequestContext, controller: Controller) -> BrokerHeartbeatResponse:
    """Return the broker's new state. ApiError STALE_BROKER_EPOCH."""
    reply = receive_heartbeat(controller, request, ctx.now_ms)
    return BrokerHeartbeatResponse(
        is_caught_up=reply.is_caught_up, is_fenced=reply.state.is_fenced, should_shut_down=reply.state.should_shut_down
    )


API = Api(BrokerHeartbeatRequest, BrokerHeartbeatResponse, handle, operation=AclOperation.CLUSTER_ACTION)

"""AssignReplicasToDirs (73), version 0: a broker reports the directory of each replica (KIP-858)."""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers.log_dirs import assign_replicas_to_dirs
from mockraft.server.controller.controller import Controller
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from mockraft.wire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse


def handle(
    request: AssignReplicasToDirsRequest, ctx: RequestContext, controller: Controller
) -> AssignReplicasToDirsResponse:
    """Return the request mirrored, with a code per partition. ApiError UNSUPPORTED_VERSION, STALE_BROKER_EPOCH."""
    return controller.commit(assign_replicas_to_dirs(controller, request), ctx.now_ms)


API = Api(AssignReplicasToDirsRequest, AssignReplicasToDirsResponse, handle, operation=AclOperation.CLUSTER_ACTION)

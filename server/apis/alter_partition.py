"""AlterPartition (56), versions 2-3: a leader proposes the ISR of its partitions (KIP-497, KIP-841, KIP-903)."""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.topics.isr_proposals import alter_partition
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest
from mockraft.wire.messages.alter_partition_response import AlterPartitionResponse


def handle(request: AlterPartitionRequest, ctx: RequestContext, controller: Controller) -> AlterPartitionResponse:
    """Return each partition's new state or its code. ApiError STALE_BROKER_EPOCH."""
    return controller.commit(alter_partition(controller, request, ctx.api_version), ctx.now_ms)


API = Api(AlterPartitionRequest, AlterPartitionResponse, handle, operation=AclOperation.CLUSTER_ACTION, is_bulk=True)

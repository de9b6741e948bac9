"""AllocateProducerIds (67), version 0: KIP-730. A broker asks for its next block of producer ids."""

from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.brokers import producer_ids
from mockraft.server.controller.controller import Controller
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse


def handle(
    request: AllocateProducerIdsRequest, ctx: RequestContext, controller: Controller
) -> AllocateProducerIdsResponse:
    """Return the block once its record is written."""
    result = producer_ids.allocate_block(controller, request.broker_id, request.broker_epoch)
    first = controller.commit(result, ctx.now_ms)
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=producer_ids.BLOCK_SIZE)


API = Api(
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    handle,
    forwardable=True,
    operation=AclOperation.CLUSTER_ACTION,
)

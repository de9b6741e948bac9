"""AlterPartitionReassignments (45), versions 0-1: KIP-455, KIP-860 (from version 1 the factor may be kept).

A request with a timeout of zero expires before its turn in Kafka's event queue; any other is done in time.
"""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, error_fields
from mockraft.server.controller.topics.reassignments import Reassigned, alter_reassignments
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from mockraft.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(
    request: AlterPartitionReassignmentsRequest, ctx: RequestContext, controller: Controller
) -> AlterPartitionReassignmentsResponse:
    """Begin, replace or cancel each partition's reassignment, or return its error."""
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    if request.timeout_ms <= 0:
        raise ApiError(error_codes.REQUEST_TIMED_OUT)
    may_change_factor = request.allow_replication_factor_change
    result = alter_reassignments(controller, request.topics, may_change_factor=may_change_factor)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_message=None,
        responses=_responses(controller.commit(result, ctx.now_ms)),
    )


def _responses(reassigned: Reassigned) -> list[ReassignableTopicResponse]:
    return [
        ReassignableTopicResponse(
            name=name,
            partitions=[
                ReassignablePartitionResponse(partition_index=partition_id, **error_fields(refusal))
                for partition_id, refusal in partitions
            ],
        )
        for name, partitions in reassigned
    ]


API = Api(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    handle,
    error_responses.alter_partition_reassignments,
    forwardable=True,
    operation=AclOperation.ALTER,
)

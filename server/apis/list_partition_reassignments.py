"""ListPartitionReassignments (46), version 0: KIP-455. Brokers forward it for every `kafka-topics --describe`.

Not done: authorisation.
"""

from collections.abc import Iterable
from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import Topic
from mockraft.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from mockraft.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(request: Any, _ctx: RequestContext, controller: Controller) -> ListPartitionReassignmentsResponse:
    """Those of the asked partitions (null: of all) that replicas are being added to or removed from.

    What does not exist is left out (ReplicationControlManager.listPartitionReassignments).
    """
    image = controller.image.topics
    if request.topics is None:
        ongoing = [_ongoing(topic, sorted(topic.partitions)) for topic in image.by_id.values()]
    else:
        ongoing = [
            _ongoing(topic, asked.partition_indexes)
            for asked in request.topics
            if (topic := image.by_name.get(asked.name)) is not None
        ]
    return ListPartitionReassignmentsResponse(error_message=None, topics=[each for each in ongoing if each.partitions])


def error(_request: Any, error_code: int, message: str | None) -> ListPartitionReassignmentsResponse:
    """The error for the request as a whole."""
    return ListPartitionReassignmentsResponse(error_code=error_code, error_message=message)


def _ongoing(topic: Topic, partition_ids: Iterable[int]) -> OngoingTopicReassignment:
    found = OngoingTopicReassignment(name=topic.name)
    for partition_id in partition_ids:
        partition = topic.partitions.get(partition_id)
        if partition is not None and partition.is_reassigning:
            found.partitions.append(
                OngoingPartitionReassignment(
                    partition_index=partition_id,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding_replicas),
                    removing_replicas=list(partition.removing_replicas),
                )
            )
    return found


API = Api(
    request=ListPartitionReassignmentsRequest,
    response=ListPartitionReassignmentsResponse,
    handle=handle,
    min_version=0,
    max_version=0,
    error=error,
    forwardable=True,
)

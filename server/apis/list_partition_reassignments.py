"""ListPartitionReassignments (46), version 0: KIP-455. Brokers forward it for every `kafka-topics --describe`."""

from collections.abc import Iterable

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import Topic
from mockraft.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from mockraft.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    request: ListPartitionReassignmentsRequest, _ctx: RequestContext, controller: Controller
) -> ListPartitionReassignmentsResponse:
    """Return the requested partitions (null: all) with replicas being added or removed.

    Unknown partitions are left out (ReplicationControlManager.listPartitionReassignments).
    """
    image = controller.image.topics
    requested: Iterable[tuple[Topic | None, Iterable[int]]]
    if request.topics is None:
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition_id in image.index.reassigning():
            by_topic.setdefault(topic_id, []).append(partition_id)
        requested = [(image.by_id[topic_id], partition_ids) for topic_id, partition_ids in by_topic.items()]
    else:
        requested = [(image.by_name.get(topic.name), topic.partition_indexes) for topic in request.topics]
    ongoing = [_ongoing(topic, partition_ids) for topic, partition_ids in requested if topic is not None]
    return ListPartitionReassignmentsResponse(error_message=None, topics=[each for each in ongoing if each.partitions])


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
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    handle,
    error_responses.list_partition_reassignments,
    forwardable=True,
    active_only=False,
    reads_committed=True,
    operation=AclOperation.DESCRIBE,
)

"""Assignments of replicas to directories (ReplicationControlManager.handleAssignReplicasToDirs; KIP-858)."""

from typing import TYPE_CHECKING

from mockraft.releases import Behaviour
from mockraft.server.controller.brokers.fencing import leader_and_isr_updates
from mockraft.server.controller.image import TopicPartition
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partition_rules import begin_change
from mockraft.wire import error_codes
from mockraft.wire.messages import assign_replicas_to_dirs_response as response
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext


def assign_replicas_to_dirs(
    controller: "ControllerContext", request: AssignReplicasToDirsRequest
) -> ControllerResult[response.AssignReplicasToDirsResponse]:
    """Record the directories; replicas in one that is not online then leave ISR and leadership.

    Directory ids are not checked. The response mirrors the request, with a code for each partition. ApiError
    UNSUPPORTED_VERSION below 3.7-IV2, STALE_BROKER_EPOCH.
    """
    if not controller.has(Behaviour.DIRECTORY_ASSIGNMENT):
        raise ApiError(error_codes.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    controller.check_broker_epoch(request.broker_id, request.broker_epoch)
    registration = controller.image.cluster.brokers[request.broker_id]
    records: list[RecordAt] = []
    offline: dict[TopicPartition, None] = {}
    directories = []
    for directory in request.directories:
        is_online = registration.has_online_dir(directory.id)
        topics = []
        for topic in directory.topics:
            partitions = []
            for partition in topic.partitions:
                place = TopicPartition(topic.topic_id, partition.partition_index)
                code = _refusal(controller, request.broker_id, place)
                if code == error_codes.NONE:
                    records += _assignment(controller, request.broker_id, place, directory.id)
                    if not is_online:
                        offline[place] = None
                partitions.append(response.PartitionData(partition_index=partition.partition_index, error_code=code))
            topics.append(response.TopicData(topic_id=topic.topic_id, partitions=partitions))
        directories.append(response.DirectoryData(id=directory.id, topics=topics))
    records += leader_and_isr_updates(controller, offline, removed=request.broker_id)
    answer = response.AssignReplicasToDirsResponse(directories=directories)
    reason = f"broker {request.broker_id}: assigned replicas to directories"
    return ControllerResult(records, answer, reason, atomic=False)


def _refusal(controller: "ControllerContext", broker_id: int, place: TopicPartition) -> int:
    topic = controller.image.topics.by_id.get(place.topic_id)
    if topic is None:
        return error_codes.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(place.partition_id)
    if partition is None:
        return error_codes.UNKNOWN_TOPIC_OR_PARTITION
    return error_codes.NONE if broker_id in partition.replicas else error_codes.NOT_LEADER_OR_FOLLOWER


def _assignment(
    controller: "ControllerContext", broker_id: int, place: TopicPartition, directory_id: bytes
) -> list[RecordAt]:
    topic = controller.image.topics.by_id[place.topic_id]
    change = begin_change(controller, topic, place.partition_id, election=ElectionType.ONLINE)
    change.directories[broker_id] = directory_id
    record = change.build()
    return [] if record is None else [record]

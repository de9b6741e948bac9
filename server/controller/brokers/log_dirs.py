"""Log directories that brokers report as failed or cordoned.

ReplicationControlManager's handleDirectories… and handleAssignReplicasToDirs; KIP-858, KIP-1066.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockraft.releases import Behaviour
from mockraft.server.controller.brokers.fencing import leader_and_isr_updates
from mockraft.server.controller.image import BrokerRegistration, TopicPartition
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partition_rules import begin_change
from mockraft.wire import directory_ids, error_codes, uuids
from mockraft.wire.messages import assign_replicas_to_dirs_response as response
from mockraft.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext


_LOG_DIRS_VERSION = 2
_CORDONED_VERSION = 3
_UNKNOWN = (directory_ids.MIGRATING, directory_ids.UNASSIGNED)


def directories_offline(controller: ControllerContext, broker_id: int, offline_dirs: Sequence[bytes]) -> list[RecordAt]:
    """Handle failed directories: their replicas leave ISR and leadership; the registration changes last.

    Unregistered directories are ignored, so a repeated report writes nothing.
    """
    registration = controller.image.cluster.brokers[broker_id]
    reported = set(offline_dirs)
    newly_offline = [directory for directory in registration.log_dirs if directory in reported]
    if not newly_offline:
        return []
    records = []
    for directory in newly_offline:
        places = controller.image.topics.index.in_directory(directory)
        records += leader_and_isr_updates(controller, places, removed=broker_id)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=registration.broker_epoch,
        log_dirs=[directory for directory in registration.log_dirs if directory not in reported],
    )
    if controller.has(Behaviour.CORDONED_DIRS_ARE_ALWAYS_REPORTED):
        change.cordoned_log_dirs = list(registration.cordoned_log_dirs or ())
    return [*records, RecordAt(change, _LOG_DIRS_VERSION)]


def directories_cordoned(
    controller: ControllerContext, registration: BrokerRegistration, cordoned_dirs: Sequence[bytes] | None
) -> list[RecordAt]:
    """Handle the list of directories that take no new replicas; None: unchanged."""
    if cordoned_dirs is None:
        return []
    known = registration.cordoned_log_dirs
    if known == (*cordoned_dirs,):
        return []
    if known is None and controller.has(Behaviour.CORDONED_DIRS_ARE_ALWAYS_REPORTED):
        known = ()
    if known is not None and set(known) == set(cordoned_dirs):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=registration.broker_id, broker_epoch=registration.broker_epoch, cordoned_log_dirs=list(cordoned_dirs)
    )
    return [RecordAt(change, _CORDONED_VERSION)]


def check_registered(registration: BrokerRegistration, offline_dirs: Sequence[bytes]) -> None:
    """Raise ApiError LOG_DIR_NOT_FOUND for a directory that this registration never had (KIP-858's text)."""
    for directory in offline_dirs:
        if directory not in registration.log_dirs and directory not in registration.offline_log_dirs:
            message = f"Broker {registration.broker_id} did not register log directory {uuids.text_of(directory)}"
            raise ApiError(error_codes.LOG_DIR_NOT_FOUND, message)


def waits_for_assignments(controller: ControllerContext, registration: BrokerRegistration) -> bool:
    """Return True if a broker with several directories has replicas without a directory (KIP-858's text)."""
    if len(registration.log_dirs) <= 1:
        return False
    # Reserved directory ids have no index: this scans every partition, but only at a fenced broker's heartbeats.
    return any(
        registration.broker_id in partition.replicas and partition.directory(registration.broker_id) in _UNKNOWN
        for topic in controller.image.topics.by_id.values()
        for partition in topic.partitions.values()
    )


def assign_replicas_to_dirs(
    controller: ControllerContext, request: AssignReplicasToDirsRequest
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


def _refusal(controller: ControllerContext, broker_id: int, place: TopicPartition) -> int:
    topic = controller.image.topics.by_id.get(place.topic_id)
    if topic is None:
        return error_codes.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(place.partition_id)
    if partition is None:
        return error_codes.UNKNOWN_TOPIC_OR_PARTITION
    return error_codes.NONE if broker_id in partition.replicas else error_codes.NOT_LEADER_OR_FOLLOWER


def _assignment(
    controller: ControllerContext, broker_id: int, place: TopicPartition, directory_id: bytes
) -> list[RecordAt]:
    topic = controller.image.topics.by_id[place.topic_id]
    change = begin_change(controller, topic, place.partition_id, election=ElectionType.ONLINE)
    change.directories[broker_id] = directory_id
    record = change.build()
    return [] if record is None else [record]

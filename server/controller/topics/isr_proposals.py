"""ISR changes proposed by leaders (ReplicationControlManager.alterPartition; KIP-497, KIP-841, KIP-903)."""

from typing import TYPE_CHECKING

from mockraft.server.controller.image import Partition, Topic
from mockraft.server.controller.image.topics import NO_LEADER_CHANGE, RECOVERED, RECOVERING
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.server.controller.topics.partition_rules import begin_change
from mockraft.wire import error_codes
from mockraft.wire.messages import alter_partition_response as response
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

_ISR_WITH_EPOCHS_SINCE = 3
_ANY_EPOCH = -1


def alter_partition(
    controller: "ControllerContext", request: AlterPartitionRequest, request_version: int
) -> ControllerResult[response.AlterPartitionResponse]:
    """Apply the valid ISR proposals, and return each partition's new state or error.

    ApiError STALE_BROKER_EPOCH; not checked for a request without topics.
    """
    if not request.topics:
        return ControllerResult([], response.AlterPartitionResponse())
    controller.check_broker_epoch(request.broker_id, request.broker_epoch)
    records: list[RecordAt] = []
    answers = []
    for topic_data in request.topics:
        topic = controller.image.topics.by_id.get(topic_data.topic_id)
        partitions = []
        for data in topic_data.partitions:
            if topic is None:
                partitions.append(_refused(data, error_codes.UNKNOWN_TOPIC_ID))
                continue
            isr = _proposed_isr(data, request_version)
            code = _refusal(controller, request.broker_id, topic, data, isr)
            if code != error_codes.NONE:
                partitions.append(_refused(data, code))
                continue
            partitions.append(_change(controller, request.broker_id, topic, data, isr, records))
        answers.append(response.TopicData(topic_id=topic_data.topic_id, partitions=partitions))
    reason = f"broker {request.broker_id}: altered ISRs"
    return ControllerResult(records, response.AlterPartitionResponse(topics=answers), reason, atomic=False)


def _proposed_isr(data: PartitionData, request_version: int) -> list[BrokerState]:
    if request_version >= _ISR_WITH_EPOCHS_SINCE:
        return data.new_isr_with_epochs
    return [BrokerState(broker_id=broker_id, broker_epoch=_ANY_EPOCH) for broker_id in data.new_isr]


def _refusal(
    controller: "ControllerContext", broker_id: int, topic: Topic, data: PartitionData, isr: list[BrokerState]
) -> int:
    """Return the error code of the first rule that the proposal breaks (validateAlterPartitionData)."""
    partition = topic.partitions.get(data.partition_index)
    if partition is None:
        return error_codes.UNKNOWN_TOPIC_OR_PARTITION
    # A leader with newer state may be right: the error makes it look for the controller again.
    if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
        return error_codes.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return error_codes.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return error_codes.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return error_codes.INVALID_UPDATE_VERSION
    members = [member.broker_id for member in isr]
    if not _is_valid_isr(partition, members) or partition.leader not in members:
        return error_codes.INVALID_REQUEST
    if not RECOVERED <= data.leader_recovery_state <= RECOVERING:
        raise ApiError(
            error_codes.UNKNOWN_SERVER_ERROR, f"Value {data.leader_recovery_state} is not a valid leader recovery state"
        )
    if data.leader_recovery_state == RECOVERING and (len(members) > 1 or partition.leader_recovery_state == RECOVERED):
        return error_codes.INVALID_REQUEST
    if not all(_is_eligible(controller, member) for member in isr):
        return error_codes.INELIGIBLE_REPLICA
    return error_codes.NONE


def _is_valid_isr(partition: Partition, members: list[int]) -> bool:
    return (
        len(set(members)) == len(members)
        and all(member >= 0 for member in members)
        and set(members) <= set(partition.replicas)
    )


def _is_eligible(controller: "ControllerContext", member: BrokerState) -> bool:
    registration = controller.image.cluster.brokers.get(member.broker_id)
    return (
        registration is not None
        and registration.is_active
        and member.broker_epoch in (_ANY_EPOCH, registration.broker_epoch)
    )


def _change(
    controller: "ControllerContext",
    broker_id: int,
    topic: Topic,
    data: PartitionData,
    isr: list[BrokerState],
    records: list[RecordAt],
) -> response.PartitionData:
    partition = topic.partitions[data.partition_index]
    change = begin_change(controller, topic, data.partition_index)
    change.isr = [member.broker_id for member in isr]
    change.leader_recovery_state = data.leader_recovery_state
    record = change.build()
    if record is not None:
        records.append(record)
        partition = partition.merge(record.record)
        if record.record.leader not in (broker_id, NO_LEADER_CHANGE):
            # The proposal completed a reassignment that moved the leadership: the sender must refresh its state.
            return _refused(data, error_codes.NEW_LEADER_ELECTED)
    return response.PartitionData(
        partition_index=data.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _refused(data: PartitionData, code: int) -> response.PartitionData:
    return response.PartitionData(partition_index=data.partition_index, error_code=code)

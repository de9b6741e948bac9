"""Partition reassignments (ReplicationControlManager.alterPartitionReassignments; KIP-455, KIP-860).

A reassignment is completed by the first change of the partition that finds its new replicas in sync.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockraft.releases import Behaviour
from mockraft.server.controller.image import Partition, Topic
from mockraft.server.controller.result import RECORDS_PER_BATCH_MAX, ApiError, ControllerResult
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partition_rules import begin_change, topic_election
from mockraft.server.controller.topics.topics import check_manual_assignment, first_cordoned, invalid_assignment
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_reassignments_request import ReassignablePartition, ReassignableTopic
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

Reassigned = list[tuple[str, list[tuple[int, ApiError | None]]]]
"""By topic name: each partition and the error of its reassignment."""


def alter_reassignments(
    controller: "ControllerContext", topics: Sequence[ReassignableTopic], *, may_change_factor: bool
) -> ControllerResult[Reassigned]:
    """Begin, replace or cancel (replicas None) the reassignment of each partition; one batch.

    Kafka's quirk: changes beyond one batch are refused with UNKNOWN_SERVER_ERROR, partition by partition.
    """
    records: list[RecordAt] = []
    results: Reassigned = []
    for requested in topics:
        topic = controller.image.topics.by_name.get(requested.name)
        if topic is None:
            unknown = ApiError(
                error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {requested.name}."
            )
            results.append((requested.name, [(each.partition_index, unknown) for each in requested.partitions]))
            continue
        partitions: list[tuple[int, ApiError | None]] = []
        for target in requested.partitions:
            refusal = None
            try:
                record = _alter(controller, topic, target, may_change_factor)
                if record is not None:
                    if len(records) == RECORDS_PER_BATCH_MAX:
                        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
                    records.append(record)
            except ApiError as error:
                refusal = error.kept()
            partitions.append((target.partition_index, refusal))
        results.append((requested.name, partitions))
    return ControllerResult(records, results, "reassignments altered")


def _alter(
    controller: "ControllerContext", topic: Topic, target: ReassignablePartition, may_change_factor: bool
) -> RecordAt | None:
    partition = topic.partitions.get(target.partition_index)
    if partition is None:
        message = f"Unable to find partition {topic.name}:{target.partition_index}."
        raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, message)
    if target.replicas is None:
        return _cancel(controller, topic, target.partition_index, partition)
    # The KIP's text refuses them later, with INELIGIBLE_REPLICA.
    allows_cordoned = controller.has(Behaviour.NO_REASSIGNMENT_TO_CORDONED_BROKERS)
    check_manual_assignment(controller, target.replicas, None, allows_cordoned=allows_cordoned)
    if not may_change_factor:
        _check_factor(partition, len(target.replicas))
    return _change(controller, topic, target.partition_index, partition, target.replicas)


def _cancel(controller: "ControllerContext", topic: Topic, partition_id: int, partition: Partition) -> RecordAt | None:
    """Revert to the replicas without those being added; losing records must be allowed by the topic."""
    if not partition.is_reassigning:
        raise ApiError(error_codes.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    isr = [replica for replica in partition.isr if replica not in partition.adding_replicas]
    election = topic_election(controller, topic)
    if not isr:
        if not replicas:
            raise invalid_assignment("Invalid replica assignment: addingReplicas contains all replicas.")
        if election is not ElectionType.UNCLEAN:
            raise invalid_assignment(
                f"Unable to revert partition assignment for {topic.name}:{partition_id} because it would require an "
                "unclean leader election."
            )
        isr = replicas[:1]
    change = begin_change(controller, topic, partition_id, election=election)
    change.isr, change.replicas, change.adding, change.removing = isr, replicas, (), ()
    return change.build()


def _check_factor(partition: Partition, factor: int) -> None:
    replicas = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
    if len(replicas) != factor:
        message = f"The replication factor is changed from {len(replicas)} to {factor}"
        raise ApiError(error_codes.INVALID_REPLICATION_FACTOR, message)


def _change(
    controller: "ControllerContext", topic: Topic, partition_id: int, partition: Partition, target: Sequence[int]
) -> RecordAt | None:
    """Set the target, with the leaving replicas after it until it is reached.

    Without replicas to add or to remove, those of a reassignment in progress are kept.
    """
    adding = sorted({*target} - {*partition.replicas})
    removing = sorted({*partition.replicas} - {*target})
    if controller.has(Behaviour.NO_REASSIGNMENT_TO_CORDONED_BROKERS):
        cordoned = first_cordoned(controller, adding)
        if cordoned is not None:
            message = f"Broker {cordoned} has no log directory that is not cordoned."
            raise ApiError(error_codes.INELIGIBLE_REPLICA, message)
    change = begin_change(controller, topic, partition_id, election=ElectionType.ONLINE)
    change.replicas = [*target, *removing]
    change.removing = removing or partition.removing_replicas
    change.adding = adding or partition.adding_replicas
    return change.build()

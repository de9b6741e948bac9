"""New partitions of existing topics (ReplicationControlManager.createPartitions; KIP-195)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mockraft.releases import Behaviour
from mockraft.server.controller.image import Topic
from mockraft.server.controller.result import RECORDS_PER_BATCH_MAX, ApiError, ControllerResult, check_fits_one_batch
from mockraft.server.controller.settings.mutation_quota import NO_QUOTA, MutationQuota
from mockraft.server.controller.topics.placement import place
from mockraft.server.controller.topics.topics import (
    PARTITIONS_PER_REQUEST_MAX,
    assigned_partition,
    invalid_assignment,
    placed_partitions,
)
from mockraft.wire import error_codes
from mockraft.wire.java_values import in_timeline_map_order
from mockraft.wire.messages.create_partitions_request import CreatePartitionsTopic
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext


def create_partitions(
    controller: ControllerContext, topics: Sequence[CreatePartitionsTopic], quota: MutationQuota = NO_QUOTA
) -> ControllerResult[Mapping[str, ApiError | None]]:
    """Generate records of the new partitions, one batch; per name its error. Names are distinct.

    ApiError POLICY_VIOLATION for all topics if they are more than one batch, or get too many partitions. Kafka's quirk
    before 4.4: a topic that is too much for one batch is refused with UNKNOWN_SERVER_ERROR, yet those of its partitions
    that still fit are written.
    """
    are_counted = controller.has(Behaviour.ADDED_PARTITIONS_ARE_COUNTED)
    if are_counted and _added(controller, topics) > PARTITIONS_PER_REQUEST_MAX:
        message = "Excessively large number of additional partitions per request."
        raise ApiError(error_codes.POLICY_VIOLATION, message)
    records: list[RecordAt] = []
    results: dict[str, ApiError | None] = {}
    for requested in topics:
        results[requested.name] = None
        try:
            _add_partitions(controller, requested, records, quota)
        except ApiError as refusal:
            results[requested.name] = refusal.kept()
    check_fits_one_batch(results)
    return ControllerResult(records, results, "partitions created")


def _added(controller: ControllerContext, topics: Sequence[CreatePartitionsTopic]) -> int:
    """Return the number of partitions that existing topics would get (validateTotalNumberOfPartitions)."""
    known = ((controller.image.topics.by_name.get(requested.name), requested.count) for requested in topics)
    return sum(max(count - len(topic.partitions), 0) for topic, count in known if topic is not None)


def _add_partitions(
    controller: ControllerContext, requested: CreatePartitionsTopic, records: list[RecordAt], quota: MutationQuota
) -> None:
    topic = controller.image.topics.by_name.get(requested.name)
    if topic is None:
        raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(topic.partitions)
    if requested.count == count:
        raise ApiError(error_codes.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if requested.count < count:
        about = f"The topic {requested.name} currently has {count} partition(s)"
        message = f"{about}; {requested.count} would not be an increase."
        raise ApiError(error_codes.INVALID_PARTITIONS, message)
    added = requested.count - count
    # One more than fits is enough to detect that it is too much.
    room = RECORDS_PER_BATCH_MAX - len(records)
    if requested.assignments is not None and len(requested.assignments) != added:
        raise invalid_assignment(
            f"Attempted to add {added} additional partition(s), but only {len(requested.assignments)} assignment(s) "
            "were specified."
        )
    quota.draw(added)
    factor = _replication_factor(topic)
    if requested.assignments is None:
        usable = controller.usable_racks.of(controller.image.cluster, controller.heartbeats)
        placed = place(
            usable, min(added, room + 1), factor, controller.rng, names_cordoning=controller.has(Behaviour.CORDONING)
        )
        partitions = placed_partitions(controller, placed, factor)
    else:
        partitions = [
            assigned_partition(controller, partition_id, assignment.broker_ids, factor)
            for partition_id, assignment in enumerate(requested.assignments, count)
        ]
    version = controller.image.version
    records += [
        partition.to_record(topic.topic_id, partition_id, version)
        for partition_id, partition in enumerate(partitions[:room], count)
    ]
    if len(partitions) > room:
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)


def _replication_factor(topic: Topic) -> int:
    """Return the size of the partition that Kafka's map iterates first, not necessarily partition 0."""
    (_, first), *_ = in_timeline_map_order(topic.partitions, size_max=topic.count_at_change + 1)
    return len(first.replicas)

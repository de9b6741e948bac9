"""Topics: the records that create and delete them (the topic side of Kafka's ReplicationControlManager)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.kafka_configs.config_keys import TOPIC
from mockraft.kafka_configs.config_values import Operation
from mockraft.releases import Behaviour
from mockraft.server.controller.image import Partition
from mockraft.server.controller.result import (
    RECORDS_PER_BATCH_MAX,
    ApiError,
    ControllerResult,
    check_fits_one_batch,
    invalid_request,
)
from mockraft.server.controller.settings import configs
from mockraft.server.controller.settings.config_rules import ConfigNode
from mockraft.server.controller.settings.configs import ConfigOperation, EffectiveConfig
from mockraft.server.controller.settings.mutation_quota import NO_QUOTA, MutationQuota
from mockraft.server.controller.settings.policies import NewTopic, ask
from mockraft.server.controller.topics.placement import default_dir, invalid_factor, place
from mockraft.wire import error_codes
from mockraft.wire.messages.create_topics_request import CreatableTopic
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.topic_names import collision_key, reason_invalid

if TYPE_CHECKING:
    from random import Random

    from mockraft.server.controller.context import ControllerContext

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
USE_DEFAULT: Final = -1

_FIRST_SIX_BITS_OF_DASH: Final = 62


class CreatedTopic(NamedTuple):
    """Result of a well-formed request for a topic; its id is 16 bytes."""

    topic_id: bytes
    partitions: int
    replication_factor: int
    configs: Sequence[EffectiveConfig]


def create_topics(
    controller: ControllerContext,
    topics: Sequence[CreatableTopic],
    *,
    forwarded: bool = False,
    quota: MutationQuota = NO_QUOTA,
) -> ControllerResult[dict[str, CreatedTopic | ApiError]]:
    """Generate records of all valid topics, one batch; per name the topic or its error. Names are distinct.

    ApiError POLICY_VIOLATION for all of them when they are too much for one batch.
    """
    if controller.has(Behaviour.PARTITION_COUNT_IS_NAMED):
        _check_total_partitions(controller, topics)
    results: dict[str, CreatedTopic | ApiError] = dict(_invalid_names(controller, topics))
    records: list[RecordAt] = []
    node = configs.validating_node(controller)
    for topic in topics:
        if topic.name not in results:
            try:
                results[topic.name], topic_records = _create_topic(controller, topic, node, forwarded, quota)
                records += topic_records
            except configs.BrokenOperationError:
                raise
            except ApiError as refusal:
                results[topic.name] = refusal.kept()
    check_fits_one_batch(records)
    return ControllerResult(records, results, "topics created" if records else "")


def delete_topics(
    controller: ControllerContext, topic_ids: Iterable[bytes], quota: MutationQuota = NO_QUOTA
) -> ControllerResult[dict[bytes, ApiError | None]]:
    """Generate records that delete these existing topics, and per topic None or its error.

    Kafka's quirk: topics beyond one batch are refused with UNKNOWN_SERVER_ERROR.
    """
    records: list[RecordAt] = []
    results: dict[bytes, ApiError | None] = {}
    for topic_id in topic_ids:
        results[topic_id] = None
        try:
            quota.draw(len(controller.image.topics.by_id[topic_id].partitions))
            if len(records) == RECORDS_PER_BATCH_MAX:
                raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
            records.append(RecordAt(RemoveTopicRecord(topic_id=topic_id), 0))
        except ApiError as refusal:
            results[topic_id] = refusal.kept()
    return ControllerResult(records, results, "topics deleted" if records else "")


def random_topic_id(rng: Random, taken: Container[bytes]) -> bytes:
    """Return an unused version 4 uuid whose text does not begin with a dash (Uuid.randomUuid).

    A controller restarted with the same seed may draw ids again that are in its log already.
    """
    while True:
        uuid = bytearray(rng.randbytes(16))
        uuid[6] = uuid[6] & 0x0F | 0x40
        uuid[8] = uuid[8] & 0x3F | 0x80
        topic_id = bytes(uuid)
        if uuid[0] >> 2 != _FIRST_SIX_BITS_OF_DASH and topic_id not in taken:
            return topic_id


def _check_total_partitions(controller: ControllerContext, topics: Sequence[CreatableTopic]) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == USE_DEFAULT:
            total += controller.config.num_partitions
        else:
            total += max(0, topic.num_partitions)
    if total > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(error_codes.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _invalid_names(controller: ControllerContext, topics: Sequence[CreatableTopic]) -> dict[str, ApiError]:
    existing = controller.image.topics.by_name
    invalid = {}
    for topic in topics:
        reason = reason_invalid(topic.name)
        key = collision_key(topic.name)
        if topic.name in existing:
            invalid[topic.name] = ApiError(error_codes.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        elif key is not None and key in controller.image.topics.colliding:
            other = next(iter(controller.image.topics.colliding[key]))
            message = f"Topic '{topic.name}' collides with existing topic: {other}"
            invalid[topic.name] = ApiError(error_codes.INVALID_TOPIC_EXCEPTION, message)
        elif reason is not None:
            invalid[topic.name] = ApiError(error_codes.INVALID_TOPIC_EXCEPTION, reason)
    return invalid


def _create_topic(
    controller: ControllerContext, topic: CreatableTopic, node: ConfigNode, forwarded: bool, quota: MutationQuota
) -> tuple[CreatedTopic, list[RecordAt]]:
    null_configs = [config.name for config in topic.configs if config.value is None]
    if null_configs:
        names = ",".join(null_configs)
        raise ApiError(error_codes.INVALID_CONFIG, f"Null value not supported for topic configs: {names}")
    own = {config.name: config.value or "" for config in topic.configs}
    records: list[RecordAt] = []
    if own:
        changes = {name: ConfigOperation(Operation.SET, value) for name, value in own.items()}
        records = configs.alter_resource(
            controller, (TOPIC, topic.name), changes, node, is_new=True, forwarded=forwarded
        )
        records += configs.clear_elr_records(controller, records)
    partitions = _assigned(controller, topic) if topic.assignments else _placed(controller, topic)
    _check_policy(controller, topic, own, partitions)
    quota.draw(len(partitions))
    topic_id = random_topic_id(controller.rng, controller.image.topics.by_id)
    records.insert(0, RecordAt(TopicRecord(name=topic.name, topic_id=topic_id), 0))
    version = controller.image.version
    records += [partition.to_record(topic_id, index, version) for index, partition in enumerate(partitions)]
    effective = configs.effective_topic_configs(controller, own)
    return CreatedTopic(topic_id, len(partitions), len(partitions[0].replicas), effective), records


def _check_policy(
    controller: ControllerContext, topic: CreatableTopic, own: Mapping[str, str], partitions: Sequence[Partition]
) -> None:
    if topic.assignments:
        assigned = {index: list(each.replicas) for index, each in enumerate(partitions)}
        new = NewTopic(topic.name, None, None, assigned, own)
    else:
        new = NewTopic(topic.name, len(partitions), len(partitions[0].replicas), None, own)
    ask(controller, controller.config.create_topic_policy, new)


def _assigned(controller: ControllerContext, topic: CreatableTopic) -> list[Partition]:
    if topic.replication_factor != USE_DEFAULT:
        raise invalid_request("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != USE_DEFAULT:
        raise invalid_request("A manual partition assignment was specified, but numPartitions was not set to -1.")
    partitions: dict[int, Partition] = {}
    replication_factor = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in partitions:
            raise invalid_assignment(f"Found multiple manual partition assignments for partition {index}")
        partitions[index] = assigned_partition(controller, index, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
    if any(index not in partitions for index in range(len(partitions))):
        raise invalid_assignment("partitions should be a consecutive 0-based integer sequence")
    return [partitions[index] for index in range(len(partitions))]


def assigned_partition(
    controller: ControllerContext, partition_id: int, replicas: Sequence[int], replication_factor: int | None
) -> Partition:
    """Return a new partition with these replicas. ApiError INVALID_REPLICA_ASSIGNMENT."""
    check_new_assignment(controller, replicas, replication_factor)
    partition = _new_partition(controller, replicas)
    if partition is None:
        raise invalid_assignment(
            f"All brokers specified in the manual partition assignment for partition {partition_id} are fenced or in "
            "controlled shutdown."
        )
    return partition


def check_new_assignment(
    controller: ControllerContext, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Check as `check_manual_assignment`, for a new partition; a proposal also forbids cordoned brokers."""
    check_manual_assignment(controller, replicas, replication_factor)
    if controller.has(Behaviour.NO_ASSIGNMENT_TO_CORDONED_BROKERS):
        cordoned = first_cordoned(controller, replicas)
        if cordoned is not None:
            raise invalid_assignment(
                f"The manual partition assignment includes broker {cordoned}, but it has no log directory that is not "
                "cordoned."
            )


def first_cordoned(controller: ControllerContext, broker_ids: Iterable[int]) -> int | None:
    """Return the first of these registered brokers whose log directories are all cordoned."""
    brokers = controller.image.cluster.brokers
    return next((broker_id for broker_id in broker_ids if not brokers[broker_id].has_uncordoned_log_dirs), None)


def check_manual_assignment(
    controller: ControllerContext,
    replicas: Sequence[int],
    replication_factor: int | None,
    *,
    allows_cordoned: bool = False,
) -> None:
    """Raise ApiError INVALID_REPLICA_ASSIGNMENT unless all are registered, distinct and of the expected number.

    Since 4.4 brokers whose log directories are all cordoned are refused, too, unless `allows_cordoned`.
    """
    if not replicas:
        raise invalid_assignment("The manual partition assignment includes an empty replica list.")
    refuses_cordoned = not allows_cordoned and controller.has(Behaviour.CORDONED_BROKERS_GET_NO_REPLICAS)
    previous = None
    for broker_id in sorted(replicas):
        if broker_id not in controller.image.cluster.brokers:
            raise invalid_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if refuses_cordoned and first_cordoned(controller, [broker_id]) is not None:
            raise invalid_assignment(
                f"The manual partition assignment includes broker {broker_id}, but all its log directories are "
                "cordoned."
            )
        if broker_id == previous:
            raise invalid_assignment(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise invalid_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _placed(controller: ControllerContext, topic: CreatableTopic) -> list[Partition]:
    if topic.replication_factor < USE_DEFAULT or topic.replication_factor == 0:
        raise invalid_factor("Replication factor must be larger than 0, or -1 to use the default value.")
    if topic.num_partitions < USE_DEFAULT or topic.num_partitions == 0:
        message = "Number of partitions was set to an invalid non-positive value."
        raise ApiError(error_codes.INVALID_PARTITIONS, message)
    config = controller.config
    count = config.num_partitions if topic.num_partitions == USE_DEFAULT else topic.num_partitions
    factor = topic.replication_factor
    if factor == USE_DEFAULT:
        factor = config.default_replication_factor
    try:
        placed = place(
            controller.usable_racks.of(controller.image.cluster, controller.heartbeats),
            count,
            factor,
            controller.rng,
            names_cordoning=controller.has(Behaviour.CORDONING),
        )
    except ApiError as refusal:
        raise invalid_factor(f"Unable to replicate the partition {factor} time(s): {refusal.message}") from None
    return placed_partitions(controller, placed, factor)


def placed_partitions(
    controller: ControllerContext, placed: Iterable[Sequence[int]], replication_factor: int
) -> list[Partition]:
    """Return new partitions on placed replicas. ApiError INVALID_REPLICATION_FACTOR if no broker of one is active."""
    made: dict[tuple[int, ...], Partition] = {}  # partitions are values, and many have the same replicas
    partitions = []
    for replicas in map(tuple, placed):
        if replicas not in made:
            partition = _new_partition(controller, replicas)
            if partition is None:
                raise invalid_factor(
                    f"Unable to replicate the partition {replication_factor} time(s): All brokers are currently fenced "
                    "or in controlled shutdown."
                )
            made[replicas] = partition
        partitions.append(made[replicas])
    return partitions


def _new_partition(controller: ControllerContext, replicas: Sequence[int]) -> Partition | None:
    """Return a new partition: in sync are the active replicas, the first of them leads; None if there is none."""
    isr = tuple(broker_id for broker_id in replicas if controller.is_active(broker_id))
    if not isr:
        return None
    return Partition(
        replicas=tuple(replicas),
        directories=tuple(default_dir(controller, broker_id) for broker_id in replicas),
        isr=isr,
        leader=isr[0],
    )


def invalid_assignment(message: str) -> ApiError:
    """Return an INVALID_REPLICA_ASSIGNMENT error."""
    return ApiError(error_codes.INVALID_REPLICA_ASSIGNMENT, message)

"""Requests of the client of a simulated cluster. A write is sent once: without a response its outcome is unknown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mockraft.releases import Behaviour
from mockraft.wire import error_codes, record_batch
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from .world import World

GROUP = 32
PRODUCE_VERSION = 13


def create_topic(world: World, name: str, partitions: int) -> None:
    """Create a topic with a replica on each broker; try again until it is there."""
    if world.topic(name) is not None:
        return
    world.later(400, lambda: create_topic(world, name, partitions))
    configs = [CreatableTopicConfig(name="min.insync.replicas", value=str(world.setup.min_insync_replicas))]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=world.setup.brokers, assignments=[], configs=configs
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5_000)

    def answered(response: Any) -> None:
        if response.topics[0].error_code == error_codes.NONE:
            world.acknowledged_topics.add(name)

    _ask_active(world, request, 7, answered)


def alter_config(world: World, number: int) -> None:
    """Set a config of a group that is named once."""
    group, value = f"g{number}", str(45_000 + number)
    config = AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[config])

    def answered(response: Any) -> None:
        if response.responses[0].error_code == error_codes.NONE:
            world.acknowledged_configs[group] = value

    _ask_active(world, IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1, answered)


def reassign(world: World, topic: str, replicas: tuple[int, ...]) -> None:
    """Move the first partition of a topic to these brokers, unless it is being moved.

    Kafka never ends a reassignment that removes a replica which is still being added, and with ELR it elects nobody if
    the only eligible replica is one that a reassignment dropped; so none is dropped then.
    """
    topic_id = world.topic(topic)
    if topic_id is None or world.partitions()[topic_id, 0].is_reassigning:
        return
    if world.image.has(Behaviour.ELR):
        replicas = (*replicas, *({1, 2, 3} - {*replicas}))
    partition = ReassignablePartition(partition_index=0, replicas=list(replicas))
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[partition])])
    _ask_active(world, request, 0, ignored)


def produce(world: World, topic: str, partition: int, value: bytes, count: int) -> None:
    """Produce records one after the other to the leader, each with acks=all."""
    topic_id = world.topic(topic)
    found = None if topic_id is None else world.partitions().get((topic_id, partition))
    if topic_id is None or found is None or found.leader == -1:
        return
    for number in range(count):
        record = b"%s/%d;" % (value, number)
        data = PartitionProduceData(
            index=partition,
            records=record_batch.encode([record], base_offset=0, leader_epoch=0, timestamp_ms=world.now_ms),
        )
        request = ProduceRequest(
            acks=-1, timeout_ms=3_000, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])]
        )
        answered = partial(_produced, world, topic, partition, record)
        world.client.request(f"b{found.leader}", request, PRODUCE_VERSION, answered)


def _produced(world: World, topic: str, partition: int, value: bytes, response: Any) -> None:
    answer = response.responses[0].partition_responses[0]
    if answer.error_code == error_codes.NONE:
        world.acknowledge(topic, partition, answer.base_offset, value)


def take_producer_id(world: World, name: str) -> None:
    """Take an id for a producer from a broker."""

    def answered(response: Any) -> None:
        if response.error_code == error_codes.NONE:
            world.producer_ids.append(response.producer_id)

    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
    world.client.request(name, request, 4, answered)


def _ask_active(world: World, request: Any, version: int, answered: Callable[[Any], None]) -> None:
    for controller in world.active():
        world.client.request(controller.name, request, version, answered)


def ignored(response: Any) -> None:
    """Take no notice."""

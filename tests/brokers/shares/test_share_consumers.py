"""librdkafka's share consumer on simulated brokers, and what becomes of records when brokers and connections end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from mockraft import Controller, SyncController
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest

from ...topics import ask

PROPERTIES = {"group.share.record.lock.duration.ms": "1500", "group.share.heartbeat.interval.ms": "100"}


@pytest.fixture
def cluster() -> Iterator[SyncController]:
    """Two brokers that lead a partition of `orders` each; the records 0 to 3 are there, and in the one of `teas`."""
    with Controller.sync() as controller:
        for broker_id in (1, 2):
            controller.start_broker(broker_id, properties=PROPERTIES)
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        reset = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        group = ConfigResource(ResourceType.GROUP, "kitchen", incremental_configs=[reset])
        admin.incremental_alter_configs([group])[group].result(10)
        for created in admin.create_topics([NewTopic("orders", 2, 2), NewTopic("teas", 1, 2)]).values():
            created.result(10)
        producer = Producer({"bootstrap.servers": controller.bootstrap_servers})
        for number in range(4):
            producer.produce("orders", str(number), partition=number % 2)
            producer.produce("teas", str(number))
        producer.flush(10)
        yield controller


@contextmanager
def consumer(cluster: SyncController, topic: str) -> Iterator[ShareConsumer]:
    settings: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "kitchen"}
    with ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"}) as made:
        made.subscribe([topic])
        yield made


def read(consumer: ShareConsumer, count: int, kind: AcknowledgeType) -> dict[str, int | None]:
    """Values of so many records with their deliveries; acknowledge them."""
    found: dict[str, int | None] = {}
    while len(found) < count:
        for message in consumer.poll(10):
            assert message.error() is None
            found[(message.value() or b"").decode()] = message.delivery_count()
            consumer.acknowledge(message, kind)
        assert not any(consumer.commit_sync().values())
    return found


def offsets(cluster: SyncController) -> list[tuple[int, int, int]]:
    """Partition, start offset and lag as the group's coordinator has them from both leaders."""
    group = DescribeShareGroupOffsetsRequestGroup(group_id="kitchen", topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[group])
    answers = [asyncio.run(ask(each.bootstrap_servers, request)).groups[0] for each in cluster.brokers.values()]
    (described,) = [each for each in answers if not each.error_code]
    return [(each.partition_index, each.start_offset, each.lag) for each in described.topics[0].partitions]


def test_released_and_unacknowledged_records_are_delivered_again(cluster: SyncController) -> None:
    with consumer(cluster, "teas") as first:
        assert read(first, 4, AcknowledgeType.RELEASE) == dict.fromkeys("0123", 1)
        assert [each.delivery_count() for each in first.poll(10)] == [2] * 4
        with consumer(cluster, "teas") as second:
            assert read(second, 4, AcknowledgeType.ACCEPT) == dict.fromkeys("0123", 3), "their locks have ended"


def test_a_new_leader_begins_anew_and_members_join_a_new_coordinator(cluster: SyncController) -> None:
    finding = FindCoordinatorRequest(coordinator_keys=["kitchen"])
    lost = asyncio.run(ask(cluster.brokers[1].bootstrap_servers, finding)).coordinators[0].node_id
    described = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics("orders")
    led = next(index for index, each in described.topics["orders"].partitions.items() if each.leader == lost)
    with consumer(cluster, "orders") as first:
        assert read(first, 4, AcknowledgeType.ACCEPT) == dict.fromkeys("0123", 1)
        assert offsets(cluster) == [(0, 2, 0), (1, 2, 0)]
        cluster.brokers[lost].shut_down()
        assert read(first, 2, AcknowledgeType.ACCEPT) == {str(number): 1 for number in (led, led + 2)}

        def codes() -> set[int | None]:
            return {each.error_code for each in cluster.requests("ShareGroupHeartbeat", broker=3 - lost)}

        cluster.wait_until(lambda: error_codes.NONE in codes())


def test_partitions_that_a_stub_refuses_stay_in_the_session(cluster: SyncController) -> None:
    refused = cluster.stub("ShareFetch", topic="teas").times(2).inject_error("NOT_LEADER_OR_FOLLOWER")
    with consumer(cluster, "teas") as first:
        assert read(first, 4, AcknowledgeType.ACCEPT) == dict.fromkeys("0123", 1)
    assert refused.call_count == 2

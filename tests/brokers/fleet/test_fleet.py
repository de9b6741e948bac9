"""Many brokers of one process share a replica of the metadata log, also those that serve clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller
from mockraft.brokers.fleet import shared_log
from mockraft.brokers.fleet.fleet import Fleet, start_brokers
from mockraft.brokers.lifecycle import BrokerState
from mockraft.wire import api_keys
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest

from ...topics import ask, assigned
from ...waiting import until

BROKERS, PARTITIONS = 12, 3
TIMEOUT_S = 60


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    async with Controller() as controller:
        yield controller


@pytest.fixture
async def sharing(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    """Brokers that share, as more than a hundred do."""
    monkeypatch.setattr(shared_log, "OWN_REPLICATION_BROKERS_MAX", BROKERS - 1)
    address = controller.host, controller.port
    started = await start_brokers([address], controller.cluster_id, dict.fromkeys(range(1, BROKERS + 1)), client_port=0)
    await started.wait_until(BrokerState.RUNNING)
    yield started
    await started.shut_down()


async def test_one_reader_fetches_each_record_once_for_all(controller: Controller, sharing: Fleet) -> None:
    fetches = controller.journal.exchanges(api_keys.FETCH)
    assert {each.client_id for each in fetches} == {"raft-client-fleet"}
    offsets = [each.request.topics[0].partitions[0].fetch_offset for each in fetches]
    assert offsets == sorted(offsets)
    images = [broker.image for broker in sharing.brokers]
    assert all(image is images[0] for image in images)
    assert images[0] is not None
    assert len(images[0].alive()) == BROKERS


def use(bootstrap: str) -> list[bytes | None]:
    """Create a topic, write to it in transactions, and read in a group what is committed."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", PARTITIONS, 3)])["orders"].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "cook"})
    producer.init_transactions(TIMEOUT_S)
    for text, end in (("a", producer.commit_transaction), ("b", producer.abort_transaction)):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce("orders", text.encode(), partition=partition)
        end(TIMEOUT_S)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "kitchen", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    try:
        return [message.value() for message in consumer.consume(PARTITIONS, TIMEOUT_S)]
    finally:
        consumer.close()


async def test_brokers_that_share_serve_groups_and_transactions(sharing: Fleet) -> None:
    assert await asyncio.to_thread(use, sharing.bootstrap_servers) == [b"a"] * PARTITIONS


async def test_clients_move_to_other_brokers_when_one_leaves(sharing: Fleet) -> None:
    await sharing.brokers[0].shut_down()
    others = ",".join(broker.bootstrap_servers for broker in sharing.brokers[1:])
    assert await asyncio.to_thread(use, others) == [b"a"] * PARTITIONS


async def test_a_follower_that_resumes_joins_the_isrs_that_fencing_took_it_from(
    controller: Controller, sharing: Fleet
) -> None:
    follower = sharing.brokers[1]

    def isr() -> set[int]:
        assert follower.image is not None
        return {each for topic in follower.image.topics.values() for each in topic.partitions[0].isr}

    request = CreateTopicsRequest(topics=[assigned("orders", [1, 2])], timeout_ms=5_000)
    await ask(sharing.brokers[0].bootstrap_servers, request)
    await until(lambda: isr() == {1, 2})
    assert follower.replicas is not None
    follower.replicas.stick()
    with controller.faults.fence(broker_id=2):
        await until(lambda: isr() == {1})
    await until(lambda: follower.image is not None and not follower.image.brokers[2].fenced)
    assert isr() == {1}
    follower.replicas.stick(False)
    await until(lambda: isr() == {1, 2})

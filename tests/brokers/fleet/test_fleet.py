"""Many brokers of one process share a replica of the metadata log, also those that serve clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller
from mockraft.brokers.fleet import Fleet, shared_log, start_brokers
from mockraft.brokers.lifecycle import BrokerState
from mockraft.wire import api_keys

BROKERS, PARTITIONS = 12, 3
TIMEOUT_S = 30


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    async with Controller() as controller:
        yield controller


@pytest.fixture
async def sharing(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    """Brokers that share, as more than a hundred do."""
    monkeypatch.setattr(shared_log, "OWN_REPLICATION_BROKERS_MAX", BROKERS - 1)
    address = controller.host, controller.port
    started = await start_brokers([address], controller.cluster_id, BROKERS, client_port=0)
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

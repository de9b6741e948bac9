"""Simulated brokers that serve clients on mockraft's own controller, and clients of three makes for them."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, TopicPartition
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.config import draw_config
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.partitions.hosted import HostedPartition

from ... import clients
from ...topics import create_topics, topic
from ...waiting import until

LAG_TIME_MAX_MS = 600
PROPERTIES = {
    "replica.lag.time.max.ms": str(LAG_TIME_MAX_MS),
    "replica.fetch.backoff.ms": "50",
    "replica.fetch.wait.max.ms": "100",
}


def _knows(broker: SimulatedBroker, topic: str) -> bool:
    return broker.image is not None and topic in broker.image.topics_by_name


class Brokers:
    """Simulated brokers by id; their disks outlive them, so that a broker comes back with its records."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.running: dict[int, SimulatedBroker] = {}
        self._disks: dict[str, MemoryDisk] = {}
        self._lives = 0

    async def start(self, *broker_ids: int, **options: Any) -> None:
        """Start these brokers, again with what they had, and wait until they run."""
        endpoints = ((self.controller.host, self.controller.port),)
        for broker_id in broker_ids:
            properties = {**PROPERTIES, **options.get("properties", {})}
            options = {**options, "properties": properties, "open_disk": self._disk, "serve_clients": True}
            options = {"heartbeat_interval_ms": 300, **options}
            rng = random.Random(broker_id)
            config = draw_config(broker_id, self.controller.cluster_id, endpoints, rng, **options)
            self._lives += 1
            config = dataclasses.replace(config, incarnation_id=self._lives.to_bytes(16))
            self.running[broker_id] = SimulatedBroker(config)
            self.running[broker_id].start()
        for broker_id in broker_ids:
            await self.running[broker_id].wait_until(BrokerState.RUNNING)

    async def kill(self, broker_id: int) -> None:
        await self.running.pop(broker_id).kill()

    async def close(self) -> None:
        for broker_id in list(self.running):
            await self.kill(broker_id)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.listener.bootstrap for broker in self.running.values() if broker.listener)

    def hosted(self, broker_id: int, topic: str, partition: int = 0) -> HostedPartition | None:
        """This broker's replica of a partition, once it has one."""
        broker = self.running[broker_id]
        assert broker.replicas is not None
        named = broker.image.topics_by_name.get(topic) if broker.image else None
        return broker.replicas.hosted((named.topic_id, partition)) if named else None

    def leader(self, topic: str, partition: int = 0) -> HostedPartition | None:
        """The replica that leads, of a running broker, in the newest epoch."""
        leading = [
            hosted
            for broker_id in self.running
            if (hosted := self.hosted(broker_id, topic, partition)) and hosted.state.is_leader
        ]
        return max(leading, key=lambda hosted: hosted.state.leader_epoch, default=None)

    async def isr(self, topic: str, *expected: int, partition: int = 0) -> HostedPartition:
        """The leader, once its committed ISR is this one."""

        def is_so() -> HostedPartition | None:
            leader = self.leader(topic, partition)
            return leader if leader and leader.state.isr == set(expected) and not leader.state.pending else None

        leader = await until(is_so)
        assert isinstance(leader, HostedPartition)
        return leader

    async def create_topic(
        self, name: str, *, partitions: int = 1, replicas: int = 1, assigned: list[int] | None = None, **config: Any
    ) -> ReplicaKey:
        """A topic that every broker knows and has a leader for; `assigned` are the replicas of its one partition."""
        configs = {key: str(value) for key, value in config.items()}
        made = (
            topic(name, -1, -1, [(0, assigned)], **configs)
            if assigned
            else topic(name, partitions, replicas, (), **configs)
        )
        (topic_id,) = await create_topics(self.controller.bootstrap, made)
        for index in range(1 if assigned else partitions):
            await until(partial(self.leader, name, index))
        for broker in self.running.values():
            await until(partial(_knows, broker, name))
        return topic_id, 0

    def known(self, name: str) -> Any:
        """Partition 0 of a topic as the controller knows it."""
        return self.controller.running.controller.image.topics.by_name[name].partitions[0]

    def _disk(self, path: str) -> MemoryDisk:
        return self._disks.setdefault(path, MemoryDisk(path))


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    async with Controller(session_timeout_ms=1500) as running:
        yield running


@pytest.fixture
async def brokers(controller: Controller) -> AsyncIterator[Brokers]:
    """None runs yet; all are killed at the end."""
    cluster = Brokers(controller)
    yield cluster
    await cluster.close()


class Served(Protocol):
    """Brokers for clients, `host:port` each, separated by commas."""

    @property
    def bootstrap(self) -> str: ...


async def produce(brokers: Served, topic: str, texts: list[str], *, strict: bool = True, **config: Any) -> list[str]:
    """Produce texts with confluent-kafka and return those that were acknowledged; raise an error only if `strict`."""
    usual = {"message_timeout_ms": 20_000, "retry_backoff_ms": 50}
    return await asyncio.to_thread(clients.produce, brokers.bootstrap, topic, texts, strict=strict, **usual | config)


async def consume(brokers: Served, topic: str, count: int, partitions: int = 1) -> list[str]:
    """Return the first `count` texts of a topic, by partition, read with confluent-kafka and without a group."""
    return await asyncio.to_thread(_consume, brokers.bootstrap, topic, count, partitions)


def _consume(bootstrap: str, topic: str, count: int, partitions: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        texts: list[str] = []
        for _ in range(30):
            for message in consumer.consume(count, 0.5):
                assert message.error() is None, message.error()
                texts.append((message.value() or b"").decode())
            if len(texts) >= count:
                break
        return texts
    finally:
        consumer.close()

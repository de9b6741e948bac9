"""Simulated brokers with real clients, real brokers and Kafka's own controller: records, acks, ISRs."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.kafka.processes import KafkaBroker, KafkaController, random_uuid
from mockraft.kafka.tools import KafkaTool

from ...clients import consume, produce
from ...waiting import until
from ..running import running, running_beside

pytestmark = pytest.mark.real_kafka

SESSION_TIMEOUT_MS = 4_000
PROPERTIES = {"replica.lag.time.max.ms": "2000", "replica.fetch.backoff.ms": "200"}
TEXTS = [f"record {number}" for number in range(100)]


class Mixed:
    """A controller, real broker 1, simulated brokers 2 and 3 that keep their disks over restarts."""

    def __init__(self, bootstrap: str, cluster_id: str, directory: Path) -> None:
        properties = {**PROPERTIES, "auto.create.topics.enable": "false", "broker.heartbeat.interval.ms": "500"}
        self.real = KafkaBroker(1, directory / "broker-1", cluster_id, bootstrap, properties=properties)
        self.simulated: dict[int, SimulatedBroker] = {}
        self._joining = (bootstrap, cluster_id)
        self._disks: dict[str, MemoryDisk] = {}
        self._lives = 0

    async def start(self, broker_id: int) -> SimulatedBroker:
        options: dict[str, Any] = {"heartbeat_interval_ms": 500, "properties": PROPERTIES, "open_disk": self._disk}
        drawn = SimulatedBroker.joining(*self._joining, broker_id, seed=broker_id, serve_clients=True, **options)
        self._lives += 1
        broker = SimulatedBroker(dataclasses.replace(drawn.config, incarnation_id=self._lives.to_bytes(16)))
        broker.start()
        self.simulated[broker_id] = broker
        await broker.wait_until(BrokerState.RUNNING)
        return broker

    async def kill(self, broker_id: int) -> None:
        await self.simulated.pop(broker_id).kill()

    async def kill_simulated(self) -> None:
        for broker in self.simulated.values():
            await broker.kill()

    @property
    def bootstrap(self) -> str:
        listening = [broker.listener.bootstrap for broker in self.simulated.values() if broker.listener]
        return ",".join([*listening, *([self.real.bootstrap] if self.real.running else [])])

    async def create(self, name: str, replicas: list[int], **config: str) -> None:
        def run() -> None:
            topic = NewTopic(
                name, 1, replica_assignment=[replicas], config={k.replace("_", "."): v for k, v in config.items()}
            )
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            admin.create_topics([topic])[name].result(20)

        await asyncio.to_thread(run)
        await self.until_seen(name, replicas[0], *replicas)

    async def until_seen(self, topic: str, leader: int, *isr: int) -> None:
        """Return once every simulated broker that runs has this leader and ISR."""

        def seen(broker: SimulatedBroker) -> Any:
            found = broker.image.topics_by_name.get(topic) if broker.image else None
            partition = found.partitions[0] if found and found.partitions else None
            return partition and (partition.leader, sorted(partition.isr))

        await until(
            lambda: [seen(each) for each in self.simulated.values()] == [(leader, sorted(isr))] * len(self.simulated)
        )

    def log(self, broker_id: int, topic: str) -> Any:
        broker = self.simulated[broker_id]
        assert broker.image is not None
        assert broker.replicas is not None
        hosted = broker.replicas.hosted((broker.image.topics_by_name[topic].topic_id, 0))
        assert hosted is not None
        return hosted.log

    def _disk(self, path: str) -> MemoryDisk:
        return self._disks.setdefault(path, MemoryDisk(path))


@pytest.fixture(params=["mockraft", "kafka"])
async def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Mixed]:
    """The brokers run, on mockraft's controller or on Kafka's."""
    async with AsyncExitStack() as stack:
        controller: Any
        if request.param == "kafka":
            properties = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
            kafka = KafkaController(tmp_path / "controller", random_uuid(), properties=properties)
            controller = stack.enter_context(running(kafka))
        else:
            controller = await stack.enter_async_context(Controller(session_timeout_ms=SESSION_TIMEOUT_MS))
        cluster = Mixed(controller.bootstrap, controller.cluster_id, tmp_path)
        stack.push_async_callback(cluster.kill_simulated)
        stack.callback(cluster.real.kill)
        await asyncio.gather(
            cluster.start(2), cluster.start(3), stack.enter_async_context(running_beside(cluster.real))
        )
        yield cluster


async def test_a_simulated_broker_follows_a_real_one_leaves_its_isr_and_comes_back(mixed: Mixed) -> None:
    await mixed.create("orders", [1, 2, 3], min_insync_replicas="2")
    assert await asyncio.to_thread(produce, mixed.bootstrap, "orders", TEXTS[:50]) == TEXTS[:50]
    await mixed.kill(2)
    await mixed.until_seen("orders", 1, 1, 3)
    await asyncio.to_thread(produce, mixed.bootstrap, "orders", TEXTS[50:])
    await mixed.start(2)
    await mixed.until_seen("orders", 1, 1, 2, 3)
    stuck = mixed.simulated[3].replicas
    assert stuck is not None
    stuck.stick()
    await asyncio.to_thread(produce, mixed.bootstrap, "orders", ["one more"])
    await mixed.until_seen("orders", 1, 1, 2)
    stuck.stick(False)
    await mixed.until_seen("orders", 1, 1, 2, 3)
    ours = [mixed.log(broker_id, "orders") for broker_id in (2, 3)]
    assert ours[0].read(0, 1 << 20, ours[0].end_offset) == ours[1].read(0, 1 << 20, ours[1].end_offset)
    # The real leader dies: every record that it acknowledged is with the simulated ones.
    mixed.real.kill()
    await mixed.until_seen("orders", 2, 2, 3)
    assert await asyncio.to_thread(consume, mixed.bootstrap, "orders") == [*TEXTS, "one more"]


async def test_a_real_broker_follows_a_simulated_one_leaves_its_isr_and_comes_back(mixed: Mixed) -> None:
    await mixed.create("orders", [2, 1], min_insync_replicas="1")
    assert await asyncio.to_thread(produce, mixed.bootstrap, "orders", TEXTS[:50]) == TEXTS[:50]
    mixed.real.kill()
    await asyncio.to_thread(produce, mixed.bootstrap, "orders", TEXTS[50:])
    await mixed.until_seen("orders", 2, 2)
    mixed.real.start()
    # A process that still starts may lag behind once more, and then it would be no leader.
    await asyncio.to_thread(mixed.real.wait_until_running)
    await mixed.until_seen("orders", 2, 1, 2)
    # The simulated leader dies: every record that it acknowledged is with the real one.
    await mixed.kill(2)
    await mixed.until_seen("orders", 1, 1)
    await asyncio.to_thread(produce, mixed.bootstrap, "orders", ["one more"])
    assert await asyncio.to_thread(consume, mixed.bootstrap, "orders") == [*TEXTS, "one more"]
    # And it comes back behind, as a follower of the real one.
    await mixed.start(2)
    await mixed.until_seen("orders", 1, 1, 2)
    assert mixed.log(2, "orders").end_offset == 101


async def test_console_tools_produce_and_consume_on_simulated_brokers_alone() -> None:
    async with Controller(brokers=3) as controller:
        await _verify_console_tools(controller.brokers[1].bootstrap_servers)


async def _verify_console_tools(bootstrap: str) -> None:
    async def run(name: str, *arguments: str, stdin: str = "") -> str:
        tool = KafkaTool(name)
        return await asyncio.to_thread(tool.run, *arguments, "--bootstrap-server", bootstrap, stdin=stdin)

    topic = ("--topic", "orders")
    await run("kafka-topics", "--create", *topic, "--partitions", "1", "--replication-factor", "3")
    lines = "".join(f"{text}\n" for text in TEXTS)
    await run("kafka-console-producer", *topic, stdin=lines)
    first = ("--partition", "0", "--offset", "10", "--max-messages", "5")
    assert (await run("kafka-console-consumer", *topic, *first)).splitlines() == TEXTS[10:15]
    grouped = ("--from-beginning", "--max-messages", "100", "--group", "tests")
    assert (await run("kafka-console-consumer", *topic, *grouped)).splitlines() == TEXTS
    last = await run("org.apache.kafka.tools.GetOffsetShell", *topic)
    assert last.splitlines() == ["orders:0:100"]
    await run("kafka-console-producer", *topic, "--compression-codec", "gzip", stdin="compressed\n")
    first = ("--partition", "0", "--offset", "100", "--max-messages", "1")
    assert (await run("kafka-console-consumer", *topic, *first)).splitlines() == ["compressed"]


async def test_kafkas_share_consumer_and_its_tools_work_on_simulated_brokers_alone() -> None:
    async with Controller(brokers=2) as controller:

        async def run(name: str, *arguments: str, stdin: str = "") -> str:
            tool = KafkaTool(name)
            server = ("--bootstrap-server", controller.bootstrap_servers)
            return await asyncio.to_thread(tool.run, *arguments, *server, stdin=stdin)

        group, topic = ("--group", "kitchen"), ("--topic", "orders")
        reset = ("--add-config", "share.auto.offset.reset=earliest")
        await run("kafka-configs", "--alter", "--entity-type", "groups", "--entity-name", "kitchen", *reset)
        await run("kafka-topics", "--create", *topic, "--partitions", "2", "--replication-factor", "1")
        await run("kafka-console-producer", *topic, stdin="".join(f"{text}\n" for text in TEXTS))
        read = await run("kafka-console-share-consumer", *topic, *group, "--max-messages", "100")
        assert sorted(read.splitlines()) == sorted(TEXTS)
        described = re.findall(
            r"^kitchen +orders +(\d) +(\d+) +0$", await run("kafka-share-groups", "--describe", *group), re.M
        )
        assert sum(int(start) for _, start in described) == 100
        await run("kafka-share-groups", "--reset-offsets", *group, *topic, "--to-earliest", "--execute")
        again = await run("kafka-console-share-consumer", *topic, *group, "--max-messages", "100")
        assert sorted(again.splitlines()) == sorted(TEXTS)
        await run("kafka-share-groups", "--delete", *group)
        assert "kitchen" not in await run("kafka-groups", "--list")

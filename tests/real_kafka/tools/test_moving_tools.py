"""Kafka's own tools look at the log directories of simulated brokers and move replicas between them (KIP-113)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.moves.move import Stage
from mockraft.kafka.tools import KafkaTool
from mockraft.wire import uuids

from ...waiting import until

pytestmark = pytest.mark.real_kafka

THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
RECORDS = 200


def path_of(broker_id: int, number: int) -> str:
    return f"/simulated/broker-{broker_id}/d{number}"


class Cluster:
    """Two simulated brokers with three directories each, and Kafka's tools."""

    def __init__(self, controller: Controller, brokers: dict[int, SimulatedBroker], folder: Path) -> None:
        self.controller = controller
        self.brokers = brokers
        self.folder = folder

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.listener.bootstrap for broker in self.brokers.values() if broker.listener)

    async def tool(self, name: str, *arguments: str) -> str:
        return await asyncio.to_thread(KafkaTool(name).run, "--bootstrap-server", self.bootstrap, *arguments)

    async def described(self, *arguments: str) -> dict[int, dict[str, Any]]:
        """Output of `kafka-log-dirs`: directories by path, by broker."""
        printed = await self.tool("kafka-log-dirs", "--describe", *arguments)
        result = json.loads(printed.splitlines()[-1])
        assert result["version"] == 1
        return {each["broker"]: {at["logDir"]: at for at in each["logDirs"]} for each in result["brokers"]}

    def plan(self, *partitions: tuple[str, int, list[int], list[str]]) -> tuple[str, str]:
        """The option that names a file in the text's form: topic, partition, replicas and their directories."""
        keys = ("topic", "partition", "replicas", "log_dirs")
        tree = {"version": 1, "partitions": [dict(zip(keys, each, strict=True)) for each in partitions]}
        path = self.folder / "plan.json"
        path.write_text(json.dumps(tree))
        return "--reassignment-json-file", str(path)

    async def reassign(self, plan: tuple[str, str], *arguments: str) -> str:
        return await self.tool("kafka-reassign-partitions", *plan, *arguments)

    async def create(self, topic: str, *replicas: list[int], size: int = 100) -> None:
        """A topic with records in each partition."""

        def run() -> None:
            new = NewTopic(topic, len(replicas), replica_assignment=list(replicas))
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            admin.create_topics([new])[topic].result(20)
            producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0, "batch.size": 16_384})
            for number in range(RECORDS):
                producer.produce(topic, b"x" * size, partition=number % len(replicas))
            assert producer.flush(30) == 0

        await asyncio.to_thread(run)

    def places(self, topic: str, partition: int = 0) -> dict[int, str]:
        """The directory of each replica, as the brokers have it."""
        return {
            broker_id: held.log_dir.path
            for broker_id, broker in self.brokers.items()
            for held in broker.logs.held()
            if held.topic_partition == (topic, partition)
        }

    def known(self, topic: str, partition: int = 0) -> dict[int, str]:
        """The directory of each replica, as the controller has it."""
        found = self.controller.running.controller.image.topics.by_name[topic].partitions[partition]
        paths = {each.directory_id: each.path for broker in self.brokers.values() for each in broker.config.log_dirs}
        pairs = zip(found.replicas, found.directories, strict=True)
        return {broker_id: paths.get(where, uuids.text_of(where)) for broker_id, where in pairs}

    async def until_told(self, plan: tuple[str, str], text: str) -> str:
        """Verify until the tool says so."""
        async with asyncio.timeout(60):
            while text not in (result := await self.reassign(plan, "--verify")):
                await asyncio.sleep(0.1)
        return result


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with Controller() as controller:
        brokers = {
            broker_id: SimulatedBroker.joining(
                controller.bootstrap,
                controller.cluster_id,
                broker_id,
                seed=broker_id,
                serve_clients=True,
                log_dir_paths=tuple(path_of(broker_id, number) for number in range(3)),
                properties={"auto.create.topics.enable": "false"},
            )
            for broker_id in (1, 2)
        }
        for broker in brokers.values():
            broker.start()
        for broker in brokers.values():
            await broker.wait_until(BrokerState.RUNNING)
        yield Cluster(controller, brokers, tmp_path)
        for broker in brokers.values():
            await broker.kill()


async def test_kafka_log_dirs_lists_directories_and_replicas(cluster: Cluster) -> None:
    await cluster.create("seen", [1, 2], [2, 1])
    await cluster.create("other", [1])
    result = await cluster.described("--topic-list", "seen")
    assert set(result) == {1, 2}
    for broker_id, folders in result.items():
        assert set(folders) == {path_of(broker_id, number) for number in range(3)}
        replicas = [(each, path) for path, folder in folders.items() for each in folder["partitions"]]
        assert sorted(each["partition"] for each, _ in replicas) == ["seen-0", "seen-1"]
        for each, path in replicas:
            assert cluster.places("seen", int(each["partition"][-1]))[broker_id] == path
            assert each["size"] > RECORDS // 2 * 100
            assert (each["offsetLag"], each["isFuture"]) == (0, False)
        assert all(folder["error"] is None for folder in folders.values())
    assert list(await cluster.described("--broker-list", "2")) == [2]


async def test_kafka_log_dirs_marks_a_directory_that_is_offline(cluster: Cluster) -> None:
    cluster.brokers[1].fail_log_dir(path_of(1, 1))
    result = await cluster.described()
    assert [path for path, folder in result[1].items() if folder["error"]] == [path_of(1, 1)]
    assert "KafkaStorageException" in result[1][path_of(1, 1)]["error"]
    assert [path for path, folder in result[2].items() if folder["error"]] == []


async def test_a_replica_is_moved_within_its_broker(cluster: Cluster) -> None:
    await cluster.create("moved", [1])
    source = cluster.places("moved")[1]
    target = next(path_of(1, number) for number in range(3) if path_of(1, number) != source)
    plan = cluster.plan(("moved", 0, [1], [target]))
    result = await cluster.reassign(plan, "--execute")
    assert f"Successfully started moving log directory to {target} for replica moved-0 with broker 1" in result
    result = await cluster.until_told(plan, "Reassignment of replica moved-0-1 completed successfully.")
    assert "Reassignment of partition moved-0 is completed." in result
    assert cluster.places("moved") == cluster.known("moved") == {1: target}


async def test_a_throttled_move_is_seen_under_way_and_then_let_go(cluster: Cluster) -> None:
    await cluster.create("slow", [1], size=40_000)
    source = cluster.places("slow")[1]
    target = next(path_of(1, number) for number in range(3) if path_of(1, number) != source)
    plan = cluster.plan(("slow", 0, [1], [target]))
    result = await cluster.reassign(plan, "--execute", "--replica-alter-log-dirs-throttle", "1000")
    assert "The replica-alter-dir throttle limit was set to 1000 B/s" in result
    (progress,) = cluster.brokers[1].moves
    assert (progress.source, progress.target, progress.stage) == (source, target, Stage.COPYING)
    assert 0 < progress.offset_lag < RECORDS
    result = await cluster.reassign(plan, "--verify", "--preserve-throttles")
    assert "Reassignment of replica slow-0-1 is still in progress." in result
    (future,) = (each for each in (await cluster.described())[1][target]["partitions"] if each["partition"] == "slow-0")
    assert future["isFuture"]
    assert future["offsetLag"] > 0
    # As the operator who finds that too slow.
    await cluster.reassign(plan, "--execute", "--additional", "--replica-alter-log-dirs-throttle", "1000000000")
    await cluster.until_told(plan, "Reassignment of replica slow-0-1 completed successfully.")
    assert cluster.places("slow") == {1: target}
    await until(lambda: THROTTLE not in {name for _, name in cluster.brokers[1].view.configs})


async def test_a_move_under_way_is_cancelled(cluster: Cluster) -> None:
    await cluster.create("back", [1], size=40_000)
    source = cluster.places("back")[1]
    await until(lambda: cluster.known("back") == {1: source})
    target = next(path_of(1, number) for number in range(3) if path_of(1, number) != source)
    plan = cluster.plan(("back", 0, [1], [target]))
    await cluster.reassign(plan, "--execute", "--replica-alter-log-dirs-throttle", "1000")
    result = await cluster.reassign(plan, "--cancel")
    assert f"Successfully started moving log directory to {source} for replica back-0 with broker 1" in result
    assert cluster.brokers[1].moves == ()
    assert cluster.brokers[1].logs.held(future=True) == []
    assert cluster.places("back") == cluster.known("back") == {1: source}


async def test_replica_moves_to_another_broker_and_directory_at_once(cluster: Cluster) -> None:
    await cluster.create("far", [1], [1])
    plan = cluster.plan(("far", 0, [2], [path_of(2, 2)]), ("far", 1, [1, 2], [path_of(1, 2), path_of(2, 1)]))
    result = await cluster.reassign(plan, "--execute")
    assert "Successfully started partition reassignments for far-0,far-1" in result
    for replica in ("far-0-2", "far-1-1", "far-1-2"):
        await cluster.until_told(plan, f"Reassignment of replica {replica} completed successfully.")
    await until(lambda: 1 not in cluster.places("far"))
    assert cluster.places("far") == cluster.known("far") == {2: path_of(2, 2)}
    assert cluster.places("far", 1) == cluster.known("far", 1) == {1: path_of(1, 2), 2: path_of(2, 1)}
    # Never anywhere else: broker 2 had been told before it had the replicas.
    assert cluster.brokers[2].moves == ()
    assert cluster.brokers[2].directories.preferred == {}


async def test_any_directory_is_the_brokers_choice(cluster: Cluster) -> None:
    await cluster.create("free", [1, 2])
    before = cluster.places("free")
    plan = cluster.plan(("free", 0, [1, 2], ["any", "any"]))
    await cluster.reassign(plan, "--execute")
    result = await cluster.until_told(plan, "Reassignment of partition free-0 is completed.")
    assert "replica" not in result
    assert cluster.places("free") == before
    silent = {"version": 1, "partitions": [{"topic": "free", "partition": 0, "replicas": [2, 1]}]}
    (cluster.folder / "plan.json").write_text(json.dumps(silent))
    await cluster.reassign(plan, "--execute")
    await cluster.until_told(plan, "Reassignment of partition free-0 is completed.")
    assert cluster.places("free") == before


async def test_a_throttled_reassignment_is_under_way_until_it_is_cancelled_or_may_go_faster(cluster: Cluster) -> None:
    await cluster.create("far", [1], size=40_000)
    plan = cluster.plan(("far", 0, [2], ["any"]))
    result = await cluster.reassign(plan, "--execute", "--throttle", "1000")
    assert "The inter-broker throttle limit was set to 1000 B/s" in result
    assert "Successfully cancelled partition reassignment for: far-0" in await cluster.reassign(plan, "--cancel")
    await until(lambda: set(cluster.places("far")) == {1})

    await cluster.reassign(plan, "--execute", "--throttle", "1000")
    result = await cluster.reassign(plan, "--verify", "--preserve-throttles")
    assert "Reassignment of partition far-0 is still in progress." in result
    # As the operator who finds that too slow.
    await cluster.reassign(plan, "--execute", "--additional", "--throttle", "1000000000")
    result = await cluster.until_told(plan, "Reassignment of partition far-0 is completed.")
    assert "Clearing broker-level throttles on brokers 1,2" in result
    await until(lambda: set(cluster.places("far")) == {2})

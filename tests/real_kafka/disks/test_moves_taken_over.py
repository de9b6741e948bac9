"""Directories and replicas that change hands or are lost, with real brokers and simulated ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.log_dirs.errors import StorageError
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaTool, random_uuid
from mockraft.wire import record_batch
from mockraft.wire.directory_ids import LOST
from mockraft.wire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

from ...cli.cli import invoke
from ...topics import ask, assigned, create_topics
from ...waiting import until
from ..disks_and_configs import directory_id_of, set_config
from ..running import running, running_beside

pytestmark = pytest.mark.real_kafka

TOPIC = "moved"
VALUES = [f"{number:05}" + "x" * 20_000 for number in range(200)]


class Disks:
    """Two directories and a folder for the metadata log, and the controller that both brokers join."""

    def __init__(self, controller: Controller, folder: Path) -> None:
        self.controller = controller
        self.real = KafkaBroker(
            1,
            folder,
            controller.cluster_id,
            controller.bootstrap,
            properties={"log.segment.delete.delay.ms": "100", "auto.create.topics.enable": "false"},
        )

    def simulated(self) -> SimulatedBroker:
        return SimulatedBroker.joining(
            self.controller.bootstrap,
            self.controller.cluster_id,
            1,
            log_dirs=self.real.log_dirs,
            metadata_log_dir=self.real.metadata_log_dir,
        )

    @property
    def image(self) -> Any:
        return self.controller.running.controller.image

    def known(self) -> bytes:
        """The directory that the controller has the replica in."""
        return bytes(self.image.topics.by_name[TOPIC].partitions[0].directories[0])

    def path_of(self, directory_id: bytes) -> Path:
        return next(path for path in self.real.log_dirs if directory_id_of(path) == directory_id)

    def lies(self) -> dict[str, list[str]]:
        """The folders of the replica in each directory, without the unique part of their names."""
        return {
            path.name: sorted(
                each.name.partition(".")[0] + each.name[each.name.rfind("-") :] * ("." in each.name)
                for each in path.glob(f"{TOPIC}-0*")
            )
            for path in self.real.log_dirs
        }

    async def create(self, bootstrap: str) -> Path:
        """The topic with its records; the directory it is in."""
        await create_topics(self.controller.bootstrap, assigned(TOPIC, [1]))
        await until(lambda: any(self.lies().values()) and any(self.known()[:8]))

        def run() -> None:
            producer = Producer({"bootstrap.servers": bootstrap})
            for value in VALUES:
                producer.produce(TOPIC, value)
            assert producer.flush(30) == 0

        await asyncio.to_thread(run)
        return self.path_of(self.known())

    async def begin(self, bootstrap: str, target: Path) -> None:
        """Begin to move the replica, and hold it after its first megabyte."""
        self.throttle("0")
        committed = self.controller.running.controller.log.high_watermark
        await until(lambda: self._heard() >= committed - 1)
        topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(target), topics=topics)])
        response = await ask(bootstrap, request)
        assert response.results[0].partitions[0].error_code == 0
        await until(lambda: [path for path in target.glob("*-future/*.log") if path.stat().st_size])

    def _heard(self) -> int:
        """Up to where the broker has applied the metadata, as its heartbeats say."""
        exchanges = self.controller.journal.exchanges(BrokerHeartbeatRequest.api_key)
        return max(int(exchange.request.current_metadata_offset) for exchange in exchanges)

    def throttle(self, value: str | None) -> None:
        set_config(self.controller, 1, "replica.alter.log.dirs.io.max.bytes.per.second", value)

    async def consumed(self, bootstrap: str) -> list[str]:
        def run() -> list[str]:
            consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            found: list[str] = []
            while len(found) < len(VALUES):
                found += [(message.value() or b"").decode() for message in consumer.consume(len(VALUES), 1)]
            consumer.close()
            return found

        return await asyncio.wait_for(asyncio.to_thread(run), 60)


@pytest.fixture
async def disks(tmp_path: Path) -> AsyncIterator[Disks]:
    async with Controller(session_timeout_ms=2000) as controller:
        found = Disks(controller, tmp_path / "b1")
        await asyncio.to_thread(found.real.format)
        yield found


async def test_a_simulated_broker_ends_a_real_ones_move(disks: Disks) -> None:
    async with running_beside(disks.real, formatted=True) as real:
        source = await disks.create(real.bootstrap)
        target = next(path for path in real.log_dirs if path != source)
        await disks.begin(real.bootstrap, target)
    assert disks.lies() == {source.name: ["moved-0"], target.name: ["moved-0-future"]}
    assert disks.path_of(disks.known()) == source

    disks.throttle(None)
    async with disks.simulated() as simulated:
        await simulated.wait_until(BrokerState.RUNNING)
        await until(lambda: disks.lies() == {source.name: [], target.name: ["moved-0"]})
        assert disks.path_of(disks.known()) == target
        assert await disks.consumed(simulated.bootstrap_servers) == VALUES


async def test_a_real_broker_ends_a_simulated_ones_move(disks: Disks) -> None:
    simulated = disks.simulated()
    simulated.start()
    await simulated.wait_until(BrokerState.RUNNING)
    source = await disks.create(simulated.bootstrap_servers)
    target = next(path for path in disks.real.log_dirs if path != source)
    await disks.begin(simulated.bootstrap_servers, target)
    assert 0 < simulated.moves[0].offset_lag < len(VALUES)
    await simulated.kill()
    assert disks.lies() == {source.name: ["moved-0"], target.name: ["moved-0-future"]}

    disks.throttle(None)
    async with running_beside(disks.real, formatted=True) as real:
        await until(lambda: disks.lies() == {source.name: [], target.name: ["moved-0"]})
        assert disks.path_of(disks.known()) == target
        assert await disks.consumed(real.bootstrap) == VALUES


PROPERTIES = {"replica.lag.time.max.ms": "1000", "replica.fetch.wait.max.ms": "100", "replica.fetch.backoff.ms": "50"}


@pytest.fixture(params=["mockraft", "kafka"])
async def brokers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[dict[int, SimulatedBroker]]:
    """Three simulated brokers with two directories each; the first goes by KIP-18."""
    async with AsyncExitStack() as stack:
        if request.param == "mockraft":
            controller: Any = await stack.enter_async_context(Controller())
        else:
            controller = stack.enter_context(running(KafkaController(tmp_path / "controller", random_uuid())))
        found = {}
        for broker_id in (1, 2, 3):
            broker = SimulatedBroker.joining(
                controller.bootstrap,
                controller.cluster_id,
                broker_id,
                log_dir_paths=(f"/{broker_id}/d0", f"/{broker_id}/d1"),
                heartbeat_interval_ms=300,
                properties=PROPERTIES,
                io_errors="kip-18" if broker_id == 1 else "kafka",
                restart_partitions_elsewhere=broker_id == 1,
            )
            broker.start()
            stack.push_async_callback(broker.kill)
            found[broker_id] = broker
        for broker in found.values():
            await broker.wait_until(BrokerState.RUNNING)
        yield found


def is_placed(broker: SimulatedBroker, key: tuple[bytes, int]) -> bool:
    return broker.logs.log(key) is not None and not broker.queued_replica_to_dir_assignments


async def create(brokers: dict[int, SimulatedBroker], topic: str, replicas: list[int]) -> tuple[bytes, int]:
    """A partition on these brokers, each of which knows it and has it in the ISR; its key."""
    admin = AdminClient({"bootstrap.servers": brokers[2].bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, 1, replica_assignment=[replicas])])[topic]
    await asyncio.to_thread(created.result, 20)
    view = brokers[1].view
    topic_id = await until(lambda: next((key for key, name in view.topics.items() if name == topic), None))
    key = (topic_id, 0)
    for broker_id in replicas:
        await until(partial(is_placed, brokers[broker_id], key))
    return key


def lose(broker: SimulatedBroker, key: tuple[bytes, int], topic: str) -> None:
    """The next thing that is done with this replica's files goes wrong."""
    log = broker.logs.log(key)
    assert log is not None
    broker.fail_file(f"{broker.directories.find(broker.directories.placed[key]).path}/{topic}-0")
    with pytest.raises(StorageError):
        log.append_as_follower(record_batch.encode([b"x"], base_offset=0, leader_epoch=0, timestamp_ms=1))


@pytest.mark.parametrize(
    ("replicas", "leader"), [([1, 3, 2], 3), ([2, 1, 3], 2), ([3, 2, 1], 3)], ids=["led", "second", "last"]
)
async def test_the_first_assigned_replica_that_is_in_sync_leads_and_the_lost_one_comes_back_elsewhere(
    brokers: dict[int, SimulatedBroker], replicas: list[int], leader: int
) -> None:
    key = await create(brokers, "orders", replicas)
    view = brokers[1].view
    there = brokers[1].directories.placed[key]
    followers = brokers[1].replicas
    assert followers is not None
    followers.stick()
    lose(brokers[1], key, "orders")

    replica = await until(lambda: 1 not in view.replicas[key].isr and view.replicas[key])
    assert (replica.leader, replica.replicas) == (leader, tuple(replicas))
    assert set(replica.isr) == {2, 3}

    followers.stick(False)
    assert await until(lambda: 1 in view.replicas[key].isr)
    assert view.replicas[key].leader == leader
    assert brokers[1].directories.placed[key] != there
    assert await until(lambda: view.replicas[key].directory == brokers[1].directories.placed[key])


async def test_the_only_replica_is_lost_and_leads_no_more(brokers: dict[int, SimulatedBroker]) -> None:
    key = await create(brokers, "orders", [1])
    lose(brokers[1], key, "orders")
    view = brokers[1].view
    await until(lambda: view.replicas[key].leader == -1)
    assert view.replicas[key].directory == LOST
    assert brokers[1].directories.lost == {key}


def test_real_broker_runs_on_directories_formatted_by_mockraft(tmp_path: Path) -> None:
    with Controller.sync() as controller:
        broker = KafkaBroker(1, tmp_path, controller.cluster_id, controller.bootstrap)
        config = str(broker.write_properties())
        done = invoke("format", "-t", controller.cluster_id, "-c", config)
        assert done.exit_code == 0, done.output
        ids = {directory_id_of(path) for path in broker.log_dirs}
        with running(broker, formatted=True):
            registered = controller.running.controller.image.cluster.brokers[1]
            assert set(registered.log_dirs) == ids
            assert not registered.fenced
        assert {directory_id_of(path) for path in broker.log_dirs} == ids
        assert directory_id_of(broker.metadata_log_dir) not in ids


def test_older_kafka_reads_directories_formatted_by_mockraft(tmp_path: Path) -> None:
    broker = KafkaBroker(1, tmp_path, "T0ta1ly_Mocked-Cluster", "127.0.0.1:9093", version="3.9.1")
    broker.properties["controller.quorum.voters"] = "3000@127.0.0.1:9093"
    config = str(broker.write_properties())
    invoke("format", "-t", broker.cluster_id, "-c", config)
    result = KafkaTool("kafka-storage", "3.9.1").run("info", "-c", config)
    assert "node.id=1, version=1" in result
    assert "Found problem" not in result

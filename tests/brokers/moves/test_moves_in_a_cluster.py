"""Replicas that move while clients go on, and a broker process that is killed at each step of a move."""

from __future__ import annotations

import asyncio
import runpy
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.moves.errors import MoveEndedError

from ...topics import assigned, create_topics
from ...waiting import until

TOPIC = "t"
LEADER, FOLLOWER = 1, 2


class Cluster:
    """A topic with one partition that broker 1 leads and broker 2 follows, if it is told to."""

    def __init__(self, controller: Controller, brokers: dict[int, SimulatedBroker]) -> None:
        self.controller = controller
        self.brokers = brokers
        self.sent = 0

    @property
    def clients(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.brokers[LEADER].bootstrap_servers}

    async def create(self, *replicas: int) -> None:
        def run() -> None:
            admin = AdminClient(self.clients)
            new = NewTopic(TOPIC, 1, replica_assignment=[list(replicas)])
            admin.create_topics([new])[TOPIC].result(20)

        await asyncio.to_thread(run)
        await until(lambda: all(self.log(broker_id) for broker_id in replicas))
        await until(lambda: not any(broker.directories.assignments.queued for broker in self.brokers.values()))

    async def produce(self, count: int = 50) -> None:
        def run() -> None:
            producer = Producer({**self.clients, "acks": "all"})
            for number in range(self.sent, self.sent + count):
                producer.produce(TOPIC, b"%d" % number)
            assert producer.flush(30) == 0

        await asyncio.to_thread(run)
        self.sent += count

    async def consumed(self) -> list[int]:
        """All records from the start."""

        def run() -> list[int]:
            consumer = Consumer({**self.clients, "group.id": "g", "enable.auto.commit": False})
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            found: list[int] = []
            while len(found) < self.sent:
                found += [int(message.value() or b"") for message in consumer.consume(self.sent, 1)]
            consumer.close()
            return found

        return await asyncio.wait_for(asyncio.to_thread(run), 30)

    def log(self, broker_id: int) -> Any:
        held = self.brokers[broker_id].logs.held()
        return held[0].log if held else None

    def path(self, broker_id: int) -> str:
        (held,) = self.brokers[broker_id].logs.held()
        return held.log_dir.path

    def known(self, broker_id: int) -> str:
        """The replica's directory by the controller's image."""
        partition = self.controller.running.controller.image.topics.by_name[TOPIC].partitions[0]
        directory_id = partition.directories[partition.replicas.index(broker_id)]
        return self.brokers[broker_id].directories.find(directory_id).path

    async def move(self, broker_id: int) -> str:
        """Move the replica to the next directory; its path."""
        paths = [log_dir.path for log_dir in self.brokers[broker_id].config.log_dirs]
        target = paths[(paths.index(self.path(broker_id)) + 1) % len(paths)]
        await self.brokers[broker_id].move_replica(TOPIC, 0, target)
        return target

    def isr(self) -> set[int]:
        return set(self.controller.running.controller.image.topics.by_name[TOPIC].partitions[0].isr)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Controller() as controller:
        brokers = {
            broker_id: SimulatedBroker.joining(
                controller.bootstrap,
                controller.cluster_id,
                broker_id,
                seed=broker_id,
                log_dir_paths=(f"/simulated/{broker_id}/d0", f"/simulated/{broker_id}/d1"),
            )
            for broker_id in (LEADER, FOLLOWER)
        }
        for broker in brokers.values():
            broker.start()
        for broker in brokers.values():
            await broker.wait_until(BrokerState.RUNNING)
        yield Cluster(controller, brokers)
        for broker in brokers.values():
            await broker.kill()


async def test_clients_go_on_while_the_leaders_replica_moves(cluster: Cluster) -> None:
    await cluster.create(LEADER)
    await cluster.produce()
    target, _ = await asyncio.gather(cluster.move(LEADER), cluster.produce(200))
    assert cluster.path(LEADER) == cluster.known(LEADER) == target
    await cluster.produce()
    assert await cluster.consumed() == list(range(cluster.sent))
    assert cluster.log(LEADER).end_offset == cluster.sent


async def test_follower_continues_fetching_into_the_new_directory(cluster: Cluster) -> None:
    await cluster.create(LEADER, FOLLOWER)
    await cluster.produce()
    target, _ = await asyncio.gather(cluster.move(FOLLOWER), cluster.produce(200))
    assert cluster.path(FOLLOWER) == cluster.known(FOLLOWER) == target
    await cluster.produce()
    await until(lambda: cluster.log(FOLLOWER).end_offset == cluster.sent)
    assert cluster.isr() == {LEADER, FOLLOWER}


async def test_a_replica_moves_there_and_back(cluster: Cluster) -> None:
    await cluster.create(LEADER)
    await cluster.produce()
    first = cluster.path(LEADER)
    assert await cluster.move(LEADER) != first
    assert await cluster.move(LEADER) == first
    assert cluster.known(LEADER) == first
    assert await cluster.consumed() == list(range(cluster.sent))


async def test_a_controlled_shutdown_leaves_the_move_to_the_next_start(cluster: Cluster) -> None:
    await cluster.create(LEADER, FOLLOWER)
    await cluster.produce()
    broker = cluster.brokers[FOLLOWER]
    source = cluster.path(FOLLOWER)
    broker.slow_log_dir(next(each.path for each in broker.config.log_dirs if each.path != source), 60_000)
    moving = asyncio.create_task(cluster.move(FOLLOWER))
    await until(lambda: broker.moves)
    await broker.shut_down()
    with pytest.raises(MoveEndedError, match="the broker stopped"):
        await moving
    assert cluster.known(FOLLOWER) == source
    assert cluster.isr() == {LEADER}


async def test_deleting_a_topic_removes_its_move(cluster: Cluster) -> None:
    await cluster.create(LEADER)
    await cluster.produce()
    broker = cluster.brokers[LEADER]
    broker.slow_log_dir(next(each.path for each in broker.config.log_dirs if each.path != cluster.path(LEADER)), 60_000)
    moving = asyncio.create_task(cluster.move(LEADER))
    await until(lambda: broker.moves)

    def run() -> None:
        admin = AdminClient(cluster.clients)
        admin.delete_topics([TOPIC])[TOPIC].result(20)

    await asyncio.to_thread(run)
    with pytest.raises(MoveEndedError, match="on this broker no longer"):
        await moving
    assert broker.logs.held() == broker.logs.held(future=True) == []
    assert {each.disk.names() == [] for each in broker.logs.log_dirs} == {True}


SCRIPT = Path(__file__).with_name("dying_broker.py")
_DYING = runpy.run_path(str(SCRIPT))
RECORDS, STEPS, KILLED_TOPIC = _DYING["RECORDS"], _DYING["STEPS"], _DYING["TOPIC"]
LEFT = {
    "future log created": (["moved-0"], ["moved-0-future"]),
    "in the midst of copying": (["moved-0"], ["moved-0-future"]),
    "caught up": (["moved-0"], ["moved-0-future"]),
    "assignment sent": (["moved-0"], ["moved-0-future"]),
    "assignment acknowledged": (["moved-0"], ["moved-0-future"]),
    "between the renames": (["moved-0"], ["moved-0"]),
    "old log not removed": (["moved-0-delete"], ["moved-0"]),
}
"""Files left by the kill in d0, where the replica was, and in d1."""
TOLD = ("assignment sent", "assignment acknowledged", "between the renames", "old log not removed")
"""The steps at which the controller has the new directory already."""


def logs_below(folder: Path) -> list[str]:
    """The directories of logs, without the unique part of their names."""
    names = [path.name for path in folder.iterdir() if path.is_dir()]
    return [name.split(".")[0] + ("-" + name.rpartition("-")[2]) * ("." in name) for name in names]


def directory_at(controller: Controller) -> bytes:
    """The replica's directory by the controller's image."""
    topics = controller.running.controller.image.topics
    (topic,) = topics.by_id.values()
    return bytes(topic.partitions[0].directories[0])


@pytest.mark.parametrize("step", STEPS)
async def test_broker_killed_during_a_move_loses_no_record(tmp_path: Path, step: str) -> None:
    async with Controller() as controller:
        for name in ("d0", "d1"):
            (tmp_path / name).mkdir()
        arguments = (str(SCRIPT), controller.bootstrap, controller.cluster_id, str(tmp_path), step)
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments)
        waiting = asyncio.create_task(process.wait())
        brokers = controller.running.controller.image.cluster.brokers
        await until(lambda: waiting.done() or (1 in brokers and not brokers[1].fenced))
        await create_topics(controller.bootstrap, assigned(KILLED_TOPIC, [1]))
        assert await waiting == -signal.SIGKILL
        assert (logs_below(tmp_path / "d0"), logs_below(tmp_path / "d1")) == LEFT[step]
        before = directory_at(controller)

        again = SimulatedBroker.joining(
            controller.bootstrap,
            controller.cluster_id,
            1,
            seed=1,
            log_dir_paths=(str(tmp_path / "d0"), str(tmp_path / "d1")),
            open_disk=RealDisk,
            serve_clients=True,
        )
        async with again:
            await again.wait_until(BrokerState.RUNNING)
            await until(lambda: not again.moves and not again.directories.assignments.queued)
            d0, d1 = (log_dir.directory_id for log_dir in again.config.log_dirs)
            assert before == (d1 if step in TOLD else d0)
            assert (logs_below(tmp_path / "d0"), logs_below(tmp_path / "d1")) == ([], ["moved-0"])
            (held,) = again.logs.held()
            assert (held.log_dir.directory_id, held.log.end_offset) == (d1, RECORDS)
            assert directory_at(controller) == d1

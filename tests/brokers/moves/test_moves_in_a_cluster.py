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
from mockraft import Controller, SimulatedBroker
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.moves.move import MoveEndedError
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState

from ...budgets import sample
from ...topics import ask, assigned, create_topics
from ...waiting import until
from ..conftest import running, started
from ..partitions.conftest import consume, produce

TOPIC = "t"
LEADER, FOLLOWER = 1, 2


class Cluster:
    """A topic with one partition that broker 1 leads and broker 2 follows, if it is told to."""

    def __init__(self, controller: Controller, brokers: dict[int, SimulatedBroker]) -> None:
        self.controller = controller
        self.brokers = brokers
        self.sent = 0

    @property
    def bootstrap(self) -> str:
        return self.brokers[LEADER].bootstrap_servers

    async def create(self, *replicas: int) -> None:
        """The topic, with its first records."""
        await create_topics(self.controller.bootstrap, assigned(TOPIC, list(replicas)))
        await until(lambda: all(self.log(broker_id) for broker_id in replicas))
        await until(lambda: not any(broker.directories.assignments.queued for broker in self.brokers.values()))
        await self.produce()

    async def produce(self, count: int = 50) -> None:
        texts = [str(number) for number in range(self.sent, self.sent + count)]
        assert await produce(self, TOPIC, texts) == texts
        self.sent += count

    async def check_consumed(self) -> None:
        """All records come back from the start."""
        assert await consume(self, TOPIC, self.sent) == [str(number) for number in range(self.sent)]

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

    async def move_slowly(self, broker_id: int) -> asyncio.Task[str]:
        """Begin a move that does not end by itself."""
        broker, source = self.brokers[broker_id], self.path(broker_id)
        broker.slow_log_dir(next(each.path for each in broker.config.log_dirs if each.path != source), 60_000)
        moving = asyncio.create_task(self.move(broker_id))
        await until(lambda: broker.moves)
        return moving

    def isr(self) -> set[int]:
        return set(self.controller.running.controller.image.topics.by_name[TOPIC].partitions[0].isr)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Controller() as controller:
        brokers = {
            each: await started(controller, each, log_dir_paths=(f"/simulated/{each}/d0", f"/simulated/{each}/d1"))
            for each in (LEADER, FOLLOWER)
        }
        yield Cluster(controller, brokers)
        for broker in brokers.values():
            await broker.kill()


async def test_clients_go_on_while_the_leaders_replica_moves(cluster: Cluster) -> None:
    await cluster.create(LEADER)
    target, _ = await asyncio.gather(cluster.move(LEADER), cluster.produce(200))
    assert cluster.path(LEADER) == cluster.known(LEADER) == target
    await cluster.produce()
    await cluster.check_consumed()
    assert cluster.log(LEADER).end_offset == cluster.sent


async def test_follower_continues_fetching_into_the_new_directory(cluster: Cluster) -> None:
    await cluster.create(LEADER, FOLLOWER)
    target, _ = await asyncio.gather(cluster.move(FOLLOWER), cluster.produce(200))
    assert cluster.path(FOLLOWER) == cluster.known(FOLLOWER) == target
    await cluster.produce()
    await until(lambda: cluster.log(FOLLOWER).end_offset == cluster.sent)
    assert cluster.isr() == {LEADER, FOLLOWER}


async def test_a_replica_moves_there_and_back(cluster: Cluster) -> None:
    await cluster.create(LEADER)
    first = cluster.path(LEADER)
    assert await cluster.move(LEADER) != first
    assert await cluster.move(LEADER) == first
    assert cluster.known(LEADER) == first
    await cluster.check_consumed()


async def test_a_controlled_shutdown_leaves_the_move_to_the_next_start(cluster: Cluster) -> None:
    await cluster.create(LEADER, FOLLOWER)
    broker = cluster.brokers[FOLLOWER]
    source = cluster.path(FOLLOWER)
    moving = await cluster.move_slowly(FOLLOWER)
    await broker.shut_down()
    with pytest.raises(MoveEndedError, match="the broker stopped"):
        await moving
    assert cluster.known(FOLLOWER) == source
    assert cluster.isr() == {LEADER}


async def test_deleting_a_topic_removes_its_move(cluster: Cluster) -> None:
    await cluster.create(LEADER)
    broker = cluster.brokers[LEADER]
    moving = await cluster.move_slowly(LEADER)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=5000)
    await ask(cluster.controller.bootstrap, request)
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


@pytest.mark.parametrize("step", sample([*STEPS], 3))
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

        paths = (str(tmp_path / "d0"), str(tmp_path / "d1"))
        async with running(controller, log_dir_paths=paths, open_disk=RealDisk, serve_clients=True) as again:
            await until(lambda: not again.moves and not again.directories.assignments.queued)
            d0, d1 = (log_dir.directory_id for log_dir in again.config.log_dirs)
            assert before == (d1 if step in TOLD else d0)
            assert (logs_below(tmp_path / "d0"), logs_below(tmp_path / "d1")) == ([], ["moved-0"])
            (held,) = again.logs.held()
            assert (held.log_dir.directory_id, held.log.end_offset) == (d1, RECORDS)
            assert directory_at(controller) == d1

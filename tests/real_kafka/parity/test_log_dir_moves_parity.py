"""A real broker and a simulated one, each with two directories on one controller, are asked to move and to describe.

Each has partitions of its own; both are asked the same with their own ones named, and answer the same, field by field.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.kafka.processes import KafkaBroker
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mockraft.wire.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest

from ...topics import ask, create_topics
from ...topics import topic as new_topic
from ..disks_and_configs import set_config
from ..lost_folders import remove_while_in_use

pytestmark = pytest.mark.real_kafka

REAL, SIMULATED = 1, 2
OWN, OTHERS = "own", "others"
LONG = "t" * 249


class Subject:
    """One broker that is asked; `d0` and `d1` stand for its directories."""

    def __init__(self, broker_id: int, controller: Controller, folder: Path) -> None:
        self.broker_id = broker_id
        self.controller = controller
        self.folder = folder
        self.answers: list[Any] = []
        self.bootstrap = ""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def lose(self, name: str) -> None: ...

    def index(self, who: str) -> int:
        """The partition that lies here, or that lies at the other broker."""
        return self.broker_id - 1 if who == OWN else 2 - self.broker_id

    async def alter(self, *asked: tuple[str, str, str | int], version: int | None = None) -> None:
        """Directory, topic and whose partition of each; what is answered is kept."""
        dirs = [
            AlterReplicaLogDir(
                path=str(self.folder / path) if not path.startswith(("/", "./")) else path,
                topics=[
                    AlterReplicaLogDirTopic(name=topic, partitions=[self.index(who) if isinstance(who, str) else who])
                ],
            )
            for path, topic, who in asked
        ]
        response = await ask(self.bootstrap, AlterReplicaLogDirsRequest(dirs=dirs), version)
        result = sorted(
            (topic.topic_name, self._whose(topic.topic_name, each.partition_index), each.error_code)
            for topic in response.results
            for each in topic.partitions
        )
        self.answers.append((asked, response.throttle_time_ms, result))

    async def describe(
        self, *topics: tuple[str, list[str]], every: bool = False, version: int | None = None
    ) -> dict[str, Any]:
        """The described directories without sizes; also kept for later."""
        named = [
            DescribableLogDirTopic(topic=name, partitions=[self.index(who) for who in partitions])
            for name, partitions in topics
        ]
        response = await ask(self.bootstrap, DescribeLogDirsRequest(topics=None if every else named), version)
        result: dict[str, Any] = to_json(response, 5 if version is None else version)
        for each in result["results"]:
            each["logDir"] = Path(each["logDir"]).relative_to(self.folder).name
            for size in ("totalBytes", "usableBytes"):
                each[size] = each.get(size, -1) > 0
            for topic in each["topics"]:
                for partition in topic["partitions"]:
                    partition["partitionIndex"] = self._whose(topic["name"], partition["partitionIndex"])
                    partition["partitionSize"] = partition["partitionSize"] > 0
            each["topics"].sort(key=lambda topic: topic["name"])
        result["results"].sort(key=lambda each: each["logDir"])
        self.answers.append((topics, every, version, result))
        return {each["logDir"]: each for each in result["results"]}

    async def settled(self, topic: str, name: str) -> None:
        """Return once its partition of a topic lies in this directory and nowhere else."""
        async with asyncio.timeout(40):
            while True:
                kept = len(self.answers)
                described = await self.describe((topic, [OWN]))
                del self.answers[kept:]
                if [each for each, result in described.items() if result["topics"]] == [name]:
                    return
                await asyncio.sleep(0.1)

    def _whose(self, topic: str, index: int) -> Any:
        own = {self.index(OWN): OWN, self.index(OTHERS): OTHERS}
        return own.get(index, index) if topic.startswith("t-") else index


class Real(Subject):
    async def start(self) -> None:
        self.process = KafkaBroker(
            self.broker_id,
            self.folder,
            self.controller.cluster_id,
            self.controller.bootstrap,
            properties={"replica.high.watermark.checkpoint.interval.ms": "300", "auto.create.topics.enable": "false"},
        )
        await asyncio.to_thread(self.process.format)
        self.process.start()
        await asyncio.to_thread(self.process.wait_until_running)
        self.bootstrap = self.process.bootstrap

    async def stop(self) -> None:
        self.process.kill()

    async def lose(self, name: str) -> None:
        await asyncio.to_thread(remove_while_in_use, self.folder / name)
        (self.folder / name).write_text("a file where a directory was")


class Simulated(Subject):
    async def start(self) -> None:
        self.broker = SimulatedBroker.joining(
            self.controller.bootstrap,
            self.controller.cluster_id,
            self.broker_id,
            log_dir_paths=(str(self.folder / "d0"), str(self.folder / "d1")),
            serve_clients=True,
        )
        self.broker.start()
        await self.broker.wait_until(BrokerState.RUNNING)
        assert self.broker.listener is not None
        self.bootstrap = self.broker.listener.bootstrap

    async def stop(self) -> None:
        await self.broker.kill()

    async def lose(self, name: str) -> None:
        self.broker.fail_log_dir(str(self.folder / name))


@pytest.fixture
async def subjects(tmp_path: Path) -> AsyncIterator[list[Subject]]:
    async with Controller() as controller:
        kinds = {REAL: Real, SIMULATED: Simulated}
        found = [kind(broker_id, controller, tmp_path / f"b{broker_id}") for broker_id, kind in kinds.items()]
        try:
            await asyncio.gather(*(subject.start() for subject in found))
            yield list(found)
        finally:
            for subject in found:
                await subject.stop()


async def create(subjects: list[Subject], topic: str, records: int = 0) -> None:
    """A topic with a partition on each broker, both in d0, whatever the brokers chose; then records."""
    controller = subjects[0].controller
    placed = [(each.index(OWN), [each.broker_id]) for each in subjects]
    await create_topics(controller.bootstrap, new_topic(topic, manual=placed))
    for subject in subjects:
        async with asyncio.timeout(40):
            while not any(result["topics"] for result in (await subject.describe((topic, [OWN]))).values()):
                await asyncio.sleep(0.1)
        await subject.alter(("d0", topic, OWN))
        await subject.settled(topic, "d0")
        subject.answers.clear()
    if records:
        await asyncio.to_thread(produce, subjects, topic, records)


def produce(subjects: list[Subject], topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": ",".join(each.bootstrap for each in subjects)})
    for number in range(records):
        for subject in subjects:
            producer.produce(topic, b"record %d" % number, partition=subject.index(OWN))
    assert producer.flush(30) == 0


def assert_same(subjects: list[Subject]) -> None:
    real, simulated = (subject.answers for subject in subjects)
    assert len(real) == len(simulated) > 0
    for theirs, ours in zip(real, simulated, strict=True):
        assert ours == theirs


async def test_invalid_requests_are_refused_with_the_same_errors(subjects: list[Subject]) -> None:
    await create(subjects, "t-a")
    for subject in subjects:
        for version in (1, 2):
            await subject.alter(("d0", "t-a", OWN), ("d9", "t-a", OTHERS), version=version)
        await subject.alter(("d0", "t-a", 7))
        await subject.alter(("d0", "unknown", 0), ("d1", "unknown", 1))
        await subject.alter(("d1", "t-a", OTHERS))
        await subject.alter(("d1", LONG, 0), ("/nowhere", LONG, 1))
        await subject.alter(("./d1", "t-a", OWN), ("/", "t-a", OTHERS), ("", "unknown", 0))
        await subject.alter(("d9", "t-a", OWN), ("d0", "t-a", OWN))
        await subject.alter(("d0", "t-a", OWN), ("d9", "t-a", OWN))
        await subject.alter(("d0", "t-a", -1))
        await subject.alter()
    assert_same(subjects)


async def test_moves_and_descriptions_are_equal(subjects: list[Subject]) -> None:
    await create(subjects, "t-a", records=50)
    await create(subjects, "t-b")
    for subject in subjects:
        await subject.alter(("d1", "t-a", OWN), ("d1", "t-b", OTHERS))
        await subject.settled("t-a", "d1")
        await subject.alter(("d1", "t-a", OWN))
        for version in (1, 2, 3, 4, 5):
            await subject.describe(("t-a", [OWN, OTHERS]), ("t-b", [OWN]), ("none", [OWN]), version=version)
            await subject.describe(version=version)
        await subject.describe(every=True)
        await subject.alter(("d0", "t-a", OWN))
        await subject.settled("t-a", "d0")
        await subject.describe(every=True)
    assert_same(subjects)


async def test_throttled_move_is_described_replaced_and_cancelled_as_in_kafka(subjects: list[Subject]) -> None:
    await create(subjects, "t-a", records=3000)
    for subject in subjects:
        set_config(subject.controller, subject.broker_id, "replica.alter.log.dirs.io.max.bytes.per.second", "0")
        await subject.alter(("d1", "t-a", OWN))
        described = await subject.describe(("t-a", [OWN]))
        (future,) = described["d1"]["topics"][0]["partitions"]
        assert future["isFutureKey"]
        # How much of it was copied before the throttle was heard of is a matter of luck.
        assert future.pop("offsetLag") >= 0
        future.pop("partitionSize")
        await subject.alter(("d1", "t-a", OWN))
        await subject.alter(("d0", "t-a", OWN))
        await subject.settled("t-a", "d0")
        await subject.describe(("t-a", [OWN]))
    assert_same(subjects)


async def test_cordoned_and_offline_directories_are_described_as_in_kafka(subjects: list[Subject]) -> None:
    await create(subjects, "t-a", records=5)
    await create(subjects, "t-b")
    for subject in subjects:
        set_config(subject.controller, subject.broker_id, "cordoned.log.dirs", str(subject.folder / "d1"))
        async with asyncio.timeout(60):
            while not (await subject.describe())["d1"]["isCordoned"]:
                subject.answers.pop()
                await asyncio.sleep(0.1)
        await subject.alter(("d1", "t-a", OWN), ("d1", "unknown", 0), ("d1", "t-b", OTHERS))
        await subject.alter(("d0", "t-a", OWN))
        set_config(subject.controller, subject.broker_id, "cordoned.log.dirs", None)
        async with asyncio.timeout(60):
            while (await subject.describe())["d1"]["isCordoned"]:
                subject.answers.pop()
                await asyncio.sleep(0.1)
        await subject.alter(("d1", "t-a", OWN))
        await subject.settled("t-a", "d1")
        await subject.lose("d1")
        async with asyncio.timeout(40):
            while not (await subject.describe(every=True))["d1"]["errorCode"]:
                subject.answers.pop()
                await asyncio.sleep(0.1)
        await subject.alter(("d1", "t-b", OWN), ("d0", "t-a", OWN))
        await subject.alter(("d0", "t-b", OWN), ("d0", "t-b", OTHERS), ("d0", "unknown", 0), ("d9", "t-a", OWN))
    assert_same(subjects)

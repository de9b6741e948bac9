"""A move that one broker began and was killed in, the other ends: a real one and a simulated one on the same disks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.kafka.processes import KafkaBroker
from mockraft.server.controller.result import ControllerResult
from mockraft.wire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.uuids import read_text

from ...topics import ask, assigned, create_topics
from ...waiting import until

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

    async def start_real(self) -> None:
        self.real.start()
        await asyncio.to_thread(self.real.wait_until_running)

    @property
    def image(self) -> Any:
        return self.controller.running.controller.image

    def known(self) -> bytes:
        """The directory that the controller has the replica in."""
        return bytes(self.image.topics.by_name[TOPIC].partitions[0].directories[0])

    def path_of(self, directory_id: bytes) -> Path:
        ids = {path: self._directory_id(path) for path in self.real.log_dirs}
        return next(path for path, found in ids.items() if found == directory_id)

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
        name = "replica.alter.log.dirs.io.max.bytes.per.second"
        record = ConfigRecord(resource_type=4, resource_name="1", name=name, value=value)
        running = self.controller.running
        running.controller.commit(ControllerResult([RecordAt(record, 0)], None), running.clock.now_ms())

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

    def _directory_id(self, path: Path) -> bytes:
        lines = (path / "meta.properties").read_text().splitlines()
        return read_text(next(line.partition("=")[2] for line in lines if line.startswith("directory.id=")))


@pytest.fixture
async def disks(tmp_path: Path) -> AsyncIterator[Disks]:
    async with Controller(session_timeout_ms=2000) as controller:
        found = Disks(controller, tmp_path / "b1")
        await asyncio.to_thread(found.real.format)
        try:
            yield found
        finally:
            found.real.kill()


async def test_a_simulated_broker_ends_a_real_ones_move(disks: Disks) -> None:
    await disks.start_real()
    source = await disks.create(disks.real.bootstrap)
    target = next(path for path in disks.real.log_dirs if path != source)
    await disks.begin(disks.real.bootstrap, target)
    disks.real.kill()
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
    await disks.start_real()
    await until(lambda: disks.lies() == {source.name: [], target.name: ["moved-0"]})
    assert disks.path_of(disks.known()) == target
    assert await disks.consumed(disks.real.bootstrap) == VALUES

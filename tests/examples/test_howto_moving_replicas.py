"""Examples for docs/moving-replicas.md (KIP-113)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.moves.errors import MoveEndedError, MoveRefusedError
from mockraft.brokers.moves.move import Stage


async def fill(broker: SimulatedBroker, topic: str) -> Path:
    """A topic with some records; returns the directory the broker chose for it."""

    def run() -> None:
        clients: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(clients)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
        producer = Producer(clients)
        for number in range(50):
            producer.produce(topic, b"record %d" % number)
        assert producer.flush(20) == 0

    await asyncio.to_thread(run)
    return next(Path(at.path) for at in broker.log_dirs.values() if f"{topic}-0" in at.replicas)


async def test_replica_moves_to_another_directory(tmp_path: Path) -> None:
    async with (
        Controller() as controller,
        SimulatedBroker.joining(
            controller.bootstrap, controller.cluster_id, 1, log_dirs=[tmp_path / "d0", tmp_path / "d1"]
        ) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        source = await fill(broker, "orders")
        target = tmp_path / ("d1" if source.name == "d0" else "d0")

        await broker.move_replica("orders", 0, str(target))

        assert (target / "orders-0").is_dir()
        assert not (source / "orders-0").exists()
        topic = controller.running.controller.image.topics.by_name["orders"]
        (directory_id,) = topic.partitions[0].directories
        assert broker.directories.find(directory_id).path == str(target)


async def test_failed_target_ends_the_move() -> None:
    paths = ("/simulated/d0", "/simulated/d1", "/simulated/d2")
    async with (
        Controller() as controller,
        SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1, log_dir_paths=paths) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        source = await fill(broker, "orders")
        target = next(path for path in paths if path != str(source))

        broker.slow_log_dir(target, ms=60_000)
        moving = asyncio.create_task(broker.move_replica("orders", 0, target))
        await asyncio.sleep(0)
        (move,) = broker.moves
        assert (move.source, move.target, move.stage) == (str(source), target, Stage.COPYING)
        assert move.offset_lag == 50

        broker.fail_log_dir(target)
        with pytest.raises(MoveEndedError, match=f"{target} is offline"):
            await moving
        assert broker.log_dirs[str(source)].replicas == ("orders-0",)

        with pytest.raises(MoveRefusedError, match="is not found in the config"):
            await broker.move_replica("orders", 0, "/elsewhere")

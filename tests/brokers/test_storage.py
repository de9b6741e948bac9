"""The part of a broker that opens and closes its logs."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.lifecycle import End
from mockraft.wire import api_keys

TOPIC = bytes(range(16))


def config(*paths: str, disks: dict[str, Disk] | None = None) -> BrokerConfig:
    drawn = draw_config(1, "cluster", (("127.0.0.1", 1),), random.Random(1), log_dir_paths=paths or ("/simulated/d0",))
    return dataclasses.replace(drawn, open_disk=disks.__getitem__) if disks else drawn


async def test_a_broker_that_closes_cleanly_leaves_the_mark_and_its_epoch_to_the_next_one() -> None:
    disks: dict[str, Disk] = {"/simulated/d0": MemoryDisk("/simulated/d0")}
    broker = SimulatedBroker(config(disks=disks))
    broker.node.storage.start()
    broker.logs.create((TOPIC, 0), "t", broker.config.log_dirs[0].directory_id)
    broker.node.life = broker.life._replace(broker_epoch=42)
    broker.node.end = End.GRANTED
    broker.node.storage.close()
    assert disks["/simulated/d0"].exists(".kafka_cleanshutdown")

    again = SimulatedBroker(config(disks=disks))
    again.node.storage.start()

    assert again.config.previous_broker_epoch == 42
    assert again.logs.log((TOPIC, 0)) is not None
    await again.close()


def test_an_interval_that_is_no_number_is_named_before_anything_starts() -> None:
    wrong = dataclasses.replace(config(), properties={"log.flush.offset.checkpoint.interval.ms": "often"})
    with pytest.raises(ValueError, match=r"log\.flush\.offset\.checkpoint\.interval\.ms must be an integer .*'often'"):
        SimulatedBroker(wrong)


async def test_a_component_of_a_broker_that_breaks_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    def breaks() -> None:
        raise KeyError("no such thing")

    broker = SimulatedBroker(config())
    broker.start()
    broker.node.kernel.after("breaks", 0, breaks)
    await broker.wait_stopped()
    assert (broker.end, broker.fault) == (End.FATAL, "a defect of mockraft: KeyError('no such thing')")
    assert "a defect of mockraft" in caplog.text


async def test_a_killed_broker_leaves_no_mark_and_gives_its_directories_back() -> None:
    disks: dict[str, Disk] = {"/simulated/d0": MemoryDisk("/simulated/d0")}
    broker = SimulatedBroker(config(disks=disks))
    broker.node.storage.start()
    broker.node.end = End.STOPPED
    broker.node.storage.close()
    assert disks["/simulated/d0"].names() == []

    again = SimulatedBroker(config(disks=disks))
    again.node.storage.start()
    assert again.config.previous_broker_epoch == -1
    await again.close()


async def test_two_brokers_on_one_directory_are_one_too_many(tmp_path: Path) -> None:
    real = dataclasses.replace(config(str(tmp_path)), open_disk=RealDisk)
    first, second = SimulatedBroker(real), SimulatedBroker(real)
    first.node.storage.start()
    with pytest.raises(BlockingIOError, match=f"another broker runs on this log directory.*{tmp_path}"):
        async with second:
            pass

    assert first.logs.live() == list(first.logs.log_dirs)
    await first.close()


async def test_a_directory_that_cannot_be_read_is_offline_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "d0").mkdir()
    (tmp_path / "d1").write_text("a file")
    real = dataclasses.replace(config(str(tmp_path / "d0"), str(tmp_path / "d1")), open_disk=RealDisk)
    broker = SimulatedBroker(real)
    broker.node.storage.start()

    assert [log_dir.path for log_dir in broker.logs.live()] == [str(tmp_path / "d0")]
    assert "Not a directory" in str(broker.logs.log_dirs[1].offline)
    await broker.close()


async def test_the_registration_after_a_clean_shutdown_names_the_epoch_before(cluster: Any) -> None:
    first = await cluster.start(1)
    epoch = first.life.broker_epoch
    again = await cluster.restart(first)
    await again.kill()
    third = cluster.joining(1)
    third.node.storage.start()
    await third.close()

    told = [request.previous_broker_epoch for request in cluster.asked(api_keys.BROKER_REGISTRATION)]
    assert told == [-1, epoch]
    assert third.config.previous_broker_epoch == -1

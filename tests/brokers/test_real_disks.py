"""The part of a broker that opens and closes its logs, and real directories with file system errors."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.lifecycle import End
from mockraft.brokers.log_dirs.errors import StorageError
from mockraft.wire import api_keys, record_batch

from ..waiting import until
from .conftest import started

SEGMENT = "00000000000000000000.log"


def vanish(folder: Path) -> None:
    """The mount is gone."""
    shutil.rmtree(folder)


def become_a_file(folder: Path) -> None:
    folder.rename(folder.with_name("gone"))
    folder.write_text("no directory")


def have_a_directory_for_a_segment(folder: Path) -> None:
    (folder / "orders-0" / SEGMENT).unlink()
    (folder / "orders-0" / SEGMENT).mkdir()


def have_a_loop_for_a_segment(folder: Path) -> None:
    (folder / "orders-0" / SEGMENT).unlink()
    (folder / "orders-0" / SEGMENT).symlink_to(SEGMENT)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Two brokers with real directories; the first has two of them."""
    brokers: list[SimulatedBroker] = []
    async with Controller() as controller:

        async def start(**options: Any) -> tuple[SimulatedBroker, SimulatedBroker, Any]:
            for broker_id in (1, 2):
                folder = tmp_path / str(broker_id)
                places = {"log_dirs": [folder / "d0", folder / "d1"], "metadata_log_dir": folder / "meta"}
                brokers.append(await started(controller, broker_id, **places, **options))
            return brokers[0], brokers[1], controller

        yield start
        for broker in brokers:
            await broker.kill()


def append(broker: SimulatedBroker, key: tuple[bytes, int]) -> None:
    log = broker.logs.log(key)
    assert log is not None
    log.append_as_leader(record_batch.encode([b"one more"], base_offset=0, leader_epoch=0, timestamp_ms=1), 0, 1)


async def with_a_replica(pair: Any, **options: Any) -> tuple[SimulatedBroker, SimulatedBroker, Any, tuple[bytes, int]]:
    """Both brokers, the topic's partition in the controller's image, and its key; broker 1 leads."""
    first, second, controller = await pair(**options)
    topic = NewTopic("orders", 1, replica_assignment=[[1, 2]])
    admin = AdminClient({"bootstrap.servers": first.bootstrap_servers})
    created = admin.create_topics([topic])["orders"]
    await asyncio.to_thread(created.result, 20)
    await until(lambda: first.directories.placed and second.directories.placed)
    (key,) = first.directories.placed
    partitions = controller.running.controller.image.topics.by_name["orders"].partitions
    append(first, key)
    return first, second, partitions, key


@pytest.mark.parametrize("io_errors", ["kafka", "kip-18"])
@pytest.mark.parametrize("happens", [vanish, become_a_file])
async def test_missing_directory_is_offline_without_effect_on_others(
    pair: Any, happens: Callable[[Path], None], io_errors: str
) -> None:
    first, second, partitions, key = await with_a_replica(pair, io_errors=io_errors)
    lost = first.directories.placed[key]
    happens(Path(first.directories.find(lost).path))
    with pytest.raises(StorageError):
        append(first, key)
    assert set(first.directories.offline) == {lost}
    await until(lambda: (partitions[0].leader, partitions[0].isr) == (2, (2,)))
    assert first.state is second.state is BrokerState.RUNNING
    assert second.directories.offline == {}


@pytest.mark.parametrize("happens", [have_a_directory_for_a_segment, have_a_loop_for_a_segment])
async def test_a_file_that_is_no_file_costs_the_directory_by_kafkas_rule_and_the_replica_by_kip_18s(
    pair: Any, happens: Callable[[Path], None]
) -> None:
    first, _, partitions, key = await with_a_replica(pair, io_errors="kip-18")
    folder = Path(first.directories.find(first.directories.placed[key]).path)
    happens(folder)
    with pytest.raises(StorageError):
        append(first, key)
    assert (first.directories.lost, first.directories.offline) == ({key}, {})
    await until(lambda: (partitions[0].leader, partitions[0].isr, partitions[0].replicas) == (2, (2,), (1, 2)))
    assert (folder / "orders-0").is_dir(), "what is left is left"


async def test_a_directory_that_is_mended_is_used_at_the_next_start(pair: Any, tmp_path: Path) -> None:
    first, _, _, key = await with_a_replica(pair)
    folder = Path(first.directories.find(first.directories.placed[key]).path)
    become_a_file(folder)
    with pytest.raises(StorageError):
        append(first, key)
    await first.kill()
    folder.unlink()
    folder.with_name("gone").rename(folder)
    again = SimulatedBroker(replace(first.config, incarnation_id=b"again, and again"))
    again.start()
    log = again.logs.log(key)
    assert log is not None
    assert log.end_offset == 1
    assert not again.directories.has_offline
    await again.kill()


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


async def test_the_registration_after_a_clean_shutdown_names_the_epoch_before(cluster: Any) -> None:
    first = await cluster.start(1)
    epoch = first.life.broker_epoch
    again = await cluster.restart(first)
    await again.kill()
    third = cluster.joining(1)
    third.node.storage.start()
    await third.close()

    result = [request.previous_broker_epoch for request in cluster.asked(api_keys.BROKER_REGISTRATION)]
    assert result == [-1, epoch]
    assert third.config.previous_broker_epoch == -1

"""Real directories with file system errors: one broker loses them, the others in the process continue."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.log_dirs.errors import StorageError
from mockraft.wire import record_batch

from ..waiting import until

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
    started = []
    async with Controller() as controller:

        async def start(**options: Any) -> tuple[SimulatedBroker, SimulatedBroker, Any]:
            for broker_id in (1, 2):
                folders = [tmp_path / str(broker_id) / name for name in ("d0", "d1")]
                broker = SimulatedBroker.joining(
                    controller.bootstrap,
                    controller.cluster_id,
                    broker_id,
                    log_dirs=folders,
                    metadata_log_dir=tmp_path / str(broker_id) / "meta",
                    **options,
                )
                started.append(broker)
                broker.start()
                await broker.wait_until(BrokerState.RUNNING)
            return started[0], started[1], controller

        yield start
        for broker in started:
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

"""Directories that fail, in memory or on a file system, and the broker's reports and restarts (KIP-858)."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.ids.host_map import HOSTS_FILE, HostFile, HostMapError
from mockraft.brokers.lifecycle import End
from mockraft.brokers.log_dirs.ensemble import META_PROPERTIES, LogDirsError, MetaProperties, Refusal
from mockraft.brokers.log_dirs.errors import StorageError
from mockraft.brokers.log_dirs.startup_rules import open_log_dirs
from mockraft.brokers.log_dirs.storage_format import format_log_dirs
from mockraft.wire import api_keys, record_batch
from mockraft.wire.directory_ids import UNASSIGNED

from ..waiting import until
from .conftest import PATHS, Cluster, ids, started


async def test_simultaneous_failures_are_reported_together_and_in_later_heartbeats(cluster: Cluster) -> None:
    broker = await cluster.start(dirs=3)
    broker.fail_log_dir(PATHS[1])
    broker.fail_log_dir(ids(broker)[2])
    await until(lambda: cluster.image.cluster.brokers[1].log_dirs == (ids(broker)[0],))
    await cluster.heartbeats()
    result = [request.offline_log_dirs for request in cluster.asked(api_keys.BROKER_HEARTBEAT)]
    first = next(number for number, offline in enumerate(result) if offline)
    assert {frozenset(offline) for offline in result[first:]} == {frozenset(ids(broker)[1:])}


def led_by(cluster: Cluster, topic_id: bytes, index: int, leader: int, isr: tuple[int, ...]) -> bool:
    partition = cluster.partition(topic_id, index)
    return (partition.leader, partition.isr) == (leader, isr)


async def test_the_leaders_of_a_failed_directory_move_and_its_logs_are_not_served(cluster: Cluster) -> None:
    broker, other = await cluster.start(1), await cluster.start(2)
    topic_id = await cluster.create("orders", [1, 2], [1, 2], [1, 2], [1, 2])
    await until(lambda: not {UNASSIGNED} & {d for p in range(4) for d in cluster.partition(topic_id, p).directories})
    broker.fail_log_dir(PATHS[0])
    hit = {key for key, directory_id in broker.directories.placed.items() if directory_id == ids(broker)[0]}
    assert len(hit) == 2
    for topic, index in broker.directories.placed:
        leader, isr = (2, (2,)) if (topic, index) in hit else (1, (1, 2))
        await until(partial(led_by, cluster, topic_id, index, leader, isr))
        assert (broker.logs.log((topic, index)) is None) == ((topic, index) in hit)
        assert broker.directories.is_here((topic, index)) == ((topic, index) not in hit)
    assert other.directories.has_offline is False
    assert broker.state is BrokerState.RUNNING


async def test_broker_with_one_directory_stops_without_a_heartbeat_when_it_fails(cluster: Cluster) -> None:
    broker = await cluster.start(dirs=1)
    broker.fail_log_dir(PATHS[0])
    await broker.wait_stopped()
    assert broker.end is End.ALL_LOG_DIRS_FAILED
    assert broker.end.is_failure
    assert not any(request.offline_log_dirs for request in cluster.asked(api_keys.BROKER_HEARTBEAT))


async def test_failure_of_the_last_directory_is_never_reported(cluster: Cluster) -> None:
    broker = await cluster.start()
    broker.fail_log_dir(PATHS[0])
    await until(lambda: broker.life.offline_dirs == {ids(broker)[0]: True})
    broker.fail_log_dir(PATHS[1])
    await broker.wait_stopped()
    assert broker.end is End.ALL_LOG_DIRS_FAILED
    assert not any(ids(broker)[1] in request.offline_log_dirs for request in cluster.asked(api_keys.BROKER_HEARTBEAT))


async def test_failed_metadata_directory_stops_the_broker(cluster: Cluster) -> None:
    drawn = cluster.joining().config
    broker = await cluster.start_with(replace(drawn, metadata_directory_id=drawn.log_dirs[0].directory_id))
    assert cluster.asked(api_keys.BROKER_REGISTRATION)[0].log_dirs != []
    broker.fail_log_dir(PATHS[0])
    await broker.wait_stopped()
    assert broker.end is End.METADATA_LOG_DIR_FAILED
    assert not any(request.offline_log_dirs for request in cluster.asked(api_keys.BROKER_HEARTBEAT))


@pytest.mark.parametrize("removed", [False, True])
async def test_a_failed_directory_of_the_metadata_log_alone_stops_the_broker(
    cluster: Cluster, tmp_path: Path, removed: bool
) -> None:
    metadata = tmp_path / "m"
    metadata.mkdir()
    drawn = cluster.joining(metadata_log_dir=metadata).config
    on_disk = replace(drawn, open_disk=lambda path: RealDisk(path) if path == str(metadata) else drawn.open_disk(path))
    broker = await cluster.start_with(on_disk)
    if removed:
        metadata.rmdir()
    else:
        broker.fail_log_dir(metadata)
    await broker.wait_stopped()
    assert broker.end is End.METADATA_LOG_DIR_FAILED


async def test_several_directories_are_reported_at_a_level_without_them(caplog: pytest.LogCaptureFixture) -> None:
    async with Controller(metadata_version=14) as controller:
        cluster = Cluster(controller)
        broker = await cluster.start()
        await broker.kill()
    (line,) = [each for each in caplog.messages if "JBOD" in each]
    assert "in the current MetadataVersion 3.6-IV2. Need 3.7-IV2 or higher" in line


async def test_a_metadata_directory_of_its_own_is_not_registered(cluster: Cluster) -> None:
    broker = await cluster.start()
    (registration,) = cluster.asked(api_keys.BROKER_REGISTRATION)
    assert set(registration.log_dirs) == set(ids(broker))
    assert broker.config.metadata_directory_id not in registration.log_dirs


async def test_unreported_failure_stops_the_broker() -> None:
    async with Controller() as controller:
        cluster = Cluster(controller)
        broker = await cluster.start(log_dir_failure_timeout_ms=300)
    broker.fail_log_dir(PATHS[0])
    await until(lambda: broker.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN)
    assert broker.life.leaving_for is End.LOG_DIR_NOT_REPORTED, "whatever it leads"
    assert broker.life.offline_dirs == {ids(broker)[0]: False}
    await broker.kill()


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_failure_timeout_is_at_least_1_ms(cluster: Cluster, timeout_ms: int) -> None:
    assert cluster.joining().config.log_dir_failure_timeout_ms == 30_000
    with pytest.raises(ValueError, match=r"log[._]dir[._]failure[._]timeout[._]ms"):
        cluster.joining(log_dir_failure_timeout_ms=timeout_ms)


async def test_unknown_directory_is_refused_with_the_existing_ones(cluster: Cluster) -> None:
    broker = cluster.joining()
    with pytest.raises(
        LookupError, match=r"broker 1 has no log dir /nope; it has /simulated/d0 \(.{22}\), /simulated/d1"
    ):
        broker.fail_log_dir("/nope")
    with pytest.raises(LookupError, match="it has /simulated/d0"):
        broker.slow_log_dir(bytes(16), 5)


async def test_directory_failing_at_start_is_registered_and_then_reported_as_failed(cluster: Cluster) -> None:
    cluster.disks[1, PATHS[1]] = broken = FailingDisk(MemoryDisk(PATHS[1]))
    broken.fail()
    broker = await cluster.start()
    (registration,) = cluster.asked(api_keys.BROKER_REGISTRATION)
    assert set(registration.log_dirs) == set(ids(broker))
    await until(lambda: cluster.image.cluster.brokers[1].log_dirs == (ids(broker)[0],))
    assert set(broker.directories.offline) == {ids(broker)[1]}


async def test_a_broker_of_which_no_directory_can_be_opened_is_over_before_it_registers(cluster: Cluster) -> None:
    for path in PATHS[:2]:
        cluster.disks[1, path] = broken = FailingDisk(MemoryDisk(path))
        broken.fail()
    broker = cluster.joining()
    broker.start()
    await broker.wait_stopped()
    assert broker.end is End.ALL_LOG_DIRS_FAILED
    assert cluster.asked(api_keys.BROKER_REGISTRATION) == []


NOBODY = 65534
META = MetaProperties(1, "cluster", 8)
WHOLE = META.with_directory_id(b"a" * 16)
Make = Callable[[str, int, MetaProperties | None], str]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes a directory with this mode and this file in it, where every user gets to."""
    root = Path(tempfile.mkdtemp(prefix="mockraft-test-"))
    root.chmod(0o755)

    def make_dir(name: str, mode: int, meta: MetaProperties | None) -> str:
        path = root / name
        path.mkdir()
        if meta is not None:
            (path / META_PROPERTIES).write_bytes(meta.write())
        path.chmod(mode)
        return str(path)

    yield make_dir
    for path in root.iterdir():
        path.chmod(0o755)
    shutil.rmtree(root)


@pytest.fixture
def become(make: Make) -> Iterator[Callable[[], None]]:
    """From the call on the test is nobody: no mode keeps root out."""
    is_root = os.geteuid() == 0
    yield (lambda: os.seteuid(NOBODY)) if is_root else (lambda: None)
    if is_root:
        os.seteuid(0)


def test_a_dir_that_may_not_be_read_is_offline_and_a_whole_one_need_not_be_written(
    make: Make, become: Callable[[], None]
) -> None:
    whole, closed = make("whole", 0o555, WHOLE), make("closed", 0o000, META)
    become()
    begun = open_log_dirs([whole, closed], 8, None, random.Random(1))
    assert begun.offline == {closed: f"{closed}/{META_PROPERTIES}: Permission denied"}
    assert [each.path for each in begun.log_dirs] == [whole]


def test_a_dir_that_may_not_be_written_gets_no_directory_id(make: Make, become: Callable[[], None]) -> None:
    path = make("d0", 0o555, META)
    become()
    with pytest.raises(LogDirsError, match=f"{path}.*Permission denied.*writable") as refused:
        open_log_dirs([path], 8, None, random.Random(1))
    assert refused.value.refusal is Refusal.NOT_WRITTEN
    assert MetaProperties.read(Path(path, META_PROPERTIES).read_bytes()) == META


def test_a_dir_that_may_not_be_written_is_not_formatted(make: Make, become: Callable[[], None]) -> None:
    path = make("d0", 0o555, None)
    become()
    for each in (path, f"{path}/below"):
        with pytest.raises(LogDirsError, match=f"{each}.*Permission denied") as refused:
            format_log_dirs([each], 8, "cluster", random.Random(1))
        assert refused.value.refusal is Refusal.NOT_WRITTEN
    assert os.listdir(path) == []


def test_a_data_dir_that_may_not_be_written_gets_no_host(make: Make, become: Callable[[], None]) -> None:
    path = make("data", 0o555, None)
    become()
    with pytest.raises(HostMapError, match=f"{path}.*Permission denied.*writable"), HostFile(Path(path)).changing():
        pass
    assert not Path(path, HOSTS_FILE).exists()


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

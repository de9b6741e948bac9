"""I/O errors below replicas in use by clients and followers: losses and survivors (KIP-18, KIP-858)."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mockraft import BrokerState, Controller
from mockraft.wire.directory_ids import LOST

from ...waiting import until
from .conftest import consume, produce

Brokers = Any

KIP_18: dict[str, Any] = {"io_errors": "kip-18"}
TEXTS = [f"text {number}" for number in range(50)]


SHORT_SESSION = pytest.mark.parametrize("controller", [1_500], indirect=True, ids=["short session"])


@pytest.fixture
async def controller(request: pytest.FixtureRequest) -> AsyncIterator[Controller]:
    """Nobody is fenced here because the machine is busy, but where a test waits for the end of a session."""
    async with Controller(session_timeout_ms=getattr(request, "param", 30_000)) as running:
        yield running


def dirs_of(broker_id: int, count: int = 2) -> tuple[str, ...]:
    return tuple(f"/simulated/broker-{broker_id}/d{number}" for number in range(count))


async def two(brokers: Brokers, dirs: int = 2, **options: Any) -> Any:
    """Brokers 1 and 2 with so many directories; the first."""
    for broker_id in (1, 2):
        await brokers.start(broker_id, log_dir_paths=dirs_of(broker_id, dirs), **options)
    return brokers.running[1]


async def replicated(brokers: Brokers, dirs: int = 2, **options: Any) -> tuple[Any, Any]:
    """The first of `two` and its replica, which leads: topic orders with TEXTS on both."""
    broker = await two(brokers, dirs, **options)
    key = await brokers.create_topic("orders", assigned=[1, 2])
    await produce(brokers, "orders", TEXTS)
    await brokers.isr("orders", 1, 2)
    return broker, key


def place(broker: Any, key: tuple[bytes, int], topic: str) -> str:
    """The path of a replica's directory."""
    return f"{broker.directories.find(broker.directories.placed[key]).path}/{topic}-{key[1]}"


# One replica, not its disk.


@pytest.mark.parametrize("dirs", [1, 2])
async def test_corrupt_file_of_a_leader_moves_only_that_partitions_leadership(brokers: Brokers, dirs: int) -> None:
    broker, key = await replicated(brokers, dirs, **KIP_18)
    others = [await brokers.create_topic(f"other-{number}", assigned=[1, 2]) for number in range(2)]
    broker.fail_file(place(broker, key, "orders"))
    assert await produce(brokers, "orders", ["one more"]) == ["one more"], "the producer goes to the new leader"

    lost = brokers.known("orders")
    assert (lost.leader, lost.isr, lost.replicas) == (2, (2,), (1, 2))
    assert lost.directories[0] == LOST
    assert broker.directories.lost == {key}
    assert broker.logs.log(key) is None
    assert broker.directories.offline == {}
    assert broker.state is BrokerState.RUNNING
    for number, other in enumerate(others):
        assert (brokers.known(f"other-{number}").leader, broker.logs.log(other) is None) == (1, False)
    assert await consume(brokers, "orders", 51) == [*TEXTS, "one more"]


async def test_a_followers_bad_file_takes_it_out_of_the_isr_and_the_leader_stays(brokers: Brokers) -> None:
    broker = await two(brokers, **KIP_18)
    key = await brokers.create_topic("orders", assigned=[2, 1])
    await brokers.isr("orders", 1, 2)
    broker.fail_file(place(broker, key, "orders"), errno.ENOENT)
    # Not acks=all: as in Kafka the high watermark waits for the follower until it lags, and then for another record.
    await produce(brokers, "orders", TEXTS, acks="1")
    await until(lambda: brokers.known("orders").isr == (2,))
    assert (brokers.known("orders").leader, brokers.known("orders").replicas) == (2, (2, 1))
    assert broker.directories.lost == {key}


async def test_sole_replica_of_a_failed_file_leaves_the_partition_without_a_leader(brokers: Brokers) -> None:
    broker = await two(brokers, restart_partitions_elsewhere=True, **KIP_18)
    key = await brokers.create_topic("orders", assigned=[1])
    await produce(brokers, "orders", TEXTS)
    broker.fail_file(place(broker, key, "orders"))
    assert await produce(brokers, "orders", ["lost"], strict=False, message_timeout_ms=1500) == []
    await until(lambda: brokers.known("orders").leader == -1)
    assert broker.directories.lost == {key}, "and it is not begun anew: its data could only be lost"


async def test_a_file_that_cannot_be_read_is_an_error_before_any_byte_is_sent(brokers: Brokers) -> None:
    broker, key = await replicated(brokers, **KIP_18)
    broker.fail_file(place(broker, key, "orders"))
    assert await consume(brokers, "orders", 50) == TEXTS, "from the other replica"
    assert brokers.known("orders").leader == 2


async def test_a_lost_replica_is_replicated_again_in_another_directory(brokers: Brokers) -> None:
    broker, key = await replicated(brokers, restart_partitions_elsewhere=True, **KIP_18)
    before = broker.directories.placed[key]
    broker.fail_file(place(broker, key, "orders"))
    await produce(brokers, "orders", ["one more"])

    await brokers.isr("orders", 1, 2)
    assert broker.directories.placed[key] != before
    await until(lambda: brokers.known("orders").directories[0] == broker.directories.placed[key])
    assert brokers.known("orders").leader == 2
    assert broker.logs.log(key).end_offset == 51
    assert (broker.directories.lost, broker.directories.offline) == (set(), {})
    assert await consume(brokers, "orders", 51) == [*TEXTS, "one more"]


@SHORT_SESSION
async def test_remains_of_a_lost_replica_are_not_restored_beside_the_new_one(brokers: Brokers) -> None:
    options: dict[str, Any] = {"restart_partitions_elsewhere": True, **KIP_18}
    broker, key = await replicated(brokers, **options)
    left = place(broker, key, "orders")
    broker.fail_file(left)
    await produce(brokers, "orders", ["one more"])
    await brokers.isr("orders", 1, 2)
    there = broker.directories.placed[key]
    await until(lambda: brokers.known("orders").directories[0] == there)

    await brokers.kill(1)
    await brokers.start(1, log_dir_paths=dirs_of(1), **options)
    broker = brokers.running[1]
    await brokers.isr("orders", 1, 2)
    assert broker.directories.placed == {key: there}
    assert broker.logs.log(key).end_offset == 51
    (old,) = (each for each in broker.logs.log_dirs if left.startswith(f"{each.path}/"))
    assert not old.disk.exists("orders-0")


# The whole disk.


async def test_the_same_bad_file_costs_the_whole_directory_by_kafkas_rule(brokers: Brokers) -> None:
    broker, key = await replicated(brokers)
    failed = broker.directories.placed[key]
    broker.fail_file(place(broker, key, "orders"))
    await produce(brokers, "orders", TEXTS)
    assert brokers.known("orders").leader == 2
    assert set(broker.directories.offline) == {failed}
    await until(lambda: broker.life.offline_dirs == {failed: True})


@pytest.mark.parametrize("io_errors", ["kafka", "kip-18"])
async def test_a_full_disk_is_everybodys(brokers: Brokers, io_errors: str) -> None:
    broker, key = await replicated(brokers, io_errors=io_errors)
    failed = broker.directories.placed[key]
    broker.fill_log_dir(failed)
    assert await produce(brokers, "orders", TEXTS) == TEXTS
    assert set(broker.directories.offline) == {failed}
    assert "No space left on device" in broker.directories.offline[failed]
    assert broker.directories.lost == set()
    fresh = await brokers.create_topic("payments", assigned=[1])
    assert broker.directories.placed[fresh] != failed, "and no new log is made there"


@pytest.mark.parametrize("io_errors", ["kafka", "kip-18"])
async def test_a_checkpoint_that_cannot_be_written_costs_the_directory(brokers: Brokers, io_errors: str) -> None:
    quick = {"replica.high.watermark.checkpoint.interval.ms": "30"}
    broker = await two(brokers, io_errors=io_errors, properties=quick)
    key = await brokers.create_topic("orders", assigned=[1, 2])
    failed = broker.directories.find(broker.directories.placed[key])
    broker.fail_file(f"{failed.path}/replication-offset-checkpoint", errno.EACCES)
    await brokers.create_topic("payments", assigned=[1, 2])
    await brokers.create_topic("invoices", assigned=[1, 2])
    await until(lambda: broker.directories.offline)
    assert set(broker.directories.offline) == {failed.directory_id}


async def test_failed_disk_is_never_written_again(brokers: Brokers) -> None:
    quick = {"replica.high.watermark.checkpoint.interval.ms": "20", "log.flush.offset.checkpoint.interval.ms": "20"}
    broker, key = await replicated(brokers, properties=quick)
    failed = broker.directories.find(broker.directories.placed[key])
    disk = broker.logs.log_dir(failed.directory_id).disk
    checkpoints = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
    await until(lambda: all(map(disk.exists, checkpoints)))
    broker.fail_log_dir(failed.path)
    broker.heal_log_dir(failed.path)
    held = {name: disk.read(name) for name in checkpoints}
    await produce(brokers, "orders", TEXTS)
    other = await brokers.create_topic("payments", assigned=[1])
    live = broker.logs.log_dir(broker.directories.placed[other]).disk
    await until(lambda: live.exists("replication-offset-checkpoint"))
    assert {name: disk.read(name) for name in held} == held
    assert key not in [each.key for each in broker.logs.held()]


async def test_the_replicas_of_a_failed_directory_are_replicated_again_in_another_one(brokers: Brokers) -> None:
    broker, key = await replicated(brokers, restart_partitions_elsewhere=True)
    broker.fail_log_dir(broker.directories.placed[key])
    (left,) = broker.directories.live()
    await until(lambda: brokers.known("orders").directories[0] == left.directory_id)
    await brokers.isr("orders", 1, 2)
    assert broker.logs.log(key).end_offset == 50
    assert await consume(brokers, "orders", 50) == TEXTS

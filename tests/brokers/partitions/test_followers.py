"""Followers whose logs are not the leader's: truncation, new starts, directories that fail under them."""

from __future__ import annotations

from typing import Any

from mockraft.brokers.log_dirs.batch_headers import read_headers
from mockraft.brokers.partitions.fetcher import fetch_version
from mockraft.brokers.partitions.hosted import whole_batches
from mockraft.wire import record_batch

from ...waiting import until
from .conftest import consume, produce

TEXTS = [f"record {number}" for number in range(60)]


def same(one: Any, other: Any) -> bool:
    """Return True if two replicas' logs are the same, byte for byte."""
    ends = {one.log.end_offset, other.log.end_offset}
    return len(ends) == 1 and one.log.read(0, 1 << 20, *ends) == other.log.read(0, 1 << 20, *ends)


async def test_records_that_only_a_dead_leader_had_are_cut_when_it_returns(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", assigned=[1, 2])
    await produce(brokers, "orders", TEXTS[:20])
    brokers.running[2].replicas.stick()
    await produce(brokers, "orders", ["never", "replicated"], acks="1")
    assert brokers.hosted(1, "orders").log.end_offset == 22
    await brokers.kill(1)
    await until(lambda: (leader := brokers.leader("orders")) and leader.state.broker_id == 2)
    await produce(brokers, "orders", TEXTS[20:21])
    await brokers.start(1)
    await brokers.isr("orders", 1, 2)
    assert same(brokers.hosted(1, "orders"), brokers.hosted(2, "orders"))
    assert await consume(brokers, "orders", 21) == TEXTS[:21]


async def test_a_leader_of_an_epoch_without_records_is_followed_all_the_same(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", assigned=[1, 2])
    await produce(brokers, "orders", TEXTS[:5])
    # Broker 2 leads an epoch in which nothing is written, and then follows again.
    await brokers.kill(1)
    await until(lambda: (leader := brokers.leader("orders")) and leader.state.broker_id == 2)
    await brokers.start(1)
    await brokers.isr("orders", 1, 2)
    await brokers.kill(2)
    await until(lambda: (leader := brokers.leader("orders")) and leader.state.broker_id == 1)
    await produce(brokers, "orders", TEXTS[5:10])
    await brokers.start(2)
    await brokers.isr("orders", 1, 2)
    assert same(brokers.hosted(1, "orders"), brokers.hosted(2, "orders"))


async def test_a_follower_that_lost_its_records_begins_where_the_leader_does(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", assigned=[1, 2])
    await produce(brokers, "orders", TEXTS[:20], linger_ms=0, batch_num_messages=1)
    await brokers.kill(2)
    await produce(brokers, "orders", TEXTS[20:40], linger_ms=0, batch_num_messages=1)
    leader = await brokers.isr("orders", 1)
    leader.delete_before(30)
    await brokers.start(2)
    await brokers.isr("orders", 1, 2)
    follower = brokers.hosted(2, "orders")
    assert (follower.log.start_offset, follower.log.end_offset) == (30, 40)


def test_only_whole_batches_up_to_the_leaders_epoch_are_taken() -> None:
    first, second, third = (
        record_batch.encode([b"x"], base_offset=offset, leader_epoch=epoch, timestamp_ms=1)
        for offset, epoch in ((0, 3), (1, 4), (2, 5))
    )
    assert whole_batches(first + second + third, 4) == first + second
    assert whole_batches(first + second[:-1], 9) == first
    assert whole_batches(first[:30], 9) == b""
    assert [header.base_offset for header in read_headers(whole_batches(first + second, 9))] == [0, 1]


def test_fetch_version_follows_the_metadata_version() -> None:
    assert [fetch_version(level) for level in (7, 9, 10, 19, 21, 26, 27, 30)] == [13, 14, 15, 16, 17, 17, 18, 18]

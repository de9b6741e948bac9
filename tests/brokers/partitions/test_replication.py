"""Simulated brokers replicate among themselves: ISRs that shrink and grow, logs that part, and new starts."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from mockraft.brokers.log_dirs.batch_headers import read_headers
from mockraft.brokers.partitions.fetcher import fetch_version
from mockraft.brokers.partitions.hosted import whole_batches
from mockraft.wire import api_keys, record_batch
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState

from ...topics import ask
from ...waiting import until
from .conftest import consume, produce

TEXTS = [f"record {number}" for number in range(200)]


async def test_acks_all_records_are_on_every_replica_and_consumed(brokers: Any) -> None:
    await brokers.start(1, 2, 3)
    await brokers.create_topic("orders", partitions=2, replicas=3)
    assert sorted(await produce(brokers, "orders", TEXTS)) == sorted(TEXTS)
    assert sorted(await consume(brokers, "orders", len(TEXTS), partitions=2)) == sorted(TEXTS)
    for partition in (0, 1):
        replicas = [brokers.hosted(broker_id, "orders", partition) for broker_id in (1, 2, 3)]
        assert len({replica.log.end_offset for replica in replicas}) == 1
        end_offset = replicas[0].log.end_offset
        assert len({replica.log.read(0, 1 << 20, end_offset) for replica in replicas}) == 1


async def test_a_dead_follower_leaves_the_isr_and_comes_back(brokers: Any) -> None:
    await brokers.start(1, 2, 3)
    await brokers.create_topic("orders", assigned=[1, 2, 3], min_insync_replicas=2)
    await produce(brokers, "orders", TEXTS[:50])
    await brokers.kill(3)
    await produce(brokers, "orders", TEXTS[50:100])
    await brokers.isr("orders", 1, 2)
    await brokers.start(3)
    leader = await brokers.isr("orders", 1, 2, 3)
    assert leader.state.broker_id == 1
    assert brokers.hosted(3, "orders").log.end_offset == leader.log.end_offset
    answered = [exchange.response for exchange in brokers.controller.journal.exchanges(api_keys.ALTER_PARTITION)]
    assert [partition.isr for each in answered for t in each.topics for partition in t.partitions][-1] == [1, 2, 3]
    assert await consume(brokers, "orders", 100) == TEXTS[:100]


async def test_a_stuck_follower_is_put_out_through_alter_partition_and_taken_in_again(brokers: Any) -> None:
    await brokers.start(1, 2)
    await brokers.create_topic("orders", assigned=[1, 2])
    brokers.running[2].replicas.stick()
    await produce(brokers, "orders", TEXTS[:20])
    leader = await brokers.isr("orders", 1)
    assert leader.log.high_watermark == leader.log.end_offset
    brokers.running[2].replicas.stick(False)
    await brokers.isr("orders", 1, 2)
    asked = [exchange.request for exchange in brokers.controller.journal.exchanges(api_keys.ALTER_PARTITION)]
    isrs = [
        [each.broker_id for each in partition.new_isr_with_epochs]
        for request in asked
        for topic in request.topics
        for partition in topic.partitions
    ]
    assert isrs == [[1], [1, 2]]
    registered = brokers.controller.running.controller.image.cluster.brokers
    assert [each.broker_epoch for each in asked[-1].topics[0].partitions[0].new_isr_with_epochs] == [
        registered[1].broker_epoch,
        registered[2].broker_epoch,
    ]


@pytest.mark.parametrize("clean", [True, False], ids=["shut down", "killed"])
async def test_acknowledged_records_survive_loss_of_the_leader(brokers: Any, clean: bool) -> None:
    await brokers.start(1, 2, 3)
    await brokers.create_topic("orders", assigned=[1, 2, 3], min_insync_replicas=2)
    acknowledged = await produce(brokers, "orders", TEXTS[:100])
    if clean:
        await brokers.running.pop(1).shut_down()
    else:
        await brokers.kill(1)
    acknowledged += await produce(brokers, "orders", TEXTS[100:])
    assert acknowledged == TEXTS
    assert await consume(brokers, "orders", len(TEXTS)) == TEXTS
    await brokers.start(1)
    leader = await brokers.isr("orders", 1, 2, 3)
    returned = brokers.hosted(1, "orders").log
    end_offset = leader.log.end_offset
    assert returned.read(0, 1 << 20, end_offset) == leader.log.read(0, 1 << 20, end_offset)


def hosts_nothing(broker: Any, key: Any) -> bool:
    return broker.replicas.hosted(key) is None and not broker.replicas.fetchers


async def test_deleted_topic_leaves_no_logs(brokers: Any) -> None:
    await brokers.start(1, 2)
    key = await brokers.create_topic("orders", replicas=2)
    await produce(brokers, "orders", TEXTS[:5])
    await ask(
        brokers.controller.bootstrap, DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=5000)
    )
    for broker in brokers.running.values():
        await until(partial(hosts_nothing, broker, key))
        assert broker.logs.held() == []


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

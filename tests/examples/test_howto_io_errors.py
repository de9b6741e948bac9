"""Examples for docs/io-errors.md: Kafka's rule, KIP-18's, and replicas restarted elsewhere."""

from __future__ import annotations

import asyncio
import errno

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller

TWO_DISKS = ("/data/d0", "/data/d1")


async def create_topic(bootstrap: str, name: str) -> None:
    """One partition, led by broker 2 and followed by broker 1."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(name, 1, replica_assignment=[[2, 1]])])[name]
    await asyncio.to_thread(created.result, 20)


async def produce(bootstrap: str, topic: str, *texts: str) -> None:
    """Every text is acknowledged by every replica in the ISR."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "retry.backoff.ms": 50})
    for text in texts:
        producer.produce(topic, text)
    assert await asyncio.to_thread(producer.flush, 20) == 0


async def test_kafka_rule_takes_the_whole_directory_offline() -> None:
    async with Controller(brokers=1) as controller:
        broker = await controller.start_broker(2, log_dir_paths=TWO_DISKS)
        await create_topic(controller.bootstrap_servers, "orders")
        await controller.wait_until(lambda: broker.log_dirs["/data/d0"].replicas == ("orders-0",))

        broker.fail_file("/data/d0/orders-0", errno.EIO)
        await produce(controller.bootstrap_servers, "orders", "one")

        await controller.wait_until(lambda: broker.log_dirs["/data/d0"].offline)
        assert "Input/output error" in str(broker.log_dirs["/data/d0"].offline)
        assert broker.state is BrokerState.RUNNING


async def test_kip_18_rule_loses_only_the_replica() -> None:
    async with Controller(brokers=1) as controller:
        broker = await controller.start_broker(2, log_dir_paths=("/data/d0",), io_errors="kip-18")
        await create_topic(controller.bootstrap_servers, "orders")
        await create_topic(controller.bootstrap_servers, "payments")
        await controller.wait_until(lambda: len(broker.directories.placed) == 2)

        broker.fail_file("/data/d0/orders-0", errno.EIO)
        await produce(controller.bootstrap_servers, "orders", "one")

        topics = controller.running.controller.image.topics.by_name
        await controller.wait_until(lambda: topics["orders"].partitions[0].isr == (1,))
        assert topics["orders"].partitions[0].leader == 1
        assert set(topics["orders"].partitions[0].replicas) == {1, 2}
        assert set(topics["payments"].partitions[0].isr) == {1, 2}
        assert broker.log_dirs["/data/d0"].offline is None


async def test_lost_replica_is_created_in_another_directory() -> None:
    async with Controller(brokers=1) as controller:
        broker = await controller.start_broker(
            2, log_dir_paths=TWO_DISKS, io_errors="kip-18", restart_partitions_elsewhere=True
        )
        await create_topic(controller.bootstrap_servers, "orders")
        await controller.wait_until(lambda: broker.log_dirs["/data/d0"].replicas == ("orders-0",))
        await produce(controller.bootstrap_servers, "orders", "one", "two")

        broker.fail_file("/data/d0/orders-0", errno.EIO)
        await produce(controller.bootstrap_servers, "orders", "three")

        await controller.wait_until(lambda: broker.log_dirs["/data/d1"].replicas == ("orders-0",))
        partition = controller.running.controller.image.topics.by_name["orders"].partitions
        await controller.wait_until(lambda: set(partition[0].isr) == {1, 2})
        ((key, _),) = broker.directories.placed.items()
        log = broker.logs.log(key)
        assert log is not None
        assert log.end_offset == 3


async def test_full_slow_and_flaky_directories() -> None:
    async with Controller(brokers=1) as controller:
        broker = await controller.start_broker(2, log_dir_paths=("/data/d0", "/data/d1", "/data/d2"))
        await create_topic(controller.bootstrap_servers, "orders")
        await controller.wait_until(lambda: broker.log_dirs["/data/d0"].replicas == ("orders-0",))

        broker.slow_log_dir("/data/d0", ms=20)
        await produce(controller.bootstrap_servers, "orders", "late, but it comes")
        assert broker.log_dirs["/data/d0"].offline is None

        broker.fill_log_dir("/data/d0")
        await produce(controller.bootstrap_servers, "orders", "no room for this one")
        await controller.wait_until(lambda: broker.log_dirs["/data/d0"].offline)
        assert "No space left on device" in str(broker.log_dirs["/data/d0"].offline)

        broker.flaky_log_dir("/data/d1", probability=0.5, seed=7)
        await create_topic(controller.bootstrap_servers, "payments")
        await controller.wait_until(lambda: broker.log_dirs["/data/d1"].offline)

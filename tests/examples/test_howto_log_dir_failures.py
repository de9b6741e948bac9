"""Examples for docs/log-dir-failures.md (KIP-858)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.wire import api_keys


async def create_topic(bootstrap: str, name: str, partitions: int, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(name, partitions, replicas)])[name]
    await asyncio.to_thread(created.result, 20)


async def test_only_leaders_in_the_failed_directory_move() -> None:
    async with Controller(brokers=2) as controller:
        first = await controller.start_broker(3, log_dir_paths=("/data/d0", "/data/d1"))
        await create_topic(first.bootstrap_servers, "orders", partitions=6, replicas=3)
        topic = controller.running.controller.image.topics.by_name["orders"]
        await controller.wait_until(lambda: len(first.directories.placed) == 6)
        await controller.wait_until(lambda: not first.queued_replica_to_dir_assignments)

        first.fail_log_dir("/data/d1")

        failed = first.directories.find("/data/d1").directory_id
        kept = first.directories.find("/data/d0").directory_id
        brokers = controller.running.controller.image.cluster.brokers
        await controller.wait_until(lambda: brokers[3].log_dirs == (kept,))
        for index, partition in topic.partitions.items():
            lost = first.directories.placed[topic.topic_id, index] == failed
            assert (3 in partition.isr) is not lost
            assert not (lost and partition.leader == 3)

        last = controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)
        assert failed in [e.request for e in last if e.request.broker_id == 3][-1].offline_log_dirs
        assert first.state is BrokerState.RUNNING


async def test_broker_stops_when_all_directories_failed() -> None:
    async with Controller() as controller:
        broker = await controller.start_broker(1, log_dir_paths=("/data/d0",))
        broker.fail_log_dir("/data/d0")
        await broker.wait_stopped()
        assert broker.end_reason == "all log dirs have failed"


async def test_replaced_disk_gets_its_replicas_again(tmp_path: Path) -> None:
    paths = [tmp_path / "d0", tmp_path / "d1"]
    async with Controller(session_timeout_ms=1000) as controller:
        cluster = (controller.bootstrap, controller.cluster_id)
        async with SimulatedBroker.joining(*cluster, 1, log_dirs=paths) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            await create_topic(broker.bootstrap_servers, "orders", partitions=4, replicas=1)
            await controller.wait_until(lambda: len(broker.directories.placed) == 4)
            await controller.wait_until(lambda: not broker.queued_replica_to_dir_assignments)
            old = broker.directories.find(paths[1]).directory_id

        paths[1].rename(tmp_path / "taken out")
        async with SimulatedBroker.joining(*cluster, 1, log_dirs=paths) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            new = broker.directories.find(paths[1]).directory_id
            assert new != old
            partitions = controller.running.controller.image.topics.by_name["orders"].partitions
            await controller.wait_until(lambda: old not in {each.directories[0] for each in partitions.values()})
            assert new in {each.directories[0] for each in partitions.values()}

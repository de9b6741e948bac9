"""Examples for docs/cordoning.md (KIP-1066)."""

from __future__ import annotations

import asyncio

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from mockraft import Controller


async def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(name, partitions, 1)])[name]
    await asyncio.to_thread(created.result, 20)


async def cordon(bootstrap: str, broker_id: int, value: str) -> None:
    """Send what `kafka-configs --alter --add-config cordoned.log.dirs=… --entity-type brokers` sends."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry("cordoned.log.dirs", value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker_id), incremental_configs=[entry])
    await asyncio.to_thread(admin.incremental_alter_configs([resource])[resource].result, 20)


async def test_cordoned_directory_gets_no_new_replicas() -> None:
    async with Controller() as controller:
        broker = await controller.start_broker(1, log_dir_paths=("/data/d0", "/data/d1"), cordoned_log_dirs="/data/d0")
        await create_topic(broker.bootstrap_servers, "orders", partitions=3)
        await controller.wait_until(lambda: len(broker.log_dirs["/data/d1"].replicas) == 3)
        assert broker.log_dirs["/data/d0"].is_cordoned


async def test_directory_is_cordoned_and_uncordoned_at_run_time() -> None:
    async with Controller() as controller:
        broker = await controller.start_broker(1, log_dir_paths=("/data/d0", "/data/d1"))
        await create_topic(broker.bootstrap_servers, "before", partitions=2)
        await controller.wait_until(lambda: len(broker.directories.placed) == 2)

        before = broker.log_dirs["/data/d1"].replicas
        await cordon(broker.bootstrap_servers, 1, "/data/d1")
        d1 = broker.directories.find("/data/d1").directory_id
        registration = controller.running.controller.image.cluster.brokers
        await controller.wait_until(lambda: registration[1].cordoned_log_dirs == (d1,))
        await create_topic(broker.bootstrap_servers, "meanwhile", partitions=4)
        await controller.wait_until(lambda: len(broker.directories.placed) == 6)
        assert broker.log_dirs["/data/d1"].replicas == before, "existing replicas stay"

        await cordon(broker.bootstrap_servers, 1, "")
        await controller.wait_until(lambda: registration[1].cordoned_log_dirs == ())
        await create_topic(broker.bootstrap_servers, "after", partitions=4)
        await controller.wait_until(lambda: len(broker.log_dirs["/data/d1"].replicas) == 5)


async def test_broker_with_only_cordoned_directories_gets_no_partitions() -> None:
    async with Controller() as controller:
        full = await controller.start_broker(1, log_dir_paths=("/data/d0", "/data/d1"), cordoned_log_dirs="*")
        other = await controller.start_broker(2)
        registration = controller.running.controller.image.cluster.brokers
        await controller.wait_until(lambda: len(registration[1].cordoned_log_dirs or ()) == 2)
        await create_topic(other.bootstrap_servers, "orders", partitions=4)
        await controller.wait_until(lambda: len(other.directories.placed) == 4)
        assert full.directories.placed == {}

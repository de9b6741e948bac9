"""A replica that is lost alone, on mockraft's controller and on Kafka's: KIP-18's leader rule, and its way back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.log_dirs.errors import StorageError
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.serving.directory_ids import LOST
from mockraft.wire import record_batch

from ...waiting import until

pytestmark = pytest.mark.real_kafka

PROPERTIES = {"replica.lag.time.max.ms": "1000", "replica.fetch.wait.max.ms": "100", "replica.fetch.backoff.ms": "50"}


@pytest.fixture(params=["mockraft", "kafka"])
async def brokers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[dict[int, SimulatedBroker]]:
    """Three simulated brokers with two directories each; the first goes by KIP-18."""
    async with AsyncExitStack() as stack:
        if request.param == "mockraft":
            controller: Any = await stack.enter_async_context(Controller())
        else:
            controller = KafkaController(tmp_path / "controller", random_uuid())
            stack.callback(controller.kill)
            await asyncio.to_thread(controller.format)
            controller.start()
            await asyncio.to_thread(controller.wait_until_running)
        running = {}
        for broker_id in (1, 2, 3):
            broker = SimulatedBroker.joining(
                controller.bootstrap,
                controller.cluster_id,
                broker_id,
                log_dir_paths=(f"/{broker_id}/d0", f"/{broker_id}/d1"),
                heartbeat_interval_ms=300,
                properties=PROPERTIES,
                io_errors="kip-18" if broker_id == 1 else "kafka",
                restart_partitions_elsewhere=broker_id == 1,
            )
            broker.start()
            stack.push_async_callback(broker.kill)
            running[broker_id] = broker
        for broker in running.values():
            await broker.wait_until(BrokerState.RUNNING)
        yield running


def is_placed(broker: SimulatedBroker, key: tuple[bytes, int]) -> bool:
    return broker.logs.log(key) is not None and not broker.queued_replica_to_dir_assignments


async def create(brokers: dict[int, SimulatedBroker], topic: str, replicas: list[int]) -> tuple[bytes, int]:
    """A partition on these brokers, each of which knows it and has it in the ISR; its key."""
    admin = AdminClient({"bootstrap.servers": brokers[2].bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, 1, replica_assignment=[replicas])])[topic]
    await asyncio.to_thread(created.result, 20)
    view = brokers[1].view
    topic_id = await until(lambda: next((key for key, name in view.topics.items() if name == topic), None))
    key = (topic_id, 0)
    for broker_id in replicas:
        await until(partial(is_placed, brokers[broker_id], key))
    return key


def lose(broker: SimulatedBroker, key: tuple[bytes, int], topic: str) -> None:
    """The next thing that is done with this replica's files goes wrong."""
    log = broker.logs.log(key)
    assert log is not None
    broker.fail_file(f"{broker.directories.find(broker.directories.placed[key]).path}/{topic}-0")
    with pytest.raises(StorageError):
        log.append_as_follower(record_batch.encode([b"x"], base_offset=0, leader_epoch=0, timestamp_ms=1))


@pytest.mark.parametrize(
    ("replicas", "leader"), [([1, 3, 2], 3), ([2, 1, 3], 2), ([3, 2, 1], 3)], ids=["led", "second", "last"]
)
async def test_the_first_assigned_replica_that_is_in_sync_leads_and_the_lost_one_comes_back_elsewhere(
    brokers: dict[int, SimulatedBroker], replicas: list[int], leader: int
) -> None:
    key = await create(brokers, "orders", replicas)
    view = brokers[1].view
    there = brokers[1].directories.placed[key]
    followers = brokers[1].replicas
    assert followers is not None
    followers.stick()
    lose(brokers[1], key, "orders")

    replica = await until(lambda: 1 not in view.replicas[key].isr and view.replicas[key])
    assert (replica.leader, replica.replicas) == (leader, tuple(replicas))
    assert set(replica.isr) == {2, 3}

    followers.stick(False)
    assert await until(lambda: 1 in view.replicas[key].isr)
    assert view.replicas[key].leader == leader
    assert brokers[1].directories.placed[key] != there
    assert await until(lambda: view.replicas[key].directory == brokers[1].directories.placed[key])


async def test_the_only_replica_is_lost_and_leads_no_more(brokers: dict[int, SimulatedBroker]) -> None:
    key = await create(brokers, "orders", [1])
    lose(brokers[1], key, "orders")
    view = brokers[1].view
    await until(lambda: view.replicas[key].leader == -1)
    assert view.replicas[key].directory == LOST
    assert brokers[1].directories.lost == {key}

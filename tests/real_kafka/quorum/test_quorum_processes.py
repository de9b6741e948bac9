"""Controllers as processes that are killed with SIGKILL: acknowledged records survive."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft.double.process import MockraftController
from mockraft.kafka.processes import KafkaBroker, random_uuid, wait_until
from mockraft.wire import client
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData

from ...clients import create_topic

pytestmark = pytest.mark.real_kafka

CreateTopic = Callable[..., None]
StartBrokers = Callable[..., dict[int, KafkaBroker]]


def leader_of(controller: MockraftController) -> int | None:
    """The leader as one controller knows it; None when it does not know, or is not running."""

    async def ask() -> int | None:
        try:
            connection = await client.connect(controller.host, controller.port)
            topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
            response = await connection.send(DescribeQuorumRequest(topics=[topic]))
            await connection.close()
        except client.DisconnectedError:
            return None
        (partition,) = response.topics[0].partitions
        return int(partition.leader_id) if partition.error_code == 0 else None

    return asyncio.run(ask())


def topics_of(servers: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": servers}).list_topics(timeout=10).topics)


@contextmanager
def creating_topics(servers: str, prefix: str) -> Iterator[list[str]]:
    """Create one topic after the other while the block runs; the list has those that were acknowledged."""
    created: list[str] = []
    over = threading.Event()

    def work() -> None:
        admin = AdminClient({"bootstrap.servers": servers})
        for number in range(10_000):
            if over.is_set():
                return
            name = f"{prefix}-{number}"
            try:
                admin.create_topics([NewTopic(name, 1, 2)], request_timeout=5)[name].result(6)
            except KafkaException:
                continue
            created.append(name)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: len(created) >= 20, 30, "20 topics")
        yield created
    finally:
        over.set()
        thread.join()


@pytest.fixture
def three_processes(tmp_path: Path) -> Iterator[list[MockraftController]]:
    """Three controllers of one quorum, each a process with a data dir of its own; brokers' bootstrap is all of them."""
    cluster_id = random_uuid()
    controllers = [MockraftController(tmp_path / str(node_id), cluster_id) for node_id in (3000, 3001, 3002)]
    voters = [f"{3000 + n}@{each.bootstrap}:{random_uuid()}" for n, each in enumerate(controllers)]
    for number, each in enumerate(controllers):
        each.options += ["--node-id", str(3000 + number), "--initial-controllers", ",".join(voters)]
        each.start()
    for each in controllers:
        each.wait_until_running()
    yield controllers
    for each in controllers:
        each.kill()


def kill_the_active_one(controllers: list[MockraftController], clients: str, prefix: str) -> None:
    """Kill it while topics are created, see that all of them are there, and start it again."""
    with creating_topics(clients, prefix) as created:
        (leader,) = {leader for each in controllers if (leader := leader_of(each)) is not None}
        killed = controllers[leader - 3000]
        killed.kill()
        before = len(created)
        wait_until(lambda: len(created) > before + 20, 30, "topics after the failover")
    wait_until(lambda: set(created) <= topics_of(clients), 10, "every acknowledged topic")
    killed.start()
    killed.wait_until_running()


def test_acknowledged_records_survive_a_kill_of_the_active_process(
    three_processes: list[MockraftController], start_brokers: StartBrokers
) -> None:
    servers = ",".join(each.bootstrap for each in three_processes)
    brokers = start_brokers(servers, three_processes[0].cluster_id, 2)
    clients = ",".join(broker.bootstrap for broker in brokers.values())
    # The second time, who was killed the first time is one of the two that must have everything.
    for prefix in ("first", "second"):
        kill_the_active_one(three_processes, clients, prefix)
    create_topic(clients, "last", replicas=2)
    assert all(broker.whole_log.count("Successfully registered broker") == 1 for broker in brokers.values())


def test_a_whole_quorum_is_killed_and_comes_back_with_everything_acknowledged(
    tmp_path: Path, start_brokers: StartBrokers
) -> None:
    quorum = MockraftController(tmp_path, random_uuid(), controllers=3)
    try:
        quorum.start()
        quorum.wait_until_running()
        brokers = start_brokers(quorum.bootstrap, quorum.cluster_id, 2)
        clients = ",".join(broker.bootstrap for broker in brokers.values())
        with creating_topics(clients, "sure") as created:
            quorum.kill()
            quorum.start()
            quorum.wait_until_running()
            before = len(created)
            wait_until(lambda: len(created) > before + 5, 30, "topics after the restart")
        wait_until(lambda: set(created) <= topics_of(clients), 10, "every acknowledged topic")
        create_topic(clients, "last", replicas=2)
        assert all(broker.running for broker in brokers.values())
    finally:
        quorum.kill()

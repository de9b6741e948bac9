"""Quorums with real brokers: every kind of failover, Kafka's controller as leader, processes that are killed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, Quorum
from mockraft.kafka.child_process import free_port
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import (
    KafkaBroker,
    KafkaController,
    KafkaProcessError,
    KafkaServer,
    KafkaTool,
    random_uuid,
    wait_until,
)
from mockraft.server.raft.states import Role
from mockraft.testing.controller import SyncController
from mockraft.testing.quorum import SyncQuorum
from mockraft.wire import client

from ...clients import consume, create_topic, creating_topics, keep_producing, topics_of
from ...topics import described_quorum
from ..running import registrations, running

pytestmark = pytest.mark.real_kafka

StartBrokers = Callable[..., dict[int, KafkaBroker]]

TOPIC = "steady"


class World:
    """The quorum, its brokers, and what clients see of both."""

    def __init__(self, quorum: SyncQuorum, brokers: dict[int, KafkaBroker]) -> None:
        self.quorum = quorum
        self.brokers = brokers
        self.servers = ",".join(broker.bootstrap for broker in brokers.values())

    def topics_of(self, node_id: int) -> set[str]:
        """The topics in one controller's image."""
        return self.quorum.call(lambda: set(self.quorum.node(node_id).controller.image.topics.by_name))

    def registrations(self) -> list[int]:
        return [registrations(broker) for broker in self.brokers.values()]

    def described(self) -> dict[str, str]:
        """Output of kafka-metadata-quorum through the brokers."""
        result = KafkaTool("kafka-metadata-quorum").run("--bootstrap-server", self.servers, "describe", "--status")
        return dict(re.findall(r"^(\w+):\s+(.*?)\s*$", result, re.M))


@pytest.fixture(scope="module")
def world(start_brokers: StartBrokers) -> Iterator[World]:
    with Quorum.sync(3) as quorum:
        brokers = start_brokers(quorum.bootstrap, quorum.cluster_id, 3)
        world = World(quorum, brokers)
        create_topic(world.servers, TOPIC, partitions=3, replicas=3)
        yield world


@pytest.fixture
def serves(world: World) -> Callable[..., None]:
    """`serves(fault, name)`: through the fault and after it nothing is lost, and a topic can be created."""

    def check(fault: Callable[[], Any], name: str) -> None:
        registrations = world.registrations()
        with keep_producing(world.servers, TOPIC) as acknowledged:
            fault()
            create_topic(world.servers, name, partitions=2, replicas=3)
            so_far = len(acknowledged)
            wait_until(lambda: len(acknowledged) > so_far + 50, 60, "messages after the fault")
        assert set(acknowledged) <= set(consume(world.servers, TOPIC))
        assert world.registrations() == registrations, "a failover is nothing to register for"

    return check


def test_brokers_follow_an_election(world: World, serves: Callable[..., None]) -> None:
    serves(lambda: world.quorum.elect(3001), "after-election")
    assert world.quorum.active == 3001
    status = world.described()
    assert (status["LeaderId"], status["ClusterId"]) == ("3001", world.quorum.cluster_id)
    assert [int(found) for found in re.findall(r'"id": (\d+)', status["CurrentVoters"])] == [3000, 3001, 3002]
    assert {int(found) for found in re.findall(r'"id": (\d+)', status["CurrentObservers"])} == {1, 2, 3}


def test_brokers_follow_a_resignation(world: World, serves: Callable[..., None]) -> None:
    before = world.quorum.active

    def another_leads() -> bool:
        # On a busy machine who resigned may be the first to stand again.
        return world.quorum.resign() != before

    serves(lambda: wait_until(another_leads, 60, "another leader"), "after-resignation")
    assert world.quorum.active != before


def test_brokers_follow_when_the_active_one_is_killed_and_when_it_is_back(
    world: World, serves: Callable[..., None]
) -> None:
    killed = world.quorum.active
    assert killed is not None
    serves(lambda: world.quorum.kill(killed), "after-kill")
    world.quorum.restart(killed)
    wait_until(lambda: world.topics_of(killed) >= {"after-kill"}, 60, "the one that was killed to catch up")
    serves(lambda: world.quorum.elect(killed), "after-restart")
    assert topics_of(world.servers) >= {"after-kill", "after-restart"}


def test_brokers_leave_an_isolated_active_controller_and_its_uncommitted_records_vanish(
    world: World, serves: Callable[..., None]
) -> None:
    cut_off = world.quorum.active
    assert cut_off is not None
    epochs = world.quorum.call(lambda: world.quorum.node(cut_off).controller.epoch)

    def cut() -> None:
        world.quorum.partition(cut_off)
        wait_until(lambda: world.quorum.active not in (None, cut_off), 60, "another leader")

    serves(cut, "after-cut")
    world.quorum.heal()
    wait_until(lambda: world.topics_of(cut_off) >= {"after-cut"}, 60, "the one that was cut off to follow")
    leader = world.quorum.wait_for_leader()

    def logs() -> tuple[bytes, bytes]:
        one, other = (world.quorum.node(each).controller.log.read(0, 1 << 30) for each in (cut_off, leader))
        return one, other

    def same() -> bool:
        one, other = world.quorum.call(logs)
        return one == other

    wait_until(same, 60, "one history")
    truncated = [broker for broker in world.brokers.values() if "Truncated to offset" in broker.whole_log]
    assert truncated, "some broker had a record of the cut off one that no majority had"
    assert world.quorum.call(lambda: world.quorum.node(leader).controller.epoch) > epochs
    serves(lambda: world.quorum.elect(cut_off), "after-heal")


KAFKA_ID, OUR_ID = 4000, 3000
# Something new every 20 ms, and soon a snapshot.
BUSY = {"metadata.max.idle.interval.ms": "20", "metadata.log.max.record.bytes.between.snapshots": "2000"}


def raft_of(ours: SyncController) -> Any:
    return ours.running.controller.raft


def tool(servers: str, *arguments: str) -> str:
    return KafkaTool("kafka-metadata-quorum").run("--bootstrap-controller", servers, *arguments)


def voters(servers: str) -> dict[int, str]:
    """Ids and addresses of the voters, as Kafka's leader tells its tool."""
    result = re.search(r"^CurrentVoters:\s+(.*?)\s*$", tool(servers, "describe", "--status"), re.M)
    assert result is not None
    found = re.findall(r'"id": (\d+).*?"endpoints": \["CONTROLLER://(.*?)"\]', result[1])
    return {int(node_id): address for node_id, address in found}


def is_changed(servers: str, *arguments: str) -> bool:
    """Change the voters, unless the change before is not committed yet: Kafka refuses a second one until then."""
    try:
        tool(servers, *arguments)
    except KafkaProcessError as error:
        if "waiting for voters to commit the latest voter change" in str(error):
            return False
        raise
    return True


def follows(ours: SyncController) -> Callable[[], bool]:
    raft = raft_of(ours)
    return lambda: raft.leader_id == KAFKA_ID and raft.log.high_watermark > 0


def test_mockraft_loads_kafkas_snapshot_joins_moves_and_leaves_the_quorum(tmp_path: Path) -> None:
    kafka = KafkaController(tmp_path / "kafka", random_uuid(), node_id=KAFKA_ID, properties=BUSY)
    options: dict[str, Any] = {
        "node_id": OUR_ID,
        "cluster_id": kafka.cluster_id,
        "controller_quorum_bootstrap_servers": kafka.bootstrap,
        "data_dir": tmp_path / "ours",
    }
    port = free_port()
    with running(kafka):
        kept = Path(kafka.properties["log.dirs"]) / "__cluster_metadata-0"
        wait_until(lambda: [path for path in kept.glob("*.checkpoint") if path.name[19] != "0"], 60, "a snapshot")
        with Controller.sync(port=port, **options) as ours:
            wait_until(follows(ours), 60, "our controller to follow")
            log = raft_of(ours).log
            assert log.start_offset > 0, "it began with a snapshot"
            assert [node.key.id for node in log.voters.nodes.values()] == [KAFKA_ID]
            properties = tmp_path / "ours.properties"
            lines = {**kafka.properties, "node.id": OUR_ID, "log.dirs": tmp_path / "ours"}
            lines["listeners"] = f"CONTROLLER://127.0.0.1:{port}"
            properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            wait_until(lambda: re.search(rf"^{OUR_ID}\s", tool(kafka.bootstrap, "describe", "--re"), re.M), 60, "seen")
            result = tool(kafka.bootstrap, "--command-config", str(properties), "add-controller")
            assert f"Added controller {OUR_ID}" in result
            assert voters(kafka.bootstrap) == {OUR_ID: f"127.0.0.1:{port}", KAFKA_ID: kafka.bootstrap}
            wait_until(lambda: set(log.voters.nodes) == {OUR_ID, KAFKA_ID}, 60, "the voters in our log")
        port = free_port()
        with Controller.sync(port=port, **options) as ours:
            ours.call(lambda: setattr(raft_of(ours), "automatic", False))
            wait_until(follows(ours), 60, "our controller to follow again")
            moved = {OUR_ID: f"127.0.0.1:{port}", KAFKA_ID: kafka.bootstrap}
            wait_until(lambda: voters(kafka.bootstrap) == moved, 60, "our new address among the voters")
            directory_id = re.search(r"directory.id=(\S+)", (tmp_path / "ours/meta.properties").read_text())
            assert directory_id is not None
            removed = ("--controller-id", str(OUR_ID), "--controller-directory-id", directory_id[1])
            wait_until(lambda: is_changed(kafka.bootstrap, "remove-controller", *removed), 60, "no vote of ours")
            assert voters(kafka.bootstrap) == {KAFKA_ID: kafka.bootstrap}
            wait_until(lambda: not raft_of(ours).is_voter, 60, "our controller to know that it has no vote")
        assert kafka.running


@pytest.mark.parametrize("leader_id", [OUR_ID, KAFKA_ID])
def test_voters_of_the_configuration_become_records(tmp_path: Path, leader_id: int) -> None:
    port = free_port()
    kafka = KafkaController(tmp_path / "kafka", random_uuid(), node_id=KAFKA_ID)
    del kafka.properties["controller.quorum.bootstrap.servers"]
    # A busy machine must not make Kafka's stand for election; it tells its directory once this time is over.
    kafka.properties["controller.quorum.fetch.timeout.ms"] = "5000"
    static = f"{OUR_ID}@127.0.0.1:{port},{KAFKA_ID}@{kafka.bootstrap}"
    kafka.properties["controller.quorum.voters"] = static
    KafkaServer.format(kafka, "--feature", "kraft.version=0")
    kafka.start()
    try:
        with Controller.sync(
            port=port, node_id=OUR_ID, cluster_id=kafka.cluster_id, controller_quorum_voters=static
        ) as ours:
            raft, running = raft_of(ours), ours.running

            def elect() -> bool:
                now_ms = running.clock.now_ms()
                if leader_id == OUR_ID and raft.role not in (Role.LEADER, Role.CANDIDATE):
                    raft.elect(now_ms)
                    running.listener.perform(running.node.tick(now_ms), now_ms)
                return bool(raft.leader_id == leader_id and raft.log.high_watermark > 0)

            ours.call(lambda: setattr(raft, "automatic", False))
            wait_until(lambda: ours.call(elect), 60, f"{leader_id} to lead")
            features = KafkaTool("kafka-features")
            arguments = ("--bootstrap-controller", f"127.0.0.1:{port if leader_id == OUR_ID else kafka.port}")

            def upgraded() -> bool:
                try:
                    return "was upgraded to 1" in features.run(*arguments, "upgrade", "--feature", "kraft.version=1")
                except KafkaProcessError:
                    return False

            wait_until(upgraded, 60, "every voter to have told its directory")
            wait_until(lambda: raft.log.kraft_version == 1, 60, "kraft.version 1 in our log")
            directories = {node.key.id: node.key.directory_id for node in raft.voters.nodes.values()}
            assert directories[OUR_ID] == raft.log.directory_id
            assert directories[KAFKA_ID] not in (bytes(16), raft.log.directory_id)
            wait_until(lambda: raft.log.high_watermark == raft.log.end_offset, 60, "all to be committed")
        assert kafka.running
    finally:
        kafka.kill()


def leader_of(controller: MockraftController) -> int | None:
    """The leader as one controller knows it; None when it does not know, or is not running."""

    try:
        partition = asyncio.run(described_quorum(controller.bootstrap))
    except client.DisconnectedError:
        return None
    return int(partition.leader_id) if partition.error_code == 0 else None


@pytest.fixture
def three_processes(tmp_path: Path) -> Iterator[list[MockraftController]]:
    """Three controllers of one quorum, each a process with a data dir of its own; brokers' bootstrap is all of them."""
    cluster_id = random_uuid()
    controllers = [MockraftController(tmp_path / str(node_id), cluster_id) for node_id in (3000, 3001, 3002)]
    voters = [f"{3000 + n}@{each.bootstrap}:{random_uuid()}" for n, each in enumerate(controllers)]
    with ExitStack() as undo:
        for number, each in enumerate(controllers):
            undo.callback(each.kill)
            each.options += ["--node-id", str(3000 + number), "--initial-controllers", ",".join(voters)]
            each.start()
        for each in controllers:
            each.wait_until_running()
        yield controllers


def kill_the_active_one(controllers: list[MockraftController], clients: str, prefix: str) -> None:
    """Kill it while topics are created, see that all of them are there, and start it again."""
    with creating_topics(clients, prefix) as created:
        (leader,) = {leader for each in controllers if (leader := leader_of(each)) is not None}
        killed = controllers[leader - 3000]
        killed.kill()
        before = len(created)
        wait_until(lambda: len(created) > before + 20, 60, "topics after the failover")
    wait_until(lambda: set(created) <= topics_of(clients), 60, "every acknowledged topic")
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
    assert all(registrations(broker) == 1 for broker in brokers.values())


def test_a_whole_quorum_is_killed_and_comes_back_with_everything_acknowledged(
    tmp_path: Path, start_brokers: StartBrokers
) -> None:
    with running(MockraftController(tmp_path, random_uuid(), controllers=3)) as quorum:
        brokers = start_brokers(quorum.bootstrap, quorum.cluster_id, 2)
        clients = ",".join(broker.bootstrap for broker in brokers.values())
        with creating_topics(clients, "sure") as created:
            quorum.kill()
            quorum.start()
            quorum.wait_until_running()
            before = len(created)
            wait_until(lambda: len(created) > before + 5, 60, "topics after the restart")
        wait_until(lambda: set(created) <= topics_of(clients), 60, "every acknowledged topic")
        create_topic(clients, "last", replicas=2)
        assert all(broker.running for broker in brokers.values())

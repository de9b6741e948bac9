"""Kafka's own controller in one quorum with ours: the same log, each leads and each follows, voters come and go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from mockraft import Controller, Quorum
from mockraft.child_process import free_port
from mockraft.controller_door import SyncController
from mockraft.kafka_processes import KafkaBroker, KafkaController, KafkaServer, KafkaTool, random_uuid, wait_until
from mockraft.quorum_door import SyncQuorum

pytestmark = pytest.mark.real_kafka

CreateTopic = Callable[..., None]
StartBrokers = Callable[..., dict[int, KafkaBroker]]

KAFKA_ID = 4000


class Mixed:
    """Two mockraft controllers and Kafka's, voters of one quorum. Only Kafka's starts an election by itself."""

    def __init__(self, ours: dict[int, SyncController], kafka: KafkaController) -> None:
        self.ours = ours
        self.kafka = kafka
        self.bootstrap = ",".join([each.bootstrap for each in ours.values()] + [kafka.bootstrap])

    def leader(self, node_id: int = 3000) -> int | None:
        """Who leads, as one of ours knows it."""
        each = self.ours[node_id]
        return each.call(lambda: each.running.controller.raft.leader_id)

    def elect(self, node_id: int) -> None:
        """Let one of ours lead; tried again where its log was behind."""
        each = self.ours[node_id]

        def leads() -> bool:
            def stand() -> bool:
                running = each.running
                if running.controller.epoch < 0:
                    now_ms = running.clock.now_ms()
                    running.controller.raft.elect(now_ms)
                    running.listener.perform(running.node.tick(now_ms), now_ms)
                return running.controller.epoch >= 0

            return each.call(stand)

        wait_until(leads, 20, f"{node_id} to lead")

    def resign(self, node_id: int) -> None:
        """The leader among ours gives up; Kafka's stands for election then."""
        running = self.ours[node_id].running

        def give_up() -> None:
            now_ms = running.clock.now_ms()
            running.controller.raft.resign(now_ms)
            running.listener.perform(running.node.tick(now_ms), now_ms)

        self.ours[node_id].call(give_up)
        wait_until(lambda: self.leader() == KAFKA_ID, 20, "Kafka's to lead")

    def log(self, node_id: int) -> bytes:
        """The committed log of one of ours, as bytes."""
        running = self.ours[node_id].running
        return self.ours[node_id].call(lambda: running.controller.log.read(0, 1 << 30))


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Mixed]:
    cluster_id = random_uuid()
    kafka = KafkaController(tmp_path / "kafka", cluster_id, node_id=KAFKA_ID)
    ports = {3000: free_port(), 3001: free_port()}
    entries = [f"{node_id}@127.0.0.1:{port}:{random_uuid()}" for node_id, port in ports.items()]
    voters = ",".join([*entries, f"{KAFKA_ID}@{kafka.bootstrap}:{random_uuid()}"])
    servers = ",".join([*(f"127.0.0.1:{port}" for port in ports.values()), kafka.bootstrap])
    kafka.properties["controller.quorum.bootstrap.servers"] = servers
    KafkaServer.format(kafka, "--initial-controllers", voters)
    with ExitStack() as undo:
        undo.callback(kafka.kill)
        ours = {}
        for node_id, port in ports.items():
            ours[node_id] = undo.enter_context(
                Controller.sync(
                    node_id=node_id,
                    port=port,
                    cluster_id=cluster_id,
                    initial_controllers=voters,
                    data_dir=tmp_path / str(node_id),
                )
            )
            running = ours[node_id].running
            ours[node_id].call(lambda running=running: setattr(running.controller.raft, "automatic", False))  # type: ignore[misc]
        kafka.start()
        yield Mixed(ours, kafka)


def test_kafkas_controller_and_ours_follow_each_other(
    mixed: Mixed, start_brokers: StartBrokers, create_topic: CreateTopic
) -> None:
    wait_until(lambda: mixed.leader() is not None, 30, "the first leader")
    (broker,) = start_brokers(mixed.bootstrap, mixed.kafka.cluster_id, 1).values()
    for number, node_id in enumerate((3000, 3001)):
        mixed.elect(node_id)
        create_topic(broker.bootstrap, f"ours-{number}")
        mixed.resign(node_id)
        create_topic(broker.bootstrap, f"kafkas-{number}")
    every = {"ours-0", "kafkas-0", "ours-1", "kafkas-1"}
    for each in mixed.ours.values():
        image = each.running.controller
        wait_until(lambda c=image: set(c.image.topics.by_name) >= every, 10, "every topic")  # type: ignore[misc]
        controllers = each.call(lambda c=image: set(c.image.cluster.controllers))  # type: ignore[misc]
        assert controllers == {3000, 3001, KAFKA_ID}
    assert set(AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics) >= every
    assert broker.whole_log.count("Successfully registered broker") == 1
    (segment,) = (Path(mixed.kafka.properties["log.dirs"]) / "__cluster_metadata-0").glob("*.log")
    theirs = segment.read_bytes().rstrip(b"\0")
    wait_until(lambda: len(mixed.log(3000)) >= len(theirs), 10, "what Kafka's controller has")
    assert mixed.log(3000)[: len(theirs)] == theirs, "one history, byte for byte"
    assert mixed.kafka.running


def describe(servers: str) -> tuple[int, set[int], set[int]]:
    """Leader, voters and observers, as kafka-metadata-quorum says them."""
    told = KafkaTool("kafka-metadata-quorum").run("--bootstrap-controller", servers, "describe", "--status")
    status = dict(re.findall(r"^(\w+):\s+(.*?)\s*$", told, re.M))
    ids = [set(map(int, re.findall(r'"id": (\d+)', status[part]))) for part in ("CurrentVoters", "CurrentObservers")]
    return int(status["LeaderId"]), ids[0], ids[1]


@pytest.fixture
def quorum() -> Iterator[SyncQuorum]:
    with Quorum.sync(2) as quorum:
        yield quorum


def test_kafkas_tool_adds_kafkas_controller_and_removes_ours(quorum: SyncQuorum, tmp_path: Path) -> None:
    kafka = KafkaController(tmp_path / "kafka", quorum.cluster_id, node_id=KAFKA_ID)
    kafka.properties["controller.quorum.bootstrap.servers"] = quorum.bootstrap
    KafkaServer.format(kafka, "--no-initial-controllers")
    kafka.start()
    try:
        wait_until(lambda: describe(quorum.bootstrap)[2] == {KAFKA_ID}, 30, "Kafka's controller as an observer")
        properties = str(kafka.directory / "server.properties")
        tool = KafkaTool("kafka-metadata-quorum")
        told = tool.run("--command-config", properties, "--bootstrap-controller", quorum.bootstrap, "add-controller")
        assert f"Added controller {KAFKA_ID}" in told
        assert describe(quorum.bootstrap)[1:] == ({3000, 3001, KAFKA_ID}, set())

        gone = quorum.active
        assert gone is not None
        described = KafkaTool("kafka-metadata-quorum").run(
            "--bootstrap-controller", quorum.bootstrap, "describe", "--replication"
        )
        found = re.search(rf"^{gone}\s+(\S+)", described, re.M)
        assert found is not None
        options = ("--controller-id", str(gone), "--controller-directory-id", found[1])
        told = tool.run("--bootstrap-controller", quorum.bootstrap, "remove-controller", *options)
        assert re.search(rf"Removed +KRaft controller {gone} ", told)
        leader, voters, _ = wait_until(lambda: _elsewhere(quorum.bootstrap, gone), 30, "another leader")
        assert voters == {3000, 3001, KAFKA_ID} - {gone}
        assert leader in voters
    finally:
        kafka.kill()


def _elsewhere(servers: str, gone: int) -> tuple[int, set[int], set[int]] | None:
    found = describe(servers)
    return found if found[0] != gone else None

"""Kafka's controller leads and ours follows: by a snapshot, as an observer, as a voter, as one that moved."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.double.controller import SyncController
from mockraft.kafka.child_process import free_port
from mockraft.kafka.processes import KafkaController, KafkaProcessError, KafkaServer, KafkaTool, random_uuid, wait_until
from mockraft.server.raft.states import Role

pytestmark = pytest.mark.real_kafka

KAFKA_ID, OUR_ID = 4000, 3000
# Something new every 20 ms, and soon a snapshot.
BUSY = {"metadata.max.idle.interval.ms": "20", "metadata.log.max.record.bytes.between.snapshots": "2000"}


def raft_of(ours: SyncController) -> Any:
    return ours.running.controller.raft


def tool(servers: str, *arguments: str) -> str:
    return KafkaTool("kafka-metadata-quorum").run("--bootstrap-controller", servers, *arguments)


def voters(servers: str) -> dict[int, str]:
    """Ids and addresses of the voters, as Kafka's leader tells its tool."""
    told = re.search(r"^CurrentVoters:\s+(.*?)\s*$", tool(servers, "describe", "--status"), re.M)
    assert told is not None
    found = re.findall(r'"id": (\d+).*?"endpoints": \["CONTROLLER://(.*?)"\]', told[1])
    return {int(node_id): address for node_id, address in found}


def follows(ours: SyncController) -> Callable[[], bool]:
    raft = raft_of(ours)
    return lambda: raft.leader_id == KAFKA_ID and raft.log.high_watermark > 0


def test_mockraft_loads_kafkas_snapshot_joins_moves_and_leaves_the_quorum(tmp_path: Path) -> None:
    kafka = KafkaController(tmp_path / "kafka", random_uuid(), node_id=KAFKA_ID, properties=BUSY)
    kafka.format()
    kafka.start()
    options: dict[str, Any] = {
        "node_id": OUR_ID,
        "cluster_id": kafka.cluster_id,
        "controller_quorum_bootstrap_servers": kafka.bootstrap,
        "data_dir": tmp_path / "ours",
    }
    port = free_port()
    try:
        kept = Path(kafka.properties["log.dirs"]) / "__cluster_metadata-0"
        wait_until(lambda: [path for path in kept.glob("*.checkpoint") if path.name[19] != "0"], 30, "a snapshot")
        with Controller.sync(port=port, **options) as ours:
            wait_until(follows(ours), 20, "our controller to follow")
            log = raft_of(ours).log
            assert log.start_offset > 0, "it began with a snapshot"
            assert [node.key.id for node in log.voters.nodes.values()] == [KAFKA_ID]
            properties = tmp_path / "ours.properties"
            lines = {**kafka.properties, "node.id": OUR_ID, "log.dirs": tmp_path / "ours"}
            lines["listeners"] = f"CONTROLLER://127.0.0.1:{port}"
            properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            wait_until(lambda: re.search(rf"^{OUR_ID}\s", tool(kafka.bootstrap, "describe", "--re"), re.M), 20, "seen")
            told = tool(kafka.bootstrap, "--command-config", str(properties), "add-controller")
            assert f"Added controller {OUR_ID}" in told
            assert voters(kafka.bootstrap) == {OUR_ID: f"127.0.0.1:{port}", KAFKA_ID: kafka.bootstrap}
            wait_until(lambda: set(log.voters.nodes) == {OUR_ID, KAFKA_ID}, 10, "the voters in our log")
        port = free_port()
        with Controller.sync(port=port, **options) as ours:
            ours.call(lambda: setattr(raft_of(ours), "automatic", False))
            wait_until(follows(ours), 30, "our controller to follow again")
            moved = {OUR_ID: f"127.0.0.1:{port}", KAFKA_ID: kafka.bootstrap}
            wait_until(lambda: voters(kafka.bootstrap) == moved, 20, "our new address among the voters")
            directory_id = re.search(r"directory.id=(\S+)", (tmp_path / "ours/meta.properties").read_text())
            assert directory_id is not None
            removed = ("--controller-id", str(OUR_ID), "--controller-directory-id", directory_id[1])
            tool(kafka.bootstrap, "remove-controller", *removed)
            assert voters(kafka.bootstrap) == {KAFKA_ID: kafka.bootstrap}
            wait_until(lambda: not raft_of(ours).is_voter, 10, "our controller to know that it has no vote")
        assert kafka.running
    finally:
        kafka.kill()


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
            wait_until(lambda: ours.call(elect), 30, f"{leader_id} to lead")
            features = KafkaTool("kafka-features")
            arguments = ("--bootstrap-controller", f"127.0.0.1:{port if leader_id == OUR_ID else kafka.port}")

            def upgraded() -> bool:
                try:
                    return "was upgraded to 1" in features.run(*arguments, "upgrade", "--feature", "kraft.version=1")
                except KafkaProcessError:
                    return False

            wait_until(upgraded, 30, "every voter to have told its directory")
            wait_until(lambda: raft.log.kraft_version == 1, 10, "kraft.version 1 in our log")
            directories = {node.key.id: node.key.directory_id for node in raft.voters.nodes.values()}
            assert directories[OUR_ID] == raft.log.directory_id
            assert directories[KAFKA_ID] not in (bytes(16), raft.log.directory_id)
            wait_until(lambda: raft.log.high_watermark == raft.log.end_offset, 10, "all to be committed")
        assert kafka.running
    finally:
        kafka.kill()

"""Kafka's own controller in one quorum with ours: the same log, each leads and each follows, voters come and go."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, Quorum
from mockraft.conformance.requests import request
from mockraft.kafka.child_process import free_port
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaServer, KafkaTool, random_uuid, wait_until
from mockraft.server.raft.raft import Raft
from mockraft.server.raft.states import Role
from mockraft.server.running import RunningController
from mockraft.testing.controller import SyncController
from mockraft.testing.quorum import SyncQuorum
from mockraft.wire import api_keys, client, messages
from mockraft.wire.connection import write_request
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.uuids import text_of

from ...clients import create_topic, topics_of
from ..running import registrations, running

pytestmark = pytest.mark.real_kafka

StartBrokers = Callable[..., dict[int, KafkaBroker]]

KAFKA_ID = 4000
FORWARDABLE = {api_keys.CREATE_TOPICS, api_keys.ELECT_LEADERS, api_keys.UPDATE_FEATURES, api_keys.UNREGISTER_BROKER}
FORWARDABLE |= {api_keys.ALLOCATE_PRODUCER_IDS, api_keys.DESCRIBE_QUORUM, api_keys.ALTER_CLIENT_QUOTAS}
FORWARDABLE |= {api_keys.REMOVE_RAFT_VOTER, api_keys.LIST_PARTITION_REASSIGNMENTS}


class Mixed:
    """Two mockraft controllers and Kafka's, voters of one quorum. Only Kafka's starts an election by itself."""

    def __init__(self, ours: dict[int, SyncController], kafka: KafkaController) -> None:
        self.ours = ours
        self.kafka = kafka
        self.processes = [kafka]
        self.bootstrap = ",".join([each.bootstrap for each in ours.values()] + [kafka.bootstrap])

    def leader(self, node_id: int = 3000) -> int | None:
        """The leader as one of our nodes knows it."""
        each = self.ours[node_id]
        return each.call(lambda: each.running.controller.raft.leader_id)

    def elect(self, node_id: int) -> None:
        """Let one of ours lead; it stands as a follower whose log is not behind, again where it lost nevertheless."""
        running = self.ours[node_id].running

        def stands_or_leads() -> bool:
            if running.controller.epoch < 0 and running.controller.raft.role is Role.FOLLOWER:
                running.script(Raft.elect)
            return running.controller.epoch >= 0

        def leads() -> bool:
            # Whoever stands fetches no more: behind the others it would never win, however often it stood.
            ends = {each: controller.call(log_end, controller.running) for each, controller in self.ours.items()}
            return ends[node_id] == max(ends.values()) and self.ours[node_id].call(stands_or_leads)

        wait_until(leads, 60, f"{node_id} to lead")

    def resign(self, node_id: int) -> None:
        """The leader among ours gives up once Kafka's has its log, and so can win; it stands for election then."""
        running = self.ours[node_id].running

        def resigns() -> bool:
            raft = running.controller.raft
            if raft.leading is None or raft.leading.voters[KAFKA_ID][1].log_end_offset < raft.log.end_offset:
                return False
            running.script(Raft.resign)
            return True

        wait_until(lambda: self.ours[node_id].call(resigns), 60, "Kafka's to have the leader's log")
        wait_until(lambda: self.leader() == KAFKA_ID, 60, "Kafka's to lead")

    def log(self, node_id: int) -> bytes:
        """The committed log of one of ours, as bytes."""
        running = self.ours[node_id].running
        return self.ours[node_id].call(lambda: running.controller.log.read(0, 1 << 30))


def log_end(running: RunningController) -> tuple[int, int]:
    """The fields that decide which log is behind."""
    log = running.controller.log
    return log.last_epoch, log.end_offset


@pytest.fixture
def mixed(tmp_path: Path, watch_processes: Callable[[Any], None]) -> Iterator[Mixed]:
    cluster_id = random_uuid()
    kafka = KafkaController(tmp_path / "kafka", cluster_id, node_id=KAFKA_ID)
    ports = {3000: free_port(), 3001: free_port()}
    entries = [f"{node_id}@127.0.0.1:{port}:{random_uuid()}" for node_id, port in ports.items()]
    voters = ",".join([*entries, f"{KAFKA_ID}@{kafka.bootstrap}:{random_uuid()}"])
    servers = ",".join([*(f"127.0.0.1:{port}" for port in ports.values()), kafka.bootstrap])
    kafka.properties["controller.quorum.bootstrap.servers"] = servers
    # A leader that answers late on a busy machine is not one that is gone: nobody stands in the middle of a test.
    kafka.properties["controller.quorum.fetch.timeout.ms"] = "60000"
    KafkaServer.format(kafka, "--initial-controllers", voters)
    with ExitStack() as undo:
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
            ours[node_id].call(partial(setattr, ours[node_id].running.controller.raft, "automatic", False))
        mixed = Mixed(ours, kafka)
        watch_processes(mixed)
        undo.enter_context(running(kafka, formatted=True))
        wait_until(lambda: mixed.leader() is not None, 60, "the first leader")
        yield mixed


def _has_topics(controller: SyncController, names: set[str]) -> bool:
    return controller.call(lambda: set(controller.running.controller.image.topics.by_name)) >= names


def test_kafkas_controller_and_ours_follow_each_other(mixed: Mixed, start_brokers: StartBrokers) -> None:
    (broker,) = start_brokers(mixed.bootstrap, mixed.kafka.cluster_id, 1).values()
    for number, node_id in enumerate((3000, 3001)):
        mixed.elect(node_id)
        create_topic(broker.bootstrap, f"ours-{number}")
        mixed.resign(node_id)
        create_topic(broker.bootstrap, f"kafkas-{number}")
    every = {"ours-0", "kafkas-0", "ours-1", "kafkas-1"}
    for each in mixed.ours.values():
        wait_until(partial(_has_topics, each, every), 60, "every topic")
        assert set(each.running.controller.image.cluster.controllers) == {3000, 3001, KAFKA_ID}
    assert topics_of(broker.bootstrap) >= every
    assert registrations(broker) == 1
    (segment,) = (Path(mixed.kafka.properties["log.dirs"]) / "__cluster_metadata-0").glob("*.log")
    theirs = segment.read_bytes().rstrip(b"\0")
    wait_until(lambda: len(mixed.log(3000)) >= len(theirs), 60, "what Kafka's controller has")
    assert mixed.log(3000)[: len(theirs)] == theirs, "one history, byte for byte"
    assert mixed.kafka.running


def test_our_observer_joins_the_voters_of_kafkas_leader_and_again_with_another_directory(mixed: Mixed) -> None:
    mixed.elect(3000)
    mixed.resign(3000)
    seen = set()
    for _ in range(2):
        with Controller.sync(
            node_id=5000,
            cluster_id=mixed.kafka.cluster_id,
            controller_quorum_bootstrap_servers=mixed.bootstrap,
            controller_quorum_auto_join_enable=True,
        ) as newcomer:
            newcomer.wait_until(lambda: newcomer.running.controller.raft.is_voter, 60)
            assert describe(mixed.kafka.bootstrap)[:2] == (KAFKA_ID, {3000, 3001, KAFKA_ID, 5000})
            seen.add(newcomer.call(lambda: newcomer.running.controller.raft.key))
    assert len(seen) == 2, "the second one first had the voter of its id removed"


def describe(servers: str) -> tuple[int, set[int], set[int]]:
    """Leader, voters and observers, as kafka-metadata-quorum says them."""
    result = KafkaTool("kafka-metadata-quorum").run("--bootstrap-controller", servers, "describe", "--status")
    status = dict(re.findall(r"^(\w+):\s+(.*?)\s*$", result, re.M))
    ids = [set(map(int, re.findall(r'"id": (\d+)', status[part]))) for part in ("CurrentVoters", "CurrentObservers")]
    return int(status["LeaderId"]), ids[0], ids[1]


def is_caught_up(servers: str, node_id: int) -> bool:
    """Return True if a node has had all of the leader's log at some time: only then it can become a voter."""
    result = KafkaTool("kafka-metadata-quorum").run("--bootstrap-controller", servers, "describe", "--replication")
    # NodeId, DirectoryId, LogEndOffset, Lag, LastFetchTimestamp, LastCaughtUpTimestamp: -1 for never.
    return re.search(rf"^{node_id}\s+(?:\S+\s+){{4}}\d+\s", result, re.M) is not None


@pytest.fixture
def quorum() -> Iterator[SyncQuorum]:
    with Quorum.sync(2) as quorum:
        yield quorum


def test_kafkas_tool_adds_kafkas_controller_and_removes_ours(quorum: SyncQuorum, tmp_path: Path) -> None:
    kafka = KafkaController(tmp_path / "kafka", quorum.cluster_id, node_id=KAFKA_ID)
    kafka.properties["controller.quorum.bootstrap.servers"] = quorum.bootstrap
    KafkaServer.format(kafka, "--no-initial-controllers")
    # A leader asks a voter-to-be which versions it has: its listener has to be there.
    with running(kafka, formatted=True):
        wait_until(lambda: is_caught_up(quorum.bootstrap, KAFKA_ID), 60, "Kafka's controller as an observer")
        properties = str(kafka.directory / "server.properties")
        tool = KafkaTool("kafka-metadata-quorum")
        result = tool.run("--command-config", properties, "--bootstrap-controller", quorum.bootstrap, "add-controller")
        assert f"Added controller {KAFKA_ID}" in result
        assert describe(quorum.bootstrap)[1:] == ({3000, 3001, KAFKA_ID}, set())

        gone = quorum.active
        assert gone is not None
        described = KafkaTool("kafka-metadata-quorum").run(
            "--bootstrap-controller", quorum.bootstrap, "describe", "--replication"
        )
        found = re.search(rf"^{gone}\s+(\S+)", described, re.M)
        assert found is not None
        options = ("--controller-id", str(gone), "--controller-directory-id", found[1])
        result = tool.run("--bootstrap-controller", quorum.bootstrap, "remove-controller", *options)
        assert re.search(rf"Removed +KRaft controller {gone} ", result)
        # Kafka's client that meets a controller without a leader waits for its own timeout: it asks no second time.
        for node_id in (3000, 3001):
            wait_until(partial(_follows_another, quorum, node_id, gone), 60, "another leader")
        leader, voters, _ = describe(quorum.bootstrap)
        assert voters == {3000, 3001, KAFKA_ID} - {gone}
        assert leader in voters


def _follows_another(quorum: SyncQuorum, node_id: int, gone: int) -> bool:
    raft = quorum.node(node_id).controller.raft
    return quorum.call(lambda: raft.leader_id) not in (None, gone)


TOPIC_ID = (1 << 100).to_bytes(16, "big")
ANONYMOUS = b"\0\0\x05User\x0aANONYMOUS\0\0"


IN_TOPIC = {"name": "t", "partitions": [{"partitionIndex": 0, "replicas": [1]}]}
QUOTA = {"entity": [{"entityType": "user", "entityName": "u"}], "ops": [{"key": "producer_byte_rate", "value": 1.0}]}
LISTENER = {"name": "CONTROLLER", "host": "h", "port": 1}
OPERATIONS: list[tuple[str, dict[str, Any]]] = [
    ("CreateTopics", {"topics": [{"name": "t"}, {"name": "u"}], "timeoutMs": 5000}),
    ("CreatePartitions", {"topics": [{"name": "t", "count": 3}], "timeoutMs": 5000}),
    ("IncrementalAlterConfigs", {"resources": [{"resourceType": 2, "resourceName": "t"}]}),
    ("AlterConfigs", {"resources": [{"resourceType": 2, "resourceName": "t"}]}),
    ("ElectLeaders", {"topicPartitions": [{"topic": "t", "partitions": [0]}], "timeoutMs": 5000}),
    ("AlterPartitionReassignments", {"topics": [IN_TOPIC], "timeoutMs": 5000}),
    ("ListPartitionReassignments", {"topics": None, "timeoutMs": 5000}),
    ("AlterClientQuotas", {"entries": [QUOTA]}),
    ("AlterUserScramCredentials", {"deletions": [{"name": "u", "mechanism": 1}]}),
    ("UpdateFeatures", {"featureUpdates": [{"feature": "metadata.version", "maxVersionLevel": 30}]}),
    ("UnregisterBroker", {"brokerId": 7}),
    ("AllocateProducerIds", {"brokerId": 7}),
    ("BrokerRegistration", {"brokerId": 7, "clusterId": "other"}),
    ("BrokerHeartbeat", {"brokerId": 7}),
    ("AlterPartition", {"brokerId": 7, "topics": [{"topicId": text_of(TOPIC_ID)}]}),
    ("AssignReplicasToDirs", {"brokerId": 7}),
    ("ControllerRegistration", {"controllerId": 7}),
    ("DescribeQuorum", {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}),
    ("RemoveRaftVoter", {"voterId": 3000, "voterDirectoryId": text_of(TOPIC_ID)}),
    ("AddRaftVoter", {"voterId": 7, "voterDirectoryId": text_of(TOPIC_ID), "listeners": [LISTENER]}),
    ("DescribeCluster", {"endpointType": 2}),
]
"""One request of each kind that changes something or says what only the active controller knows."""


def operations() -> list[Any]:
    return [request(api, fields, messages.by_name(f"{api}Request").max_version) for api, fields in OPERATIONS]


def forwarded(request: Any) -> EnvelopeRequest:
    """The request as a broker forwards it."""
    data = write_request(request, request.max_version, 77, "client")[4:]
    return EnvelopeRequest(request_data=data, request_principal=ANONYMOUS, client_host_address=b"\x7f\0\0\1")


def asked(bootstrap: str, requests: list[Any]) -> list[Any]:
    """A controller's answer to each request as JSON, each on its own connection."""

    async def ask(request: Any) -> Any:
        host, _, port = bootstrap.rpartition(":")
        connection = await client.connect(host, int(port), client_id="test")
        try:
            version = connection.version_for(request)
            answer: dict[str, Any] = to_json(await connection.send(request, version=version), version)
            if request.api_key == api_keys.DESCRIBE_CLUSTER:
                answer["brokers"].sort(key=lambda node: node["brokerId"])
            return answer
        except client.DisconnectedError:
            return "closed"
        finally:
            await connection.close()

    async def ask_all() -> list[Any]:
        return [await ask(request) for request in requests]

    return asyncio.run(ask_all())


def knows_everybody(bootstrap: str) -> bool:
    """Return True if a controller knows that 3000 leads, and knows every controller's registration."""
    (result,) = asked(bootstrap, [DescribeClusterRequest(endpoint_type=2)])
    registered = {each["brokerId"] for each in result["brokers"]}
    return bool(result["controllerId"] == 3000 and registered == {3000, 3001, KAFKA_ID})


def test_standbys_refuse_active_only_requests_as_kafkas_standby_does(mixed: Mixed) -> None:
    mixed.elect(3000)
    standbys = (mixed.kafka.bootstrap, mixed.ours[3001].bootstrap)
    for standby in standbys:
        wait_until(partial(knows_everybody, standby), 60, f"{standby} to know the leader and every controller")
    requests = [*operations(), *(forwarded(request) for request in operations() if request.api_key in FORWARDABLE)]
    theirs, ours = (asked(standby, requests) for standby in standbys)
    names = [type(request).__name__ for request in requests]
    differing = [(name, our, their) for name, our, their in zip(names, ours, theirs, strict=True) if our != their]
    assert differing == []

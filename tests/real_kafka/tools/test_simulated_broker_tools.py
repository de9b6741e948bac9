"""Kafka's own command line tools on a cluster that has simulated brokers alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.kafka.processes import KafkaProcessError, KafkaTool, wait_until

pytestmark = pytest.mark.real_kafka

SUBCOMMANDS = {"kafka-cluster"}
"""Tools that are told what to do before whom to ask."""

Run = Callable[..., str]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """`run(tool, *arguments)`: what the tool printed, of three simulated brokers."""
    with ExitStack() as stack:
        controller = stack.enter_context(Controller.sync())
        at = (controller.bootstrap, controller.cluster_id)
        brokers = [stack.enter_context(SimulatedBroker.sync(*at, number, rack=f"r{number}")) for number in (1, 2, 3)]
        for broker in brokers:
            broker.wait_until(BrokerState.RUNNING)
        servers = ",".join(broker.bootstrap_servers for broker in brokers)

        def run_tool(name: str, *arguments: str) -> str:
            if name in SUBCOMMANDS:
                return KafkaTool(name).run(*arguments, "--bootstrap-server", servers)
            return KafkaTool(name).run("--bootstrap-server", servers, *arguments)

        yield run_tool


def test_kafka_topics_creates_describes_alters_and_deletes(run: Run) -> None:
    created = run("kafka-topics", "--create", "--topic", "t", "--partitions", "2", "--replication-factor", "3")
    assert "Created topic t." in created

    def described() -> str:
        return run("kafka-topics", "--describe", "--topic", "t")

    assert "PartitionCount: 2\tReplicationFactor: 3" in described()
    run("kafka-topics", "--alter", "--topic", "t", "--partitions", "3")
    wait_until(lambda: "PartitionCount: 3" in described(), 60, "three partitions")
    assert "t" in run("kafka-topics", "--list").split()
    run("kafka-topics", "--delete", "--topic", "t")
    wait_until(lambda: "t" not in run("kafka-topics", "--list").split(), 60, "t gone")
    with pytest.raises(KafkaProcessError, match="does not exist as expected"):
        described()


def test_kafka_configs_describes_and_alters(run: Run) -> None:
    def alter(kind: str, name: str, config: str) -> None:
        run("kafka-configs", "--alter", "--entity-type", kind, "--entity-name", name, "--add-config", config)

    def describe(kind: str, name: str, *options: str) -> str:
        return run("kafka-configs", "--describe", "--entity-type", kind, "--entity-name", name, *options)

    run("kafka-topics", "--create", "--topic", "c", "--replica-assignment", "1:2")
    alter("topics", "c", "retention.ms=1000")
    alter("brokers", "2", "log.retention.ms=7")
    alter("users", "u", "producer_byte_rate=9")
    assert "retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000" in describe(
        "topics", "c"
    )
    of_broker = describe("brokers", "2", "--all")
    assert "node.id=2 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=2}" in of_broker
    assert "log.retention.ms=7" in of_broker
    assert "producer_byte_rate=9.0" in describe("users", "u")
    with pytest.raises(KafkaProcessError, match=r"must be present in log.dirs or log.dir. Missing entries : /nope"):
        alter("brokers", "2", "cordoned.log.dirs=/nope")


def test_kafka_cluster_lists_the_cluster_and_its_brokers(run: Run) -> None:
    assert "Cluster ID: " in run("kafka-cluster", "cluster-id")
    listed = run("kafka-cluster", "list-endpoints")
    assert [line.split()[0] for line in listed.splitlines()[1:]] == ["1", "2", "3"]


def test_kafka_broker_api_versions_reads_them_all(run: Run) -> None:
    result = run("kafka-broker-api-versions")
    assert len(re.findall(r"^127\.0\.0\.1:\d+ \(id: \d rack: r\d isFenced: false\) -> \($", result, re.MULTILINE)) == 3
    assert "CreateTopics(19): 2 to 7 [usable: 7]" in result


def test_kafka_metadata_quorum_describes_the_quorum_through_brokers(run: Run) -> None:
    status = run("kafka-metadata-quorum", "describe", "--status")
    assert re.search(r"^LeaderId:\s+3000$", status, re.MULTILINE)
    assert re.search(r'CurrentObservers:.*"id": 1', status)


def test_kafka_features_lists_finalized_levels(run: Run) -> None:
    assert re.search(r"metadata\.version\s+SupportedMinVersion: 3\.3-IV3", run("kafka-features", "describe"))


def test_kafka_reassign_partitions_moves_and_lists(run: Run, tmp_path: Path) -> None:
    run("kafka-topics", "--create", "--topic", "m", "--replica-assignment", "1:2")
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [{"topic": "m", "partition": 0, "replicas": [2, 3]}]}))
    run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", str(path))
    wait_until(lambda: "No partition reassignments found." in run("kafka-reassign-partitions", "--list"), 60, "moved")
    assert "Replicas: 2,3" in run("kafka-topics", "--describe", "--topic", "m")
    verified = run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", str(path))
    assert "Reassignment of partition m-0 is completed." in verified


def test_kafka_leader_election_reports_that_none_is_needed(run: Run) -> None:
    run("kafka-topics", "--create", "--topic", "e", "--replica-assignment", "1:2")
    result = run("kafka-leader-election", "--election-type", "preferred", "--topic", "e", "--partition", "0")
    assert "Valid replica already elected for partitions e-0" in result

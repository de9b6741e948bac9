"""A plan on a twin, and the same steps on the cluster of Kafka brokers that it is the twin of: equal records."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaController, wait_until
from mockraft.testing.plan import PlanOutcome, StepOutcome
from mockraft.twin import read_history
from mockraft.twin.history import Logged
from mockraft.wire import error_codes
from mockraft.wire.client import connect
from mockraft.wire.json_form import to_json
from mockraft.wire.message import Message
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord

from ...clients import create_topic

pytestmark = pytest.mark.real_kafka

LEVEL = 32


OF_A_PROCESS = ("brokerEpoch", "incarnationId", "endPoints", "features")
"""Fields of a registration that are another process's, or follow from where the log is."""


def in_order(records: Iterable[Message]) -> list[str]:
    """Records as texts; two partitions may change in either order, and a leader's ISR is a set."""
    found = []
    for each in records:
        tree = to_json(each, each.max_version)
        assert isinstance(tree, dict)
        if isinstance(isr := tree.get("isr"), list):
            tree["isr"] = sorted(isr, key=str)
        if isinstance(each, RegisterBrokerRecord | BrokerRegistrationChangeRecord):
            tree = {name: value for name, value in tree.items() if name not in OF_A_PROCESS}
        if not isinstance(each, NoOpRecord):
            found.append(f"{type(each).__name__} {json.dumps(tree)}")
    return sorted(found)


class RealCluster:
    """Steps on real brokers, and the records that each makes the real controller write."""

    def __init__(self, cluster: KafkaCluster, folder: Path) -> None:
        """Copy the metadata of the running cluster into `folder`."""
        assert isinstance(cluster.controller, KafkaController)
        self.cluster = cluster
        self.directory = Path(cluster.controller.properties["log.dirs"])
        self.copy = shutil.copytree(self.directory, folder / "copy")
        self.compared = read_history(self.copy).end_offset
        self.host, self.port = cluster.controller.bootstrap.split(":")

    def partitions(self, topic: str) -> list[list[int]]:
        """The replicas of each partition."""
        found = read_history(self.copy).moment().image.topics.by_name[topic].partitions
        return [[*each.replicas] for each in found.values()]

    def planned(self, steps: list[dict[str, Any]], session_timeout_ms: int = 9_000) -> PlanOutcome:
        """Do the steps on the twin."""
        with Controller.sync(
            twin_of=self.copy, clock="virtual", twin_brokers="live", session_timeout_ms=session_timeout_ms
        ) as twin:
            return twin.plan(steps)

    def reassign(self, topic: str, replicas: dict[int, list[int]]) -> Any:
        """Ask for these replicas by partition."""
        partitions = [ReassignablePartition(partition_index=n, replicas=each) for n, each in replicas.items()]
        topics = [ReassignableTopic(name=topic, partitions=partitions)]
        return self.ask(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=30_000))

    def elect(self, topic: str, *, unclean: bool) -> Any:
        """Elect the leader of partition 0."""
        topics = [TopicPartitions(topic=topic, partitions=[0])]
        return self.ask(ElectLeadersRequest(election_type=int(unclean), topic_partitions=topics, timeout_ms=30_000))

    def start_again(self, broker_id: int) -> None:
        """Start a broker that was stopped or killed."""
        self.cluster.brokers[broker_id].start()
        self.cluster.brokers[broker_id].wait_until_running()

    def ask(self, request: Any) -> Any:
        async def sent() -> Any:
            connection = await connect(self.host, int(self.port), handshake=False)
            try:
                return await connection.send(request, version=type(request).max_version, timeout_ms=30_000)
            finally:
                await connection.close()

        return asyncio.run(sent())

    def writes(self, step: StepOutcome, do: Callable[[], object]) -> None:
        """Check that a step writes the records that it wrote on the twin, and nothing was written before them."""
        expected = in_order(each.record for each in step.records)
        do()

        def written() -> list[Logged]:
            found = [each for each in read_history(self.directory).records() if each.offset >= self.compared]
            return found if len(in_order(each.record for each in found)) >= len(expected) else []

        records = wait_until(written, 60, f"{len(expected)} records")
        self.compared = records[-1].offset + 1
        assert in_order(each.record for each in records) == expected, str(step.step)


@contextmanager
def real_cluster(folder: Path, brokers: int, session_timeout_ms: int = 9_000) -> Iterator[KafkaCluster]:
    """A controller and brokers of Kafka, at a level that can be upgraded."""
    with KafkaCluster(
        folder / "real",
        controller="kafka",
        versions=(KAFKA_VERSION,) * brokers,
        metadata_version="4.4-IV0",
        log_dir_count=1,
        session_timeout_ms=session_timeout_ms,
        broker_properties={"broker.heartbeat.interval.ms": "500"},
    ) as cluster:
        yield cluster


def test_upgrade_and_shutdown(tmp_path: Path) -> None:
    with real_cluster(tmp_path, brokers=3) as cluster:
        create_topic(cluster.bootstrap_servers, "t", partitions=2, replicas=2)
        real = RealCluster(cluster, tmp_path)
        replicas = [[*each, 6 - sum(each)] for each in real.partitions("t")]
        outcome = real.planned(
            [
                *({"reassign": {"topic": "t", "partition": n, "replicas": each}} for n, each in enumerate(replicas)),
                {"upgrade": {"metadata.version": str(LEVEL)}},
                {"shut_down": [3]},
                {"unregister": [3]},
                {"unregister": [9]},
            ]
        )
        update = FeatureUpdateKey(feature="metadata.version", max_version_level=LEVEL, upgrade_type=1)
        does: list[Callable[[], object]] = [
            lambda: real.reassign("t", {0: replicas[0]}),
            lambda: real.reassign("t", {1: replicas[1]}),
            lambda: real.ask(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=30_000)),
            cluster.brokers[3].stop,
            lambda: real.ask(UnregisterBrokerRequest(broker_id=3)),
        ]
        for step, do in zip(outcome.steps[:-1], does, strict=True):
            real.writes(step, do)
        refused = real.ask(UnregisterBrokerRequest(broker_id=9))
        about = f"{error_codes.name(refused.error_code)}: {refused.error_message}"
        assert outcome.steps[-1].answers == (f"broker 9: {about}",)


def test_more_replicas_and_new_places(tmp_path: Path) -> None:
    with real_cluster(tmp_path, brokers=3) as cluster:
        create_topic(cluster.bootstrap_servers, "t", partitions=3, replicas=1)
        real = RealCluster(cluster, tmp_path)
        (first,) = real.partitions("t")[0]
        others = [each for each in (1, 2, 3) if each != first]
        outcome = real.planned(
            [
                {"replication_factor": {"topic": "t", "factor": 2}},
                {"reassign": {"topic": "t", "partition": 0, "replicas": others}},
                {"reassign": {"topic": "t", "partition": 0, "replicas": [first, others[0]]}},
                {"elect": {"topic": "t", "partition": 0}},
                {"reassign": {"topic": "t", "partition": 0, "replicas": [first, 9]}},
            ]
        )
        raised, moved, moved_again, elected, refused = outcome.steps
        asked = {
            each.record.partition_id: [*(each.record.replicas or ())]
            for each in raised.records
            if isinstance(each.record, PartitionChangeRecord) and each.record.replicas
        }
        real.writes(raised, lambda: real.reassign("t", asked))
        real.writes(moved, lambda: real.reassign("t", {0: others}))
        real.writes(moved_again, lambda: real.reassign("t", {0: [first, others[0]]}))
        real.writes(elected, lambda: real.elect("t", unclean=False))
        (answered,) = real.reassign("t", {0: [first, 9]}).responses[0].partitions
        assert refused.answers == (f"t-0: {error_codes.name(answered.error_code)}: {answered.error_message}",)


def test_unclean_recovery_after_both_replicas_were_lost(tmp_path: Path) -> None:
    session_timeout_ms = 3_000
    with real_cluster(tmp_path, 2, session_timeout_ms) as cluster:
        create_topic(cluster.bootstrap_servers, "t", replicas=2)
        real = RealCluster(cluster, tmp_path)
        outcome = real.planned(
            [
                {"lose": [1]},
                {"lose": [2]},
                {"start": [1]},
                {"elect": {"topic": "t", "partition": 0}},
                {"elect": {"topic": "t", "partition": 0, "unclean": True}},
                {"start": [2]},
            ],
            session_timeout_ms,
        )
        first_lost, both_lost, first_back, refused, elected, both_back = outcome.steps
        real.writes(first_lost, cluster.brokers[1].kill)
        real.writes(both_lost, cluster.brokers[2].kill)
        real.writes(first_back, lambda: real.start_again(1))
        answered = real.elect("t", unclean=False).replica_election_results[0].partition_result[0]
        assert refused.answers == (f"t-0: {error_codes.name(answered.error_code)}: {answered.error_message}",)
        real.writes(elected, lambda: real.elect("t", unclean=True))
        real.writes(both_back, lambda: real.start_again(2))
        assert [len(step.after.offline) for step in outcome.steps] == [0, 1, 1, 1, 0, 0]

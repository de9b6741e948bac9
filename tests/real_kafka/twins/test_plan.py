"""A plan on a twin, and the same steps on the cluster of Kafka brokers that it is the twin of: equal records."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaController, wait_until
from mockraft.twin import read_history
from mockraft.wire import error_codes
from mockraft.wire.client import connect
from mockraft.wire.json_form import to_json
from mockraft.wire.message import Message
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from mockraft.wire.records.no_op_record import NoOpRecord

from ...clients import create_topic

pytestmark = pytest.mark.real_kafka

LEVEL = 32


def in_order(records: Iterable[Message]) -> list[str]:
    """Records as texts; two partitions may change in either order, and a leader's ISR is a set."""
    found = []
    for each in records:
        tree = to_json(each, each.max_version)
        assert isinstance(tree, dict)
        if isinstance(isr := tree.get("isr"), list):
            tree["isr"] = sorted(isr, key=str)
        if not isinstance(each, NoOpRecord):
            found.append(f"{type(each).__name__} {json.dumps(tree)}")
    return sorted(found)


class RealCluster:
    """Steps on real brokers, and the records that each makes the real controller write."""

    def __init__(self, cluster: KafkaCluster) -> None:
        assert isinstance(cluster.controller, KafkaController)
        self.cluster = cluster
        self.directory = Path(cluster.controller.properties["log.dirs"])
        self.host, self.port = cluster.controller.bootstrap.split(":")

    def ask(self, request: Any) -> Any:
        async def sent() -> Any:
            connection = await connect(self.host, int(self.port), handshake=False)
            try:
                return await connection.send(request, version=type(request).max_version, timeout_ms=30_000)
            finally:
                await connection.close()

        return asyncio.run(sent())

    def records(self, do: Callable[[], object], count: int) -> list[str]:
        """Records that a step writes; there are `count`, and no more within a while."""
        start = read_history(self.directory).end_offset

        def written() -> list[str]:
            return in_order(each.record for each in read_history(self.directory).records() if each.offset >= start)

        do()
        return wait_until(lambda: found if len(found := written()) >= count else [], 60, f"{count} records")


def test_a_plan_writes_the_records_of_a_real_cluster(tmp_path: Path) -> None:
    with KafkaCluster(
        tmp_path / "real",
        controller="kafka",
        versions=(KAFKA_VERSION,) * 3,
        metadata_version="4.4-IV0",
        log_dir_count=1,
    ) as cluster:
        create_topic(cluster.bootstrap_servers, "t", partitions=2, replicas=2)
        real = RealCluster(cluster)
        copy = shutil.copytree(real.directory, tmp_path / "copy")
        partitions = read_history(copy).moment().image.topics.by_name["t"].partitions
        replicas = [[*each.replicas, 6 - sum(each.replicas)] for each in partitions.values()]
        steps: list[dict[str, Any]] = [
            *({"reassign": {"topic": "t", "partition": n, "replicas": each}} for n, each in enumerate(replicas)),
            {"upgrade": {"metadata.version": str(LEVEL)}},
            {"shut_down": [3]},
            {"unregister": [3]},
            {"unregister": [9]},
        ]
        with Controller.sync(twin_of=copy, clock="virtual", twin_brokers="live") as twin:
            outcome = twin.plan(steps)
        expected = [in_order(each.record for each in step.records) for step in outcome.steps]

        def reassign(number: int) -> Any:
            partition = ReassignablePartition(partition_index=number, replicas=replicas[number])
            topics = [ReassignableTopic(name="t", partitions=[partition])]
            return real.ask(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=30_000))

        update = FeatureUpdateKey(feature="metadata.version", max_version_level=LEVEL, upgrade_type=1)
        upgrade = UpdateFeaturesRequest(feature_updates=[update], timeout_ms=30_000)
        does: list[Callable[[], object]] = [
            lambda: reassign(0),
            lambda: reassign(1),
            lambda: real.ask(upgrade),
            cluster.brokers[3].stop,
            lambda: real.ask(UnregisterBrokerRequest(broker_id=3)),
        ]
        for do, records in zip(does, expected[:-1], strict=True):
            assert real.records(do, len(records)) == records
        refused = real.ask(UnregisterBrokerRequest(broker_id=9))
        about = f"{error_codes.name(refused.error_code)}: {refused.error_message}"
        assert outcome.steps[-1].answers == (f"broker 9: {about}",)

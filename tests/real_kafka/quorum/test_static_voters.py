"""A configured voter that never came: the same answers from Kafka's quorum and ours."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaServer, wait_until
from mockraft.wire.json_form import to_json
from mockraft.wire.message import Message
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

from tools.blocking_connection import BlockingConnection

from ...configs import BROKER, SET, change_configs
from ..over_time.trio import Trio, connect, kafka_nodes, our_nodes

pytestmark = pytest.mark.real_kafka

REGISTERED, MISSING = (3000, 3001), 3002
CONTROLLERS = 2
REQUESTS = (
    (UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="share.version", upgrade_type=3)]), 2),
    (change_configs((BROKER, str(MISSING), (SET, "a.key", "x"))), 1),
    (change_configs((BROKER, "3003", (SET, "a.key", "x"))), 1),
)


def has_all_running(connection: BlockingConnection) -> bool:
    controllers = connection.exchange(DescribeClusterRequest(endpoint_type=CONTROLLERS), 1).brokers
    return len(controllers) == len(REGISTERED)


def answers(trio: Trio) -> list[Any]:
    """Start two of three configured voters, and ask the leader."""
    voters = ",".join(f"{node_id}@{node.bootstrap}" for node_id, node in trio.nodes.items())
    for node in trio.nodes.values():
        if isinstance(node, MockraftController):
            node.options += ["--controller-quorum-voters", voters]
        else:
            del node.properties["controller.quorum.bootstrap.servers"]
            node.properties["controller.quorum.voters"] = voters
            KafkaServer.format(node)
    del trio.nodes[MISSING]
    try:
        for node in trio.nodes.values():
            node.start()
        with closing(connect(trio.nodes[trio.wait_for_leader()].bootstrap, 20)) as connection:
            wait_until(lambda: has_all_running(connection), 60, "registrations of the running controllers")
            # A union of requests is no RequestMessage.
            exchange: Callable[[Message, int], Message] = connection.exchange  # type: ignore[assignment]
            return [to_json(exchange(request, version), version) for request, version in REQUESTS]
    finally:
        for node in trio.nodes.values():
            node.kill()


def test_missing_voter_stops_feature_updates_and_has_configs(
    tmp_path: Path, watch_processes: Callable[[Any], None]
) -> None:
    theirs, ours = kafka_nodes(tmp_path / "kafka"), our_nodes(tmp_path / "mockraft")
    for trio in (theirs, ours):
        watch_processes(trio)
    expected = answers(theirs)
    assert f"controller {MISSING} has not registered" in str(expected[0])
    assert answers(ours) == expected

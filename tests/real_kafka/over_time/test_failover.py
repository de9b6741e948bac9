"""Failovers in a quorum of three processes: the same script on Kafka's controllers and on ours.

The leader is killed, closed (it resigns), stopped (SIGSTOP) and deposed (a vote in a later epoch). Brokers go on at the
new leader, the others refuse; at the end, what clients were acknowledged meanwhile is linearizable on both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from mockraft.kafka.child_process import wait_until

from ...budgets import budget
from ...linearizability.clients import Clients
from .script import QUORUM_TOPIC, Script, asked, described_quorum, differences
from .trio import NODE_IDS, Trio, both_running, connect

pytestmark = pytest.mark.real_kafka

LEADER = "node of the leader."


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, watch_processes: Callable[[Any], None]
) -> Iterator[tuple[Trio, Trio]]:
    with both_running(tmp_path_factory.mktemp("failover"), watch_processes, *NODE_IDS) as trios:
        yield trios


def kill(trio: Trio, leader: int, epoch: int) -> Callable[[], None]:
    trio.nodes[leader].kill()
    return lambda: trio.start(leader)


def close(trio: Trio, leader: int, epoch: int) -> Callable[[], None]:
    trio.nodes[leader].stop()
    return lambda: trio.start(leader)


def pause(trio: Trio, leader: int, epoch: int) -> Callable[[], None]:
    trio.pause(leader)
    return lambda: trio.resume(leader)


def depose(trio: Trio, leader: int, epoch: int) -> Callable[[], None]:
    """Ask the leader for its vote in a later epoch, as a voter whose log is behind does."""
    voter = next(node_id for node_id in NODE_IDS if node_id != leader)
    with closing(connect(trio.nodes[leader].bootstrap)) as connection:
        ids = {each["replicaId"]: each["replicaDirectoryId"] for each in described_quorum(connection)["currentVoters"]}
        partition = {
            "partitionIndex": 0,
            "replicaEpoch": epoch + 1,
            "replicaId": voter,
            "replicaDirectoryId": ids[voter],
            "voterDirectoryId": ids[leader],
        }
        topics = [{"topicName": "__cluster_metadata", "partitions": [partition]}]
        fields = {"clusterId": trio.cluster_id, "voterId": leader, "topics": topics}
        asked(connection, "Vote", fields)
    return lambda: None


WAYS = budget((kill,), (kill, close, pause, depose))
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("BrokerHeartbeat", {"brokerId": 1}),
    ("BrokerRegistration", {"brokerId": 1}),
    ("AllocateProducerIds", {"brokerId": 1}),
    ("CreateTopics", {"topics": [{"name": "x", "numPartitions": 1}], "timeoutMs": 9000}),
    ("IncrementalAlterConfigs", {"resources": [{"resourceType": 2, "resourceName": "t"}]}),
    ("DescribeQuorum", {"topics": [QUORUM_TOPIC]}),
]


def refusals(trio: Trio, node_id: int, leader: int) -> list[Any]:
    """Answers of a standby, once it follows the leader."""
    with closing(connect(trio.nodes[node_id].bootstrap, 20)) as connection:

        def answers() -> list[Any]:
            trees = json.dumps([asked(connection, api, fields) for api, fields in REFUSED])
            found: list[Any] = json.loads(trees.replace(f"node {leader}.", LEADER))
            return found

        wait_until(lambda: LEADER in json.dumps(answers()), 60, f"{node_id} to follow {leader}")
        return answers()


def failovers(trio: Trio) -> dict[str, Any]:
    leader = trio.wait_for_leader()
    with closing(Script(trio.nodes[leader].bootstrap, trio.cluster_id, frozenset(NODE_IDS))) as script:
        wait_until(lambda: script.leader_epoch() >= 0, 60, "an epoch")
        script.side.skip_start()
        script.records()
        for broker_id in (11, 12, 13):
            script.register(f"register {broker_id}", broker_id)
        for broker_id in (11, 12):
            script.heartbeat(f"unfence {broker_id}", broker_id)
        script.create_topic("kept", 11, 12)
        for way in WAYS:
            leader = fail_over(trio, script, leader, way)
        return script.seen


def fail_over(trio: Trio, script: Script, leader: int, way: Callable[..., Callable[[], None]]) -> int:
    """Let the leader go, see how brokers go on at the next one, and let the old one come back."""
    name, epoch = way.__name__, script.leader_epoch()
    script.allocate(f"{name}: a block before", 11)
    undo = way(trio, leader, epoch)
    follower = trio.wait_for_leader(epoch)
    script.follow(trio.nodes[follower].bootstrap, epoch)
    script.heartbeat(f"{name}: 11 goes on", 11)
    script.heartbeat(f"{name}: 13 is still fenced", 13, wantFence=True)
    script.heartbeat(f"{name}: an unknown epoch", 12, brokerEpoch=script.epochs[12] + 1)
    script.register(f"{name}: 12 as another while its session is valid", 12, incarnation=2)
    script.register(f"{name}: 12 again", 12)
    script.heartbeat(f"{name}: 12 is unfenced again", 12)
    script.allocate(f"{name}: the next block", 11)
    script.create_topic(f"after-{name}", 11, 12)
    undo()
    standbys = [node_id for node_id in NODE_IDS if node_id != follower]
    script.see(f"{name}: standbys refuse", [refusals(trio, node_id, follower) for node_id in standbys])
    return follower


def test_brokers_go_on_after_every_failover_as_with_kafka(both: tuple[Trio, Trio]) -> None:
    with ThreadPoolExecutor() as pool:
        theirs, ours = pool.map(failovers, both)
    assert differences(theirs, ours) == ""


@pytest.mark.parametrize("way", budget((kill,), (kill, close, pause)))
@pytest.mark.parametrize("which", [0, 1])
def test_acknowledged_changes_are_linearizable_over_a_failover(
    both: tuple[Trio, Trio], which: int, way: Callable[..., Callable[[], None]]
) -> None:
    trio = both[which]
    clients = Clients(trio.servers, trio.cluster_id, seed=WAYS.index(way), may_be_stale=True)
    with clients.running():
        undo = way(trio, trio.wait_for_leader(), 0)
        clients.wait_for_progress(50)
        undo()
    assert clients.violations() == ""

"""Voters that are added, moved and removed while clients write: the same script on Kafka's controllers and on ours.

A quorum of one gets two more voters out of its observers; one of them comes back on another port; then the leader
itself is removed, and one that is not the leader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from mockraft.kafka.child_process import wait_until
from mockraft.kafka.processes import KafkaController, KafkaServer
from mockraft.wire import error_codes, record_batch
from mockraft.wire.json_form import to_json
from mockraft.wire.records.voters_record import VotersRecord

from ...budgets import soak
from ...linearizability.clients import Clients
from .script import QUORUM_TOPIC, Script, asked, described_quorum, differences
from .trio import BOOTSTRAP_OPTION, NODE_IDS, Trio, both_running, move

pytestmark = [pytest.mark.real_kafka, soak]

VOTER_SET = re.compile(r"\[(ReplicaKey.*)\]")
"""The voters in a message, in the order of Kafka's hash map."""

FIRST, SECOND, THIRD = NODE_IDS
NEVER_FETCHED, NEVER_FETCHED_ID = 3009, "JEXY6aqzQY-32P5TStzaFg"


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, watch_processes: Callable[[Any], None]
) -> Iterator[tuple[Trio, Trio]]:
    with both_running(tmp_path_factory.mktemp("voters"), watch_processes, FIRST) as trios:
        yield trios


def _sorted(voter_set: re.Match[str]) -> str:
    return repr(sorted(re.findall(r"ReplicaKey\([^)]*\)", voter_set[1])))


class Voters:
    """Requests about the voters of one quorum; answers and VotersRecords are in the script's transcript."""

    def __init__(self, trio: Trio, script: Script) -> None:
        self.trio = trio
        self.script = script
        self.names = {node_id: str(node_id) for node_id in NODE_IDS}
        """Names of the nodes in the transcript: which of two is the next leader is chance."""
        self.lost = "none"
        """The directory id that a node had on a lost disk."""

    def directory_id(self, node_id: int) -> str:
        node = self.trio.nodes[node_id]
        folder = node.properties["log.dirs"] if isinstance(node, KafkaController) else node.data_dir
        found = re.search(r"^directory\.id=(\S+)", (Path(str(folder)) / "meta.properties").read_text(), re.M)
        assert found is not None
        return found[1].replace("\\", "")

    def add(self, step: str, node_id: int) -> None:
        self.see(step, self._change(step, "AddRaftVoter", self._new_voter(node_id)))

    def add_once(self, step: str, node_id: int, **fields: Any) -> None:
        """Add a voter, and see also that the leader is not ready for it."""
        given = {"clusterId": self.trio.cluster_id, **self._new_voter(node_id), **fields}
        self.see(step, self._masked(asked(self.script.side, "AddRaftVoter", given)))

    def _new_voter(self, node_id: int) -> dict[str, Any]:
        listener = {"name": "CONTROLLER", "host": "127.0.0.1", "port": self.trio.nodes[node_id].port}
        fields = {"voterId": node_id, "voterDirectoryId": self.directory_id(node_id), "listeners": [listener]}
        return fields | {"timeoutMs": 10_000}

    def remove(self, step: str, node_id: int) -> None:
        self.see(step, self.removed(step, node_id))

    def removed(self, step: str, node_id: int) -> Any:
        """Remove a voter, with the directory id that the leader knows, and return the answer."""
        voters = described_quorum(self.script.side)["currentVoters"]
        known = {each["replicaId"]: each["replicaDirectoryId"] for each in voters}
        fields = {"voterId": node_id, "voterDirectoryId": known.get(node_id, self.directory_id(node_id))}
        return self._change(step, "RemoveRaftVoter", fields)

    def lose_disk(self, node_id: int) -> None:
        """Restart a node with an empty data directory."""
        node = self.trio.nodes[node_id]
        node.kill()
        self.lost = self.directory_id(node_id)
        if isinstance(node, KafkaController):
            rmtree(str(node.properties["log.dirs"]))
            KafkaServer.format(node, "--no-initial-controllers")
        else:
            rmtree(str(node.data_dir))
            at = node.options.index("--initial-controllers")
            node.options[at : at + 2] = [BOOTSTRAP_OPTION, ",".join(self.trio.servers)]
        self.trio.start(node_id)

    def _change(self, step: str, api: str, fields: dict[str, Any]) -> Any:
        """Ask until the leader is ready for it: an observer has to catch up, an earlier change to be committed."""

        def answer() -> Any:
            tree = asked(self.script.side, api, {"clusterId": self.trio.cluster_id, **fields})
            return None if tree["errorCode"] == error_codes.REQUEST_TIMED_OUT else tree

        return self._masked(wait_until(answer, 60, f"{step} not to time out"))

    def see(self, step: str, *values: Any) -> None:
        """Add values, the voters as described and all VotersRecords since the last step."""
        records = self.script.side.control_records
        began = len(records)
        self.script.side.new_records()
        written = [
            self._masked(to_json(VotersRecord.read(value, 0), 0))
            for kind, value in records[began:]
            if kind == record_batch.KRAFT_VOTERS
        ]
        self.script.see(step, *values, written, self.described())

    def described(self) -> list[Any]:
        tree = asked(self.script.side, "DescribeQuorum", {"topics": [QUORUM_TOPIC]})
        voters = [each["replicaId"] for each in tree["topics"][0]["partitions"][0]["currentVoters"]]
        return [self._masked(voters), self._masked(tree["nodes"])]

    def _masked(self, tree: Any) -> Any:
        """Node ids, ports and directories by the node's name; voters in the order of their names."""
        if isinstance(tree, dict):
            return {key: self._masked(value) for key, value in tree.items()}
        if isinstance(tree, list):
            return sorted((self._masked(each) for each in tree), key=repr)
        tree = tree.replace(self.lost, "a lost directory") if isinstance(tree, str) else tree
        for node_id, name in self.names.items():
            if tree == node_id:
                return name
            if tree == self.trio.nodes[node_id].port:
                return f"port of {name}"
            if isinstance(tree, str):
                tree = tree.replace(self.directory_id(node_id), f"directory of {name}").replace(str(node_id), name)
        return VOTER_SET.sub(_sorted, tree) if isinstance(tree, str) else tree


def change_voters(trio: Trio) -> dict[str, Any]:
    leader = trio.wait_for_leader()
    clients = Clients(trio.servers, trio.cluster_id, seed=2, may_be_stale=True)
    with closing(Script(trio.nodes[leader].bootstrap, trio.cluster_id, frozenset(NODE_IDS))) as script:
        script.side.skip_start()
        voters = Voters(trio, script)
        voters.see("one voter")
        with clients.running():
            for node_id in (SECOND, THIRD):
                voters.add(f"add {node_id}", node_id)
                voters.add(f"add {node_id} again", node_id)
                clients.wait_for_progress(20)
            come_back_elsewhere(trio, voters, SECOND)
            clients.servers[:] = trio.servers
            clients.wait_for_progress(20)
            epoch = script.leader_epoch()
            answer = voters.removed("remove the leader", FIRST)
            # It resigns as soon as it is no voter.
            leader = trio.wait_for_leader(epoch)
            script.side.reconnect(trio.nodes[leader].bootstrap)
            clients.wait_for_progress(20)
            other = SECOND if leader == THIRD else THIRD
            voters.names |= {leader: "the next leader", other: "the other"}
            voters.see("the leader was removed", answer)
            voters.remove("remove the other", other)
            voters.remove("remove it again", other)
            voters.remove("remove the last one", leader)
    script.see("not linearizable", clients.violations())
    return script.seen


def come_back_elsewhere(trio: Trio, voters: Voters, node_id: int) -> None:
    """Restart a voter on another port; it sends the leader its new address."""
    node = trio.nodes[node_id]
    node.stop()
    move(node)
    node.start()
    node.wait_until_running()

    def is_known() -> bool:
        return f"port of {node_id}" in repr(voters.described())

    wait_until(is_known, 60, "the new port among the voters")
    voters.see(f"{node_id} came back on another port")


def hindered_changes(trio: Trio) -> dict[str, Any]:
    leader = trio.wait_for_leader()
    one, other = (node_id for node_id in NODE_IDS if node_id != leader)
    with closing(Script(trio.nodes[leader].bootstrap, trio.cluster_id, frozenset(NODE_IDS))) as script:
        script.side.skip_start()
        voters = Voters(trio, script)
        voters.names = {leader: "the leader", one: "one", other: "the other"}
        trio.nodes[one].kill()
        voters.remove("remove one that does not run", one)
        voters.add_once("add it where nobody listens", one)
        trio.start(one)
        voters.add("add it with the log in which it was a voter", one)
        voters.add_once("add one that never fetched", one, voterId=NEVER_FETCHED, voterDirectoryId=NEVER_FETCHED_ID)
        voters.lose_disk(one)
        voters.add("add it while its lost directory is a voter", one)
        voters.remove("remove its lost directory", one)
        voters.add("add its new directory", one)
        join_during_an_election(trio, voters, leader, one)
    return script.seen


def join_during_an_election(trio: Trio, voters: Voters, leader: int, node_id: int) -> None:
    """Remove a controller that joins by itself, and let the leader resign at once."""
    node, epoch = trio.nodes[node_id], voters.script.leader_epoch()
    node.stop()
    if isinstance(node, KafkaController):
        node.properties["controller.quorum.auto.join.enable"] = "true"
    else:
        node.options.append("--controller-quorum-auto-join-enable")
    trio.start(node_id)
    answer = voters.removed("remove one that joins", node_id)
    trio.nodes[leader].stop()
    trio.start(leader)
    voters.script.side.reconnect(trio.nodes[trio.wait_for_leader(epoch)].bootstrap)

    def has_joined() -> bool:
        voters.script.side.reconnect(trio.nodes[trio.wait_for_leader(epoch)].bootstrap)
        return "'one'" in repr(voters.described()[0])

    wait_until(has_joined, 60, "the removed one among the voters")
    voters.see("it joined the next leader", answer)


def test_hindered_changes_end_as_with_kafka(tmp_path: Path, watch_processes: Callable[[Any], None]) -> None:
    with both_running(tmp_path, watch_processes, *NODE_IDS) as trios, ThreadPoolExecutor() as pool:
        theirs, ours = pool.map(hindered_changes, trios)
    assert "is lagging behind" in str(theirs["add one that never fetched"])
    assert "DUPLICATE_VOTER" in error_codes.name(theirs["add it while its lost directory is a voter"][0]["errorCode"])
    assert differences(theirs, ours) == ""


def test_voters_change_under_load_as_with_kafka(both: tuple[Trio, Trio]) -> None:
    with ThreadPoolExecutor() as pool:
        theirs, ours = pool.map(change_voters, both)
    assert theirs["not linearizable"] == ("",)
    assert differences(theirs, ours) == ""

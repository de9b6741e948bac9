"""Requests between voters, sent to Kafka's controller and to ours, each alone in its quorum.

First what changes nothing, then what makes a leader step down: it leads again after a while, in the same epoch on both.
"""

import select
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.wire import uuids
from mockraft.wire.json_form import to_json
from mockraft.wire.messages import add_raft_voter_request as add
from mockraft.wire.messages import begin_quorum_epoch_request as begin
from mockraft.wire.messages import describe_quorum_request as describe
from mockraft.wire.messages import end_quorum_epoch_request as end
from mockraft.wire.messages import fetch_request as fetch
from mockraft.wire.messages import update_raft_voter_request as update
from mockraft.wire.messages import vote_request as vote

from tools.blocking_connection import BlockingConnection

pytestmark = pytest.mark.real_kafka

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
STRANGE_ID = bytes(range(16))
OTHER = 3001


class Asked:
    """One controller, its state at the start, and the requests to it."""

    def __init__(self, side: Any) -> None:
        self.side = side
        side.skip_start()
        (described,) = self.describe(2).topics
        self.epoch = described.partitions[0].leader_epoch
        (self.voter,) = described.partitions[0].current_voters
        self.directory_id = self.voter.replica_directory_id
        (listener,) = self.describe(2).nodes[0].listeners
        self.port = listener.port

    def describe(self, version: int = 1) -> Any:
        topic = describe.TopicData(topic_name=TOPIC, partitions=[describe.PartitionData(partition_index=0)])
        return self.side.ask(describe.DescribeQuorumRequest(topics=[topic]), version)

    def describe_now(self) -> Any:
        return self.masked(to_json(self.describe(), 1))

    def answer(self, message: Any, version: int) -> Any:
        return self.masked(to_json(self.side.ask(message, version), version))

    def masked(self, tree: Any) -> Any:
        """Without what differs by chance: ports, directories, cluster ids, times."""
        if isinstance(tree, dict):
            return {key: self.masked(value) for key, value in tree.items() if not key.endswith("Timestamp")}
        if isinstance(tree, list):
            return [self.masked(each) for each in tree]
        if tree == self.port:
            return "its port"
        if isinstance(tree, str):
            tree = tree.replace(self.side.cluster_id, "its cluster").replace(str(self.port), "its port")
            return tree.replace(uuids.text_of(self.directory_id), "its directory")
        return tree

    def vote(self, version: int = 2, **fields: Any) -> Any:
        top = {"cluster_id": self.side.cluster_id, "voter_id": 3000 if version else -1}
        top |= {key: fields.pop(key) for key in list(fields) if key in top}
        topic, pre_vote = fields.pop("topic", TOPIC), fields.pop("pre_vote", False)
        given: dict[str, Any] = {
            "partition_index": 0,
            "replica_epoch": self.epoch,
            "replica_id": OTHER,
            "replica_directory_id": STRANGE_ID if version else bytes(16),
            "voter_directory_id": self.directory_id if version else bytes(16),
            "last_offset_epoch": 0,
            "last_offset": 1 << 40,
            **fields,
        }
        partition = vote.PartitionData(pre_vote=pre_vote, **given)
        topics = [vote.TopicData(topic_name=topic, partitions=[partition])]
        return self.answer(vote.VoteRequest(topics=topics, **top), version)

    def begin(self, version: int = 1, **fields: Any) -> Any:
        top: dict[str, Any] = {"cluster_id": self.side.cluster_id, "voter_id": 3000 if version else -1}
        top |= {key: fields.pop(key) for key in list(fields) if key in top}
        topic, endpoints = fields.pop("topic", TOPIC), fields.pop("endpoints", [])
        given: dict[str, Any] = {"partition_index": 0, "leader_id": 3000, "leader_epoch": self.epoch, **fields}
        if version:
            given.setdefault("voter_directory_id", self.directory_id)
        topics = [begin.TopicData(topic_name=topic, partitions=[begin.PartitionData(**given)])]
        return self.answer(begin.BeginQuorumEpochRequest(topics=topics, leader_endpoints=endpoints, **top), version)

    def end(self, version: int = 1, **fields: Any) -> Any:
        cluster_id, topic = fields.pop("cluster_id", self.side.cluster_id), fields.pop("topic", TOPIC)
        given: dict[str, Any] = {"partition_index": 0, "leader_id": 3000, "leader_epoch": self.epoch, **fields}
        topics = [end.TopicData(topic_name=topic, partitions=[end.PartitionData(**given)])]
        return self.answer(end.EndQuorumEpochRequest(cluster_id=cluster_id, topics=topics), version)

    def add(self, version: int = 1, **fields: Any) -> Any:
        listeners = [add.Listener(name="CONTROLLER", host="127.0.0.1", port=1)]
        given = {
            "cluster_id": self.side.cluster_id,
            "timeout_ms": 1000,
            "voter_id": OTHER,
            "voter_directory_id": STRANGE_ID,
            "listeners": listeners,
            **fields,
        }
        return self.answer(add.AddRaftVoterRequest(**given), version)

    def update(self, **fields: Any) -> Any:
        listeners = [update.Listener(name="CONTROLLER", host="127.0.0.1", port=self.port)]
        lowest, highest = fields.pop("versions", (0, 1))
        feature = update.KRaftVersionFeature(min_supported_version=lowest, max_supported_version=highest)
        given = {
            "cluster_id": self.side.cluster_id,
            "current_leader_epoch": self.epoch,
            "voter_id": 3000,
            "voter_directory_id": self.directory_id,
            "listeners": listeners,
            **fields,
        }
        return self.answer(update.UpdateRaftVoterRequest(k_raft_version_feature=feature, **given), 0)

    def update_while_adding(self) -> Any:
        """Update a voter without its listener while the new voter's node accepts connections and is silent."""
        with (
            socket.create_server(("127.0.0.1", 0)) as silent,
            closing(BlockingConnection(self.side.connection.getpeername(), "parity", 30)) as other,
        ):
            listeners = [add.Listener(name="CONTROLLER", host="127.0.0.1", port=silent.getsockname()[1])]
            request = add.AddRaftVoterRequest(voter_id=OTHER + 9, voter_directory_id=STRANGE_ID, listeners=listeners)
            other.socket.sendall(other.encode(request, 1))
            select.select([silent, other.socket], [], [], 30)  # at kraft.version 0 it is refused at once
            answer = self.update(listeners=[])
            silent.close()
            other.receive_frame()
        return answer

    def fetch(self) -> Any:
        partition = fetch.FetchPartition(partition=0, current_leader_epoch=self.epoch, last_fetched_epoch=0)
        topics = [fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])]
        request = fetch.FetchRequest(cluster_id=self.side.cluster_id, max_wait_ms=0, max_bytes=1, topics=topics)
        answer = self.answer(request, 17)
        del answer["responses"][0]["partitions"][0]["logStartOffset"]
        return answer

    def leads_again(self) -> int:
        """Wait until it leads, and give the epoch, relative to the first one."""
        first = self.epoch

        def leads() -> bool:
            (partition,) = self.describe().topics[0].partitions
            self.epoch = partition.leader_epoch
            return bool(partition.error_code == 0 and partition.high_watermark >= 0)

        wait_until(leads, 60, "it leads again")
        return int(self.epoch - first)


def asked_of_a_leader(it: Asked) -> Iterator[tuple[str, Any]]:
    """Requests without effect."""
    before = it.epoch - 1
    for version in (0, 1, 2):
        yield f"vote v{version}, same epoch", it.vote(version)
    for version in (0, 1):
        yield f"begin v{version}, itself", it.begin(version)
        yield f"end v{version}, itself", it.end(version)
    for name, ask in (("vote", it.vote), ("begin", it.begin), ("end", it.end)):
        yield f"{name}, another cluster", ask(cluster_id="another")
        yield f"{name}, no cluster", ask(cluster_id=None)
        yield f"{name}, another topic", ask(topic="another")
        yield f"{name}, another partition", ask(partition_index=1)
    yield "vote, an epoch before", it.vote(replica_epoch=before, last_offset_epoch=0, pre_vote=True)
    yield "begin, an epoch before", it.begin(leader_epoch=before)
    yield "end, an epoch before", it.end(leader_epoch=before)
    yield "vote, nobody", it.vote(replica_id=-1)
    yield "begin, nobody", it.begin(leader_id=-1)
    yield "end, nobody", it.end(leader_id=-1)
    for voter_id, directory_id in ((OTHER, it.directory_id), (3000, STRANGE_ID), (3000, bytes(16)), (-1, STRANGE_ID)):
        name = f"meant for {voter_id}, {directory_id == it.directory_id}, {directory_id == STRANGE_ID}"
        yield f"vote {name}", it.vote(voter_id=voter_id, voter_directory_id=directory_id)
        yield f"begin {name}", it.begin(voter_id=voter_id, voter_directory_id=directory_id)
    yield "vote, no offset", it.vote(last_offset=-1)
    yield "vote, no epoch", it.vote(last_offset_epoch=-1)
    yield "vote, log of the epoch", it.vote(last_offset_epoch=it.epoch)
    yield "pre-vote, log of the epoch", it.vote(last_offset_epoch=it.epoch, pre_vote=True)
    yield "pre-vote, log of a later epoch", it.vote(last_offset_epoch=it.epoch + 1, pre_vote=True)
    yield "illegal and fenced", it.vote(replica_epoch=before, last_offset_epoch=it.epoch)
    yield "update, another cluster", it.update(cluster_id="another")
    yield "update, no cluster", it.update(cluster_id=None, voter_id=OTHER)
    yield "update, an epoch before", it.update(current_leader_epoch=before)
    yield "update, an epoch after", it.update(current_leader_epoch=it.epoch + 1)
    yield "update, nobody", it.update(voter_id=-1)
    yield "update, no directory", it.update(voter_directory_id=bytes(16))
    yield "update, no listener", it.update(listeners=[])
    yield "update, another listener", it.update(listeners=[update.Listener(name="X", host="h", port=1)])
    for versions in ((-1, 1), (0, -1), (1, 0), (2, 3)):
        yield f"update, versions {versions}", it.update(versions=versions)
    yield "update without a listener while a voter is added", it.update_while_adding()
    yield "update, a stranger", it.update(voter_id=OTHER, voter_directory_id=STRANGE_ID)
    yield "add, another cluster", it.add(cluster_id="another")
    yield "add, nobody", it.add(voter_id=-1)
    yield "add, no directory", it.add(voter_directory_id=bytes(16))
    yield "add, no listener", it.add(listeners=[])
    yield "add, another listener", it.add(listeners=[add.Listener(name="X", host="127.0.0.1", port=1)])
    yield "add, the voter there is", it.add(voter_id=3000, voter_directory_id=it.directory_id)
    yield "add, its id", it.add(voter_id=3000)
    yield "add, unreachable", it.add()
    here = [add.Listener(name="CONTROLLER", host="127.0.0.1", port=it.port)]
    for version in (0, 1):
        yield f"add v{version}, never fetched", it.add(version, voter_id=OTHER + 1 + version, listeners=here)
    yield "records", (it.side.new_records(), list(it.side.control_types))
    yield "voters", it.answer(describe.DescribeQuorumRequest(topics=[]), 2)


def asked_of_one_that_steps_down(it: Asked) -> Iterator[tuple[str, Any]]:
    """Requests that end a leadership. Each leaves a second or more before the node leads again."""
    up_to_date = {"last_offset_epoch": it.epoch}
    yield "pre-vote for a later epoch", it.vote(replica_epoch=it.epoch + 3, pre_vote=True, **up_to_date)
    yield "then it refuses to describe", it.describe_now()
    yield "and to be fetched from", it.fetch()
    yield "it leads again after a pre-vote", it.leads_again()
    up_to_date = {"last_offset_epoch": it.epoch}
    yield "vote for a later epoch", it.vote(replica_epoch=it.epoch + 3, **up_to_date)
    it.epoch += 3
    yield "again", it.vote(**up_to_date)
    yield "again, with a log that is behind", it.vote()
    yield "another candidate", it.vote(replica_id=OTHER + 1, **up_to_date)
    yield "the same one elsewhere", it.vote(replica_directory_id=bytes(range(1, 17)), **up_to_date)
    yield "a pre-vote then", it.vote(replica_id=OTHER + 1, pre_vote=True, **up_to_date)
    yield "a pre-vote with a log that is behind", it.vote(replica_id=OTHER + 1, pre_vote=True)
    yield "add then", it.add()
    yield "update then", it.update()
    yield "it leads again after its vote", it.leads_again()
    yield "vote for a log that is behind", it.vote(replica_epoch=it.epoch + 1, last_offset_epoch=0, last_offset=0)
    yield "it leads again after no vote", it.leads_again()
    yield "vote for somebody else, later", it.vote(replica_epoch=it.epoch + 1, voter_id=OTHER)
    yield "it leads again after a wrong key", it.leads_again()
    up_to_date = {"last_offset_epoch": it.epoch}
    endpoints = [begin.LeaderEndpoint(name="CONTROLLER", host="127.0.0.1", port=2)]
    it.epoch += 5
    yield "another leader, later", it.begin(leader_id=OTHER, endpoints=endpoints)
    yield "the same again", it.begin(leader_id=OTHER, endpoints=endpoints)
    yield "vote while it follows", it.vote(**up_to_date)
    yield "pre-vote while it follows", it.vote(pre_vote=True, **up_to_date)
    yield "pre-vote with a log that is behind", it.vote(pre_vote=True)
    yield "fetch while it follows", it.fetch()
    yield "add while it follows", it.add()
    yield "update while it follows", it.update()
    successor = end.ReplicaInfo(candidate_id=3000, candidate_directory_id=it.directory_id)
    yield "its leader resigns", it.end(leader_id=OTHER, preferred_candidates=[successor])
    yield "it leads next", it.leads_again()


def run(side: Any) -> dict[str, Any]:
    it = Asked(side)
    return dict([*asked_of_a_leader(it), *asked_of_one_that_steps_down(it)])


def test_voters_requests_are_answered_as_by_kafka(outcomes: Any) -> None:
    theirs, ours = outcomes
    assert {name: (theirs[name], ours[name]) for name in theirs if theirs[name] != ours[name]} == {}


def test_the_same_with_voters_that_are_configuration(on_both_with_configured_voters: Any) -> None:
    theirs, ours = on_both_with_configured_voters(run)
    assert {name: (theirs[name], ours[name]) for name in theirs if theirs[name] != ours[name]} == {}

"""The same requests about the voters of the quorum to Kafka's controller and to ours: the same answers, no records."""

from typing import Any, NamedTuple

import pytest
from mockraft.wire import uuids
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest

pytestmark = pytest.mark.real_kafka

STRANGE_ID = bytes(range(16))


class Case(NamedTuple):
    """A request; `own` is the directory id of the present voter, `cluster` its cluster id."""

    name: str
    voter_id: int
    own: bool = True
    directory_id: bytes = STRANGE_ID
    cluster_id: str | None = "own"


CASES = [
    Case("the last voter", 3000),
    Case("the last voter, of no cluster", 3000, cluster_id=None),
    Case("the last voter, of another cluster", 3000, cluster_id="another"),
    Case("the last voter, of a cluster without a name", 3000, cluster_id=""),
    Case("the last voter, another directory", 3000, own=False),
    Case("the last voter, no directory", 3000, own=False, directory_id=bytes(16)),
    Case("no directory, of another cluster", 3000, own=False, directory_id=bytes(16), cluster_id="another"),
    Case("a stranger", 3001),
    Case("node 0", 0, own=False),
    Case("no voter", -1),
]


def run(side: Any) -> dict[str, Any]:
    side.skip_start()
    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    (described,) = side.ask(DescribeQuorumRequest(topics=[topic]), 2).topics
    (voter,) = described.partitions[0].current_voters
    outcomes: dict[str, Any] = {"has a directory": voter.replica_directory_id != bytes(16)}
    for case in CASES:
        request = RemoveRaftVoterRequest(
            cluster_id=side.cluster_id if case.cluster_id == "own" else case.cluster_id,
            voter_id=case.voter_id,
            voter_directory_id=voter.replica_directory_id if case.own else case.directory_id,
        )
        answer: dict[str, Any] = to_json(side.ask(request, 0), 0)
        for there, mask in (
            (uuids.text_of(voter.replica_directory_id), "the directory"),
            (side.cluster_id, "the cluster"),
        ):
            answer["errorMessage"] = answer["errorMessage"].replace(there, mask)
        outcomes[case.name] = answer, side.new_records()
    return outcomes


@pytest.mark.parametrize("name", [each.name for each in CASES])
def test_responses_equal_kafkas(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]
    assert ours[name][1] == []


def test_voters_that_are_configuration_are_as_on_kafka(on_both_with_configured_voters: Any) -> None:
    theirs, ours = on_both_with_configured_voters(run)
    assert ours == theirs

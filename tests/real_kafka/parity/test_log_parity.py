"""Fetch, FetchSnapshot and DescribeQuorum of the metadata log: good and bad requests, answered as Kafka answers them.

Both logs begin alike: offsets 0 to 2 control records, 3 to 11 the bootstrap; how far each has come is masked.
"""

import base64
from contextlib import closing
from typing import Any

import pytest
from mockraft.wire import error_codes, record_batch
from mockraft.wire.json_form import to_json
from mockraft.wire.message import Message
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest
from mockraft.wire.messages.describe_quorum_request import PartitionData as QuorumPartition
from mockraft.wire.messages.describe_quorum_request import TopicData as QuorumTopic
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)

from tools.blocking_connection import BlockingConnection

pytestmark = pytest.mark.real_kafka

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
BOOTSTRAP_END = 12
FIRST_TWO_BATCHES = 174 + 330


def fetch(offset: int = 0, epoch: int = 1, last_epoch: int | None = None, **fields: Any) -> FetchRequest:
    """`fields` are of the partition, of the topic or of the request, whichever has them."""
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=(epoch if offset else 0) if last_epoch is None else last_epoch,
        replica_directory_id=bytes([7]) * 16,
        high_watermark=-1,
    )
    topic = FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
    asked = FetchRequest(
        replica_state=ReplicaState(replica_id=1), max_wait_ms=0, max_bytes=FIRST_TWO_BATCHES, topics=[topic]
    )
    for name, value in fields.items():
        setattr(next(each for each in (partition, topic, asked) if hasattr(each, name)), name, value)
    return asked


def consumer(version: int) -> FetchRequest:
    """As a plain reader of that version may ask: no replica, and only the fields there are."""
    asked = fetch(replica_state=ReplicaState())
    asked.topics[0].partitions[0].last_fetched_epoch = 0 if version >= 12 else -1
    return asked


PART_OF_A_BATCH = "all but a byte of the second batch"

FETCHES = {
    "from the start": (fetch(), 18),
    "one batch": (fetch(max_bytes=1), 18),
    "no bytes": (fetch(max_bytes=0), 18),
    "from within a batch": (fetch(5, max_bytes=1), 18),
    "by nobody": (fetch(replica_state=ReplicaState(replica_id=-1)), 18),
    "by the leader": (fetch(replica_state=ReplicaState(replica_id=3000)), 18),
    "by the leader in an old epoch": (fetch(epoch=0, replica_state=ReplicaState(replica_id=3000)), 18),
    "an old epoch": (fetch(epoch=0), 18),
    "a negative epoch": (fetch(epoch=-1, last_epoch=-1), 18),
    "a later epoch": (fetch(epoch=2), 18),
    "a later last epoch": (fetch(last_epoch=2), 18),
    "a negative last epoch": (fetch(last_epoch=-1), 18),
    "a negative offset": (fetch(-1, last_epoch=0), 18),
    "a negative wait": (fetch(max_wait_ms=-1), 18),
    "an offset far past the end": (fetch(1 << 40), 18),
    "an offset past the end of epoch 0": (fetch(3, last_epoch=0), 18),
    "another cluster": (fetch(cluster_id="other"), 18),
    "another cluster and topic": (fetch(cluster_id="other", topic_id=bytes(16)), 18),
    "an empty cluster id": (fetch(cluster_id=""), 18),
    "another topic": (fetch(topic_id=bytes(16)), 18),
    "another partition": (fetch(partition=1), 18),
    "no topic": (fetch(topics=[]), 18),
    "no partition": (fetch(partitions=[]), 18),
    "two partitions": (fetch(partitions=fetch().topics[0].partitions * 2), 18),
    "two topics": (fetch(topics=fetch().topics * 2), 18),
    "a bad wait in an old epoch": (fetch(epoch=0, max_wait_ms=-1), 18),
    "a session": (fetch(session_id=5, session_epoch=1), 18),
    **{f"v{version}": (consumer(version), version) for version in range(4, 19)},
    **{
        f"v{version} in an old epoch": (fetch(epoch=0, replica_state=ReplicaState()), version)
        for version in range(13, 19)
    },
}


def snapshot(name: str = TOPIC, index: int = 0, epoch: int = 1, **fields: Any) -> FetchSnapshotRequest:
    partition = PartitionSnapshot(
        partition=index, current_leader_epoch=epoch, snapshot_id=SnapshotId(end_offset=5, epoch=1)
    )
    asked = FetchSnapshotRequest(topics=[TopicSnapshot(name=name, partitions=[partition])], replica_id=1)
    for field, value in fields.items():
        setattr(partition if hasattr(partition, field) else asked, field, value)
    return asked


REFUSED_SNAPSHOTS = {
    "another cluster": (snapshot(cluster_id="other"), 1),
    "another cluster and no topic": (snapshot(cluster_id="other", topics=[]), 0),
}
SNAPSHOTS_REFUSED_IN_THE_PARTITION = {
    "one that is not there": (snapshot(), error_codes.SNAPSHOT_NOT_FOUND),
    "that of formatting": (snapshot(snapshot_id=SnapshotId(end_offset=0, epoch=0)), error_codes.SNAPSHOT_NOT_FOUND),
    "an old epoch": (snapshot(epoch=0), error_codes.FENCED_LEADER_EPOCH),
    "a later epoch": (snapshot(epoch=2), error_codes.UNKNOWN_LEADER_EPOCH),
    "another topic": (snapshot("other"), error_codes.UNKNOWN_TOPIC_OR_PARTITION),
    "another partition": (snapshot(index=1), error_codes.UNKNOWN_TOPIC_OR_PARTITION),
}


def quorum(name: str = TOPIC, *indexes: int) -> DescribeQuorumRequest:
    partitions = [QuorumPartition(partition_index=index) for index in indexes or (0,)]
    return DescribeQuorumRequest(topics=[QuorumTopic(topic_name=name, partitions=partitions)])


QUORUMS = {
    **{f"v{version}": (quorum(), version) for version in range(3)},
    "another topic": (quorum("other"), 2),
    "another topic, v0": (quorum("other"), 0),
    "another partition": (quorum(TOPIC, 1), 2),
    "two partitions": (quorum(TOPIC, 0, 1), 2),
    "no topic": (DescribeQuorumRequest(), 2),
    "no partition": (DescribeQuorumRequest(topics=[QuorumTopic(topic_name=TOPIC)]), 1),
    "two topics": (DescribeQuorumRequest(topics=quorum().topics * 2), 2),
}


def answered(side: Any, message: Any, version: int) -> Any:
    """The answer on a new connection, with masks; None when the connection was closed."""
    with closing(BlockingConnection(side.connection.getpeername()[:2], "parity", 30)) as connection:
        try:
            response = connection.exchange(message, version)
        except ConnectionError:
            return None
    return masked(to_json(response, version), side.connection.getpeername()[1])


def masked(tree: Any, port: int) -> Any:
    """Without what is each side's own: port, directory ids, times, how far the log has come, the records' bytes."""
    if isinstance(tree, list):
        return [masked(each, port) for each in tree]
    if not isinstance(tree, dict):
        return tree
    own: dict[str, Any] = {}
    for name, value in tree.items():
        if name == "port":
            own[name] = "its port" if value == port else value
        elif name in ("highWatermark", "endOffset", "logEndOffset") and value >= BOOTSTRAP_END:
            own[name] = "its end"
        elif name in ("lastFetchTimestamp", "lastCaughtUpTimestamp"):
            own[name] = value > 1_600_000_000_000 or value
        elif name == "replicaDirectoryId":
            own[name] = len(value)
        else:
            own[name] = masked(value, port)
    return own


def batches(side: Any) -> list[tuple[int, int, int, bool]]:
    """The contents of the first fetch, batch by batch."""
    partition = side.ask(fetch(), 18).responses[0].partitions[0]
    return [
        (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.is_control)
        for batch in record_batch.read_batches(partition.records)
    ]


def without_records(answer: Any) -> Any:
    """The answer with the length of its records alone."""
    for topic in (answer or {}).get("responses", ()):
        for partition in topic["partitions"]:
            partition["records"] = len(base64.b64decode(partition["records"]))
    return answer


EQUAL: dict[str, tuple[Message, int]] = {
    **{f"fetch {name}": case for name, case in FETCHES.items()},
    **{f"snapshot {name}": case for name, case in REFUSED_SNAPSHOTS.items()},
    **{f"quorum {name}": case for name, case in QUORUMS.items()},
}


def run(side: Any) -> dict[str, Any]:
    cases = dict(EQUAL)
    for name, (message, _) in SNAPSHOTS_REFUSED_IN_THE_PARTITION.items():
        cases[f"snapshot {name}"] = (message, 1)
    cases[PART_OF_A_BATCH] = (fetch(max_bytes=FIRST_TWO_BATCHES - 1), 18)
    answers = {name: without_records(answered(side, *case)) for name, case in cases.items()}
    return {"batches": batches(side), **answers}


@pytest.mark.parametrize("name", ["batches", *EQUAL])
def test_the_same_is_answered(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]


def test_kafka_cuts_a_batch_where_the_bytes_end_and_ours_leaves_it_out(outcomes: Any) -> None:
    theirs, ours = (side[PART_OF_A_BATCH]["responses"][0]["partitions"][0]["records"] for side in outcomes)
    assert (theirs, ours) == (FIRST_TWO_BATCHES - 1, FIRST_TWO_BATCHES - 330)


@pytest.mark.parametrize("name", SNAPSHOTS_REFUSED_IN_THE_PARTITION)
def test_snapshot_fields_follow_kafkas_intention(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    key = f"snapshot {name}"
    assert (theirs[key]["errorCode"], theirs[key]["topics"]) == (error_codes.UNKNOWN_SERVER_ERROR, [])
    assert ours[key]["topics"][0]["partitions"][0]["errorCode"] == SNAPSHOTS_REFUSED_IN_THE_PARTITION[name][1]

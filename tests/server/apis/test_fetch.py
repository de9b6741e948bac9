"""Fetch of the metadata log, alone and in a quorum of two, with FetchSnapshot and DescribeQuorum there."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from mockraft.server.apis import fetch
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.controller.quorum.voter_set import ReplicaKey
from mockraft.server.controller.result import ControllerResult
from mockraft.server.raft.outgoing import NodeEndpoint
from mockraft.wire import error_codes, record_batch, uuids
from mockraft.wire.messages import describe_quorum_request
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.topic_names import CLUSTER_METADATA_ID

from ...fetches import fetch_request, snapshot_request
from ..conftest import controller_in_memory

DIRECTORY_ID = bytes(15) + b"\x09"
NOOP = RecordAt(NoOpRecord(), 0)


request = partial(
    fetch_request, replica_state=ReplicaState(replica_id=1, replica_epoch=-1), replica_directory_id=DIRECTORY_ID
)
"""A broker's fetch as a 4.3.1 broker sends it."""


def partition_of(response: Any) -> Any:
    (topic,) = response.responses
    assert topic.topic_id == CLUSTER_METADATA_ID
    (partition,) = topic.partitions
    return partition


def append(controller: Controller, now_ms: int) -> None:
    controller.commit(ControllerResult([NOOP], None), now_ms)


def test_a_new_follower_learns_the_leader_and_its_epoch(rig: Any, controller: Controller) -> None:
    response = rig.ask(rig.connect(), request(epoch=0, high_watermark=-1), 18)
    partition = partition_of(response)
    assert (response.error_code, partition.error_code) == (0, error_codes.FENCED_LEADER_EPOCH)
    assert (partition.high_watermark, partition.log_start_offset, partition.records) == (-1, 0, b"")
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (3000, 1)
    (node,) = response.node_endpoints
    assert (node.node_id, node.host, node.port) == (3000, "127.0.0.1", controller.config.port)


def test_a_follower_gets_the_whole_log_as_the_leader_wrote_it(rig: Any, controller: Controller) -> None:
    response = rig.ask(rig.connect(), request(), 18)
    partition = partition_of(response)
    assert partition.records == controller.log.read(0, 1 << 30)
    assert partition.high_watermark == controller.log.end_offset
    assert (partition.last_stable_offset, partition.log_start_offset, partition.aborted_transactions) == (-1, 0, [])
    assert partition.current_leader.leader_id == 3000
    assert len(response.node_endpoints) == 1


def test_whole_batches_are_sent_and_at_least_one(rig: Any, controller: Controller) -> None:
    connection = rig.connect()
    sizes = [h.end - h.position for h in record_batch.read_headers(controller.log.read(0, 1 << 30))]
    for max_bytes, batches in ((0, 1), (1, 1), (sizes[0] + sizes[1] - 1, 1), (sizes[0] + sizes[1], 2)):
        records = partition_of(rig.ask(connection, request(max_bytes=max_bytes), 18)).records
        assert len(list(record_batch.read_batches(records))) == batches


def test_a_fetch_at_the_end_waits_for_the_next_append(rig: Any, controller: Controller) -> None:
    connection, end_offset = rig.connect(), controller.log.end_offset
    assert rig.send(connection, rig.frame(request(end_offset, high_watermark=end_offset), 18)) == []
    append(controller, rig.now_ms)
    rig.tick(rig.now_ms + 1)
    (batch,) = record_batch.read_batches(sent_records(rig))
    assert batch.base_offset == end_offset


def sent_records(rig: Any) -> bytes:
    from mockraft.wire.messages.fetch_response import FetchResponse

    (data,) = rig.sends()
    return bytes(partition_of(FetchResponse.read(data[9:], 18)).records)


def test_a_fetch_that_waited_in_vain_is_answered_empty_after_max_wait(
    make_rig: Callable[..., Any], make_controller: Callable[..., Controller]
) -> None:
    controller = make_controller(ControllerConfig(metadata_max_idle_interval_ms=0))
    rig = make_rig(fetch.API, controller=controller)
    start_ms = rig.now_ms
    end_offset = controller.log.end_offset
    rig.send(rig.connect(), rig.frame(request(end_offset, high_watermark=end_offset), 18))
    assert rig.tick(start_ms + 499) == []
    rig.tick(start_ms + 500)
    assert sent_records(rig) == b""


def test_a_fetch_that_may_not_wait_is_answered_at_once(rig: Any, controller: Controller) -> None:
    end_offset = controller.log.end_offset
    partition = partition_of(rig.ask(rig.connect(), request(end_offset, max_wait_ms=0, high_watermark=end_offset), 18))
    assert (partition.records, partition.high_watermark) == (b"", end_offset)


@pytest.mark.parametrize(("known", "answered"), [(-1, True), (11, True), (12, False), (2**63 - 1, False)])
def test_answers_at_once_when_the_high_watermark_is_unknown(
    rig: Any, controller: Controller, known: int, answered: bool
) -> None:
    controller.commit(ControllerResult([], None), rig.now_ms)
    end_offset = controller.log.end_offset
    known = known if known in (-1, 2**63 - 1) else known - 12 + end_offset
    rig.send(rig.connect(), rig.frame(request(end_offset, high_watermark=known), 18))
    assert bool(rig.sends()) is answered


def test_before_version_18_the_high_watermark_is_not_waited_for(rig: Any, controller: Controller) -> None:
    rig.send(rig.connect(), rig.frame(request(controller.log.end_offset), 17))
    assert rig.sends() == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"max_wait_ms": -1}, error_codes.INVALID_REQUEST),
        ({"offset": -1}, error_codes.INVALID_REQUEST),
        ({"last_fetched_epoch": -1}, error_codes.INVALID_REQUEST),
        ({"last_fetched_epoch": 2}, error_codes.INVALID_REQUEST),
        ({"epoch": 0}, error_codes.FENCED_LEADER_EPOCH),
        ({"epoch": 2}, error_codes.UNKNOWN_LEADER_EPOCH),
        ({"replica_state": ReplicaState(replica_id=3000)}, error_codes.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_bad_fetch_is_refused_at_once_in_the_partition(rig: Any, fields: dict[str, Any], error: int) -> None:
    response = rig.ask(rig.connect(), request(**fields), 18)
    partition = partition_of(response)
    assert (response.error_code, partition.error_code) == (0, error)
    assert (partition.high_watermark, partition.records) == (-1, b"")
    assert partition.current_leader.leader_epoch == 1


def test_an_observer_that_is_refused_again_and_again_is_logged_once_a_minute_for_each_cause(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mockraft.raft")
    connection, logged = rig.connect(), []
    for advanced_ms, epoch, times in [
        (0, 2, 9),
        (0, 2, 1),
        (59_999, 2, 10),
        (0, 0, 9),
        (1, 2, 9),
        (0, 2, 1),
        (0, 0, 1),
    ]:
        rig.now_ms += advanced_ms
        for _ in range(times):
            rig.ask(connection, request(epoch=epoch), 18)
        logged.append(len(caplog.records))
    assert logged == [0, 1, 1, 1, 1, 2, 3]
    assert "is refused again and again: UNKNOWN_LEADER_EPOCH: Fetch at offset" in caplog.messages[0]


@pytest.mark.parametrize("fields", [{"cluster_id": ""}, {"cluster_id": "other"}, {"cluster_id": "other", "topics": []}])
def test_another_cluster_is_refused_before_its_topics_are_read(rig: Any, fields: Any) -> None:
    response = rig.ask(rig.connect(), request(**fields), 18)
    assert (response.error_code, response.responses) == (error_codes.INCONSISTENT_CLUSTER_ID, [])
    own = rig.ask(rig.connect(), request(cluster_id=rig.controller.config.cluster_id), 18)
    assert partition_of(own).error_code == 0


def test_a_fetch_of_another_cluster_is_logged_once_with_both_ids_and_a_remedy(
    rig: Any, controller: Controller, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker of another cluster fetches 40 times a second and never gets as far as its registration."""
    for cluster_id in ("other", "other", "x\nforged line"):
        rig.ask(rig.connect(), request(cluster_id=cluster_id), 18)
    warned, forged = caplog.messages
    assert warned == (
        f"replica 1 may not fetch the metadata log: 'INCONSISTENT_CLUSTER_ID: Expected cluster ID "
        f"{controller.config.cluster_id}, but got cluster ID other'; format its directories with this cluster id, or "
        "serve with --cluster-id"
    )
    assert "\n" not in forged


METADATA_PARTITION = FetchPartition(partition=0, last_fetched_epoch=0, current_leader_epoch=1)


@pytest.mark.parametrize(
    "topics",
    [
        [],
        [FetchTopic(topic_id=bytes(16), partitions=[METADATA_PARTITION])],
        [FetchTopic(topic_id=CLUSTER_METADATA_ID, partitions=[])],
        [FetchTopic(topic_id=CLUSTER_METADATA_ID, partitions=[METADATA_PARTITION, METADATA_PARTITION])],
        [FetchTopic(topic_id=CLUSTER_METADATA_ID, partitions=[FetchPartition(partition=1)])],
        [FetchTopic(topic_id=CLUSTER_METADATA_ID, partitions=[METADATA_PARTITION])] * 2,
    ],
)
def test_anything_but_the_metadata_log_is_refused(rig: Any, topics: list[FetchTopic]) -> None:
    response = rig.ask(rig.connect(), request(topics=topics), 18)
    assert (response.error_code, response.responses) == (error_codes.INVALID_REQUEST, [])


@pytest.mark.parametrize("version", range(4, 13))
def test_a_version_without_topic_ids_is_refused_as_by_kafka(rig: Any, version: int) -> None:
    partition = FetchPartition(partition=0)
    topics = [FetchTopic(topic="__cluster_metadata", partitions=[partition])]
    response = rig.ask(rig.connect(), FetchRequest(replica_id=1, topics=topics), version)
    assert response.responses == []
    assert response.error_code == (error_codes.INVALID_REQUEST if version >= 7 else 0)


@pytest.mark.parametrize("version", range(13, 19))
def test_every_version_with_topic_ids_is_served(rig: Any, controller: Controller, version: int) -> None:
    asked = request()
    if version < 15:
        asked.replica_id, asked.replica_state = 1, ReplicaState()
    response = rig.ask(rig.connect(), asked, version)
    assert partition_of(response).records == controller.log.read(0, 1 << 30)
    assert len(response.node_endpoints) == (1 if version >= 17 else 0)
    directory_id = DIRECTORY_ID if version >= 17 else bytes(16)
    assert list(controller.raft.observers(rig.now_ms)) == [ReplicaKey(1, directory_id)]


def test_a_longer_follower_log_gets_the_diverging_epoch(
    rig: Any, controller: Controller, caplog: pytest.LogCaptureFixture
) -> None:
    end_offset = controller.log.end_offset
    partition = partition_of(rig.ask(rig.connect(), request(end_offset + 5), 18))
    diverging = partition.diverging_epoch
    assert (partition.error_code, diverging.epoch, diverging.end_offset) == (0, 1, end_offset)
    assert partition.records == b""
    assert f"replica 1 has the log up to {end_offset + 5}, epoch 1; this log ends at {end_offset}" in caplog.text
    assert controller.raft.observers(rig.now_ms) == {}
    for _ in range(3):
        rig.ask(rig.connect(), request(end_offset + 5), 18)
    assert len(caplog.records) == 1, "said once, however often it is asked"


def test_a_follower_without_a_log_is_sent_to_the_snapshot(rig: Any, controller: Controller) -> None:
    snapshot_id = controller.log.write_snapshot([], rig.now_ms)
    assert snapshot_id is not None
    partition = partition_of(rig.ask(rig.connect(), request(), 18))
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == snapshot_id
    assert (partition.error_code, partition.records) == (0, b"")


def test_a_broker_is_recorded_as_an_observer_and_a_plain_reader_is_not(rig: Any, controller: Controller) -> None:
    connection, end_offset = rig.connect(), controller.log.end_offset
    rig.ask(connection, request(replica_state=ReplicaState(replica_id=-1)), 18)
    assert controller.raft.observers(rig.now_ms) == {}
    rig.ask(connection, request(max_wait_ms=0), 18)
    rig.ask(connection, request(end_offset, max_wait_ms=0), 18)
    (state,) = controller.raft.observers(rig.now_ms).values()
    assert state.log_end_offset == end_offset
    assert state.last_caught_up_timestamp_ms == rig.now_ms


def test_an_observer_has_what_lies_before_the_batch_that_it_fetched(rig: Any, controller: Controller) -> None:
    base_offset = controller.log.end_offset
    controller.commit(ControllerResult([NOOP] * 3, None), rig.now_ms)
    rig.ask(rig.connect(), request(base_offset + 2, max_wait_ms=0), 18)
    (state,) = controller.raft.observers(rig.now_ms).values()
    assert state.log_end_offset == base_offset


def test_a_fetch_of_another_leaders_batch_after_a_restart_still_diverges(rig: Any, controller: Controller) -> None:
    partition = partition_of(rig.ask(rig.connect(), request(5, last_fetched_epoch=0), 18))
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (0, 0)


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_reuses_a_response_for_followers_until_the_log_grows(rig: Any, controller: Controller, version: int) -> None:
    one, other = rig.connect(), rig.connect()
    first = rig.ask(one, request(), version)
    assert rig.ask(other, request(), version) == first
    append(controller, rig.now_ms)
    grown = partition_of(rig.ask(other, request(), version))
    assert grown.high_watermark == partition_of(first).high_watermark + 1
    assert list(record_batch.read_batches(grown.records))[-1].base_offset == partition_of(first).high_watermark


TOPIC = "__cluster_metadata"
NOT_LEADER = error_codes.NOT_LEADER_OR_FOLLOWER
DIRECTORIES = {node_id: bytes([node_id]) * 16 for node_id in (1, 2)}
VOTERS = ",".join(f"{n}@node{n}:{9000 + n}:{uuids.text_of(d)}" for n, d in DIRECTORIES.items())


@pytest.fixture
def quorum(make_rig: Any) -> Any:
    """Node 1 of two, behind its listener."""
    config = ControllerConfig(node_id=1, host="node1", port=9001, initial_controllers=VOTERS)
    rig = make_rig(*APIS.values(), controller=controller_in_memory(config, 1000))
    rig.now_ms = 1000
    return rig


@pytest.fixture
def leader(quorum: Any) -> Any:
    raft = quorum.controller.raft
    raft.elect(quorum.now_ms)
    raft.record_vote(2, True, quorum.now_ms)
    assert raft.is_leader
    return quorum


def fetched(rig: Any, *, replica_id: int = -1, offset: int = 0, **fields: Any) -> FetchRequest:
    state, directory_id = ReplicaState(replica_id=replica_id), DIRECTORIES.get(replica_id, bytes(16))
    epoch = rig.controller.raft.epoch
    return fetch_request(offset, epoch, replica_state=state, replica_directory_id=directory_id, **fields)


def answered_partition(response: Any) -> Any:
    return response.responses[0].partitions[0]


def test_a_node_that_is_not_leader_returns_the_leader(quorum: Any) -> None:
    quorum.controller.raft.to_follower(5, NodeEndpoint(2, "node2", 9002), quorum.now_ms)
    response = quorum.ask(quorum.connect(), fetched(quorum), 17)
    found = answered_partition(response)
    assert (found.error_code, found.current_leader.leader_id, found.current_leader.leader_epoch) == (NOT_LEADER, 2, 5)
    assert [(e.node_id, e.host, e.port) for e in response.node_endpoints] == [(2, "node2", 9002)]
    request = snapshot_request(SnapshotId(0, 0), current_leader_epoch=5)
    found = quorum.ask(quorum.connect(), request, 1).topics[0].partitions[0]
    assert (found.error_code, found.current_leader.leader_id) == (NOT_LEADER, 2)


def test_fetch_is_refused_before_an_election(quorum: Any) -> None:
    found = answered_partition(quorum.ask(quorum.connect(), fetched(quorum), 17))
    assert (found.error_code, found.current_leader.leader_id) == (NOT_LEADER, -1)


def test_leader_without_a_majority_has_no_high_watermark(leader: Any) -> None:
    found = answered_partition(leader.ask(leader.connect(), fetched(leader), 18))
    assert (len(found.records) > 0, found.high_watermark) == (True, -1)


def test_high_watermark_is_the_majoritys_offset(leader: Any) -> None:
    end_offset = leader.controller.log.end_offset
    found = answered_partition(leader.ask(leader.connect(), fetched(leader, replica_id=2, offset=end_offset), 18))
    assert found.high_watermark == end_offset, "told to whom it is owed"
    assert leader.controller.log.end_offset > end_offset, "and the controller is active"
    assert leader.controller.log.high_watermark == end_offset


def test_a_fetch_waits_for_the_commit(leader: Any) -> None:
    log = leader.controller.log
    leader.ask(leader.connect(), fetched(leader, replica_id=2, offset=log.end_offset), 18)
    end_offset = log.end_offset
    assert log.high_watermark < end_offset
    reader, voter = leader.connect(), leader.connect()
    waiting = fetched(leader, offset=end_offset, high_watermark=log.high_watermark)
    assert leader.send(reader, leader.frame(waiting, 18)) == []
    leader.send(voter, leader.frame(fetched(leader, replica_id=2, offset=end_offset), 18))
    assert len(leader.sends(reader)) == 1
    assert log.high_watermark == end_offset


def test_a_parked_fetch_is_answered_when_the_leadership_is_lost(leader: Any) -> None:
    log = leader.controller.log
    connection = leader.connect()
    assert leader.send(connection, leader.frame(fetched(leader, offset=log.end_offset), 18)) == []
    leader.controller.raft.resign(leader.now_ms)
    leader.tick(leader.now_ms + 1)
    (exchange,) = leader.node.journal.exchanges()
    assert answered_partition(exchange.response).error_code == NOT_LEADER


def described(rig: Any) -> Any:
    topic = describe_quorum_request.TopicData(
        topic_name=TOPIC, partitions=[describe_quorum_request.PartitionData(partition_index=0)]
    )
    return rig.ask(rig.connect(), describe_quorum_request.DescribeQuorumRequest(topics=[topic]), 2)


def test_a_quorum_is_described_by_its_leader_alone(quorum: Any) -> None:
    found = described(quorum).topics[0].partitions[0]
    assert (found.error_code, found.error_message) == (NOT_LEADER, error_codes.message(NOT_LEADER))


def test_the_voters_are_described_as_far_as_they_are(leader: Any) -> None:
    end_offset = leader.controller.log.end_offset
    response = described(leader)
    found = response.topics[0].partitions[0]
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 1, -1)
    assert [(v.replica_id, v.replica_directory_id, v.log_end_offset) for v in found.current_voters] == [
        (1, DIRECTORIES[1], end_offset),
        (2, DIRECTORIES[2], -1),
    ]
    assert [(n.node_id, n.listeners[0].port) for n in response.nodes] == [(1, 9001), (2, 9002)]

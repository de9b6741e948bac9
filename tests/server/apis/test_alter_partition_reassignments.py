"""AlterPartitionReassignments and ListPartitionReassignments: every rule, and the records."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from mockraft.server.controller.image import Partition
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from mockraft.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ...conftest import Cluster
from ...rows import each_row
from .conftest import propose

Move = Callable[..., PartitionChangeRecord]


def request(
    targets: dict[str, Mapping[int, list[int] | None]], fast: bool = False, timeout_ms: int = 1000
) -> AlterPartitionReassignmentsRequest:
    """Targets by topic and partition; `fast` holds the replication factor fast."""
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=not fast,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[ReassignablePartition(partition_index=i, replicas=ids) for i, ids in partitions.items()],
            )
            for topic, partitions in targets.items()
        ],
    )


def said(response: AlterPartitionReassignmentsResponse) -> dict[str, list[tuple[int, int, str | None]]]:
    return {
        topic.name: [(each.partition_index, each.error_code, each.error_message) for each in topic.partitions]
        for topic in response.responses
    }


@pytest.fixture
def five(cluster: Cluster) -> Cluster:
    cluster.start(1, 2, 3, 4, 5)
    return cluster


@pytest.fixture
def move(five: Cluster) -> Move:
    """`move(target)`: reassign t-0, which must be accepted; returns the record."""

    def run(target: list[int] | None, fast: bool = False) -> PartitionChangeRecord:
        assert said(five.ask(request({"t": {0: target}}, fast))) == {"t": [(0, 0, None)]}
        (written,) = five.written()
        assert isinstance(written.record, PartitionChangeRecord)
        return written.record

    return run


def assignment(partition: Partition) -> tuple[tuple[int, ...], ...]:
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def test_pure_removal_of_replicas_completes_at_once_and_bumps_the_leader_epoch(five: Cluster, move: Move) -> None:
    topic_id = five.create_topic("t", [1, 2, 3])
    record = move([1, 3])
    assert (record.replicas, record.isr, record.leader) == ([1, 3], [1, 3], 1)
    assert (record.adding_replicas, record.removing_replicas) == (None, None)
    assert five.partition(topic_id).leader_epoch == 1
    assert move([3]).leader == 3


def test_replicas_are_not_removed_while_the_rest_is_out_of_sync(five: Cluster, move: Move) -> None:
    five.topic_id = topic_id = five.create_topic("t", [1, 2, 3], isr=[1, 2])
    assert assignment_of(move([1, 3])) == ([1, 3, 2], None, [2])
    assert propose(five, [1, 3, 2]).error_code == 0
    assert assignment(five.partition(topic_id)) == ((1, 3), (), ())


def test_a_replica_both_added_and_removed_is_stuck_until_one_of_the_lists_is_replaced(five: Cluster) -> None:
    trap = ((2, 1, 3), (3,), (3,))
    ends = {(1, 4): ((1, 4, 2, 3), (4,), (2, 3)), (1, 3): ((1, 3, 2), (3,), (2,)), None: ((2, 1), (), ())}
    for number, (target, after) in enumerate(ends.items()):
        name = f"t{number}"
        topic_id = five.create_topic(name, [1, 2, 3], isr=[1, 2], adding_replicas=[3])
        for again in ([2, 1], [2, 1]):
            five.ask(request({name: {0: again}}))
            assert assignment(five.partition(topic_id)) == trap
        five.ask(request({name: {0: None if target is None else list(target)}}))
        assert assignment(five.partition(topic_id)) == after


def assignment_of(record: PartitionChangeRecord) -> tuple[Sequence[int] | None, ...]:
    return record.replicas, record.adding_replicas, record.removing_replicas


def test_refuses_a_bad_target_and_moves_the_others(five: Cluster) -> None:
    five.create_topic("t", [1, 2], [1, 2])
    response = five.ask(request({"t": {0: [], 1: [2, 1]}}))
    message = "The manual partition assignment includes an empty replica list."
    assert said(response) == {"t": [(0, error_codes.INVALID_REPLICA_ASSIGNMENT, message), (1, 0, None)]}
    assert [record.partition_id for record, _ in five.written()] == [1]


def test_unknown_topic_or_partition_is_refused(five: Cluster) -> None:
    five.create_topic("t", [1, 2])
    code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert said(five.ask(request({"no-such": {0: [1]}, "t": {7: None}}))) == {
        "no-such": [(0, code, "Unable to find a topic named no-such.")],
        "t": [(7, code, "Unable to find partition t:7.")],
    }


def test_a_factor_held_fast_is_that_of_the_target_on_the_way(five: Cluster, move: Move) -> None:
    five.create_topic("t", [1, 2])
    code = error_codes.INVALID_REPLICATION_FACTOR
    response = five.ask(request({"t": {0: [1]}}, fast=True))
    assert said(response) == {"t": [(0, code, "The replication factor is changed from 2 to 1")]}
    assert response.allow_replication_factor_change is False
    move([3, 4, 5])
    response = five.ask(request({"t": {0: [1, 2]}}, fast=True))
    assert said(response) == {"t": [(0, code, "The replication factor is changed from 3 to 2")]}
    assert five.ask(request({"t": {0: [1, 2]}}), 0).responses[0].partitions[0].error_code == 0


def test_one_on_its_way_is_sent_elsewhere_and_called_back(five: Cluster, move: Move) -> None:
    topic_id = five.create_topic("t", [1, 2])
    move([1, 3])
    assert assignment_of(move([1, 4])) == ([1, 4, 2, 3], [4], [2, 3])
    back = move(None)
    # 3 is no longer said to be added, so it stays; a replica left, so the leader is told again.
    assert assignment_of(back) == ([1, 2, 3], [], [])
    assert (back.leader, back.isr) == (1, None)
    assert assignment(five.partition(topic_id)) == ((1, 2, 3), (), ())


def test_a_target_of_all_that_is_there_leaves_the_way_as_it_is(five: Cluster, move: Move) -> None:
    topic_id = five.create_topic("t", [1, 2])
    move([3, 1])
    assert assignment_of(move([1, 2, 3])) == ([1, 2, 3], None, None)
    assert assignment(five.partition(topic_id)) == ((1, 2, 3), (3,), (2,))


def test_reassignment_with_lost_old_replicas_is_cancelled_only_uncleanly(five: Cluster, move: Move) -> None:
    topic_id = five.create_topic("t", [1, 2], isr=[3], leader=3, replicas=[3, 4, 1, 2], adding_replicas=[3, 4])
    message = "Unable to revert partition assignment for t:0 because it would require an unclean leader election."
    refused = [(0, error_codes.INVALID_REPLICA_ASSIGNMENT, message)]
    assert said(five.ask(request({"t": {0: None}}))) == {"t": refused}
    five.set_config("t", "unclean.leader.election.enable", "true")
    record = move(None)
    assert (record.replicas, record.isr, record.leader) == ([1, 2], [1], 1)
    assert assignment(five.partition(topic_id)) == ((1, 2), (), ())


def test_one_without_old_replicas_cannot_be_cancelled(five: Cluster) -> None:
    five.create_topic("t", [3, 4], adding_replicas=[3, 4])
    message = "Invalid replica assignment: addingReplicas contains all replicas."
    refused = [(0, error_codes.INVALID_REPLICA_ASSIGNMENT, message)]
    assert said(five.ask(request({"t": {0: None}}))) == {"t": refused}


def test_a_topic_that_may_lose_records_still_moves_without_loss(five: Cluster, move: Move) -> None:
    topic_id = five.create_topic("t", [1, 2], isr=[], leader=-1)
    five.set_config("t", "unclean.leader.election.enable", "true")
    assert move([2, 1]).leader == -2
    assert five.partition(topic_id).leader == -1


def test_empty_request_is_answered_at_once(five: Cluster) -> None:
    response = five.ask(request({}, fast=True, timeout_ms=0))
    assert (response.error_code, response.error_message, response.responses) == (0, "", [])
    assert response.allow_replication_factor_change is True


def test_changes_too_large_for_one_batch_are_refused_per_partition(five: Cluster) -> None:
    five.create_topic("t", *[[1, 2]] * 10_002)
    response = five.ask(request({"t": {0: [1, 2]} | {index: [2, 1] for index in range(1, 10_002)}}))
    assert said(response)["t"][-2:] == [(10_000, 0, None), (10_001, error_codes.UNKNOWN_SERVER_ERROR, None)]
    assert len(five.written()) == 10_000


@each_row(("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2)])
def test_changes_are_written_as_the_level_can_read_them(new_cluster: type[Cluster], level: int, version: int) -> None:
    cluster = new_cluster(metadata_version=level)
    cluster.start(1, 2)
    cluster.create_topic("t", [1])
    cluster.ask(request({"t": {0: [2]}}))
    ((record, written),) = cluster.written()
    assert written == version
    assert (record.directories is not None) == (level >= 17)


@pytest.fixture
def reassigning(cluster: Cluster) -> Cluster:
    """A cluster with topics `moved` (two partitions, the second on its way from broker 1 to 3) and `still`."""
    cluster.start(1, 2, 3)
    topic_id = cluster.create_topic("moved", [1, 2], [1, 2])
    cluster.create_topic("still", [1, 2])
    change = PartitionChangeRecord(
        partition_id=1, topic_id=topic_id, replicas=[2, 3, 1], adding_replicas=[3], removing_replicas=[1]
    )
    cluster.write(RecordAt(change, 0))
    return cluster


def listed(cluster: Cluster, *topics: tuple[str, list[int]], everything: bool = False) -> dict[str, dict[int, Any]]:
    asked = [ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in topics]
    request = ListPartitionReassignmentsRequest(topics=None if everything else asked)
    response = cluster.ask(request)
    assert (response.error_code, response.error_message) == (0, None)
    return {
        topic.name: {
            each.partition_index: (each.replicas, each.adding_replicas, each.removing_replicas)
            for each in topic.partitions
        }
        for topic in response.topics
    }


def test_only_requested_partitions_are_listed(reassigning: Any) -> None:
    assert listed(reassigning, ("moved", [0, 1])) == {"moved": {1: ([2, 3, 1], [3], [1])}}
    assert listed(reassigning, ("moved", [0])) == {}
    assert listed(reassigning) == {}


def test_missing_partitions_are_left_out(reassigning: Any) -> None:
    assert listed(reassigning, ("unknown", [0]), ("moved", [7]), ("still", [0])) == {}

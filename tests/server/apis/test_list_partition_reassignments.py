from typing import Any

import pytest
from mockraft.server.apis.list_partition_reassignments import API
from mockraft.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ...conftest import Cluster


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


def test_lists_every_partition_that_is_being_moved(reassigning: Any) -> None:
    assert listed(reassigning, everything=True) == {"moved": {1: ([2, 3, 1], [3], [1])}}


def test_only_requested_partitions_are_listed(reassigning: Any) -> None:
    assert listed(reassigning, ("moved", [0, 1])) == {"moved": {1: ([2, 3, 1], [3], [1])}}
    assert listed(reassigning, ("moved", [0])) == {}
    assert listed(reassigning) == {}


def test_missing_partitions_are_left_out(reassigning: Any) -> None:
    assert listed(reassigning, ("unknown", [0]), ("moved", [7]), ("still", [0])) == {}


def test_error_response_names_the_requested_partitions() -> None:
    topics = [ListPartitionReassignmentsTopics(name="moved", partition_indexes=[1, 0])]
    response = API.error(ListPartitionReassignmentsRequest(topics=topics), 41, "not the controller")
    assert (response.error_code, response.error_message) == (41, "not the controller")
    assert [[each.partition_index for each in topic.partitions] for topic in response.topics] == [[1, 0]]
    assert API.error(ListPartitionReassignmentsRequest(topics=None), 41, None).topics == []

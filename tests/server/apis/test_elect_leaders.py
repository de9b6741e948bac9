import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from mockraft.wire.messages.elect_leaders_response import ElectLeadersResponse

from ...conftest import Cluster
from ...rows import each_row

PREFERRED = 0


def request(places: dict[str, list[int]] | None, kind: int = PREFERRED, timeout_ms: int = 1000) -> ElectLeadersRequest:
    asked = None if places is None else [TopicPartitions(topic=t, partitions=ids) for t, ids in places.items()]
    return ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=timeout_ms)


def said(response: ElectLeadersResponse) -> dict[str, list[tuple[int, int, str | None]]]:
    return {
        topic.topic: [(each.partition_id, each.error_code, each.error_message) for each in topic.partition_result]
        for topic in response.replica_election_results
    }


def test_answers_in_the_order_of_the_request(three: Cluster) -> None:
    three.create_topic("t", [1, 2], [2, 1], [1, 2], leader=2)
    response = three.ask(request({"no-such": [1], "t": [2, 7, 0, 2, 1]}))
    unknown = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert list(said(response)) == ["no-such", "t"]
    assert said(response)["no-such"] == [(1, unknown, "No such topic as no-such")]
    assert [each[:2] for each in said(response)["t"]] == [(2, 0), (7, unknown), (0, 0), (2, 0), (1, 84)]
    assert said(response)["t"][1][2] == "No such partition as t-7"
    assert [record.partition_id for record, _ in three.written()] == [2, 0, 2]


def test_electing_all_partitions_reports_only_needed_elections_and_none_none(three: Cluster) -> None:
    three.create_topic("still", [1, 2])
    three.create_topic("t", [1, 2], [2, 1], leader=2)
    assert three.ask(request({}, 7, timeout_ms=0)).error_code == 0
    assert said(three.ask(request({}))) == {}
    assert three.written() == []
    assert said(three.ask(request(None))) == {"still": [], "t": [(0, 0, None)]}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_request_that_leaves_no_time_is_over(three: Cluster, version: int) -> None:
    response = three.ask(request({"t": [0]}, timeout_ms=0), version)
    assert [each[:2] for each in said(response)["t"]] == [(0, error_codes.REQUEST_TIMED_OUT)]
    assert response.error_code == (error_codes.REQUEST_TIMED_OUT if version else 0)


def test_more_than_one_operation_may_write_is_refused(three: Cluster) -> None:
    three.create_topic("t", *[[1, 2]] * 10_001, leader=2)
    response = three.ask(request({"t": list(range(10_001))}))
    assert {each[1:] for each in said(response)["t"]} == {
        (error_codes.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    }
    assert three.written() == []
    assert three.ask(request({"t": list(range(10_000))})).error_code == 0
    assert len(three.written()) == 10_000


@each_row(("level", "version"), [(16, 0), (17, 1), (22, 1), (23, 2)])
def test_changes_are_written_as_the_level_can_read_them(new_cluster: type[Cluster], level: int, version: int) -> None:
    cluster = new_cluster(metadata_version=level)
    cluster.start(1, 2)
    cluster.create_topic("t", [1, 2], leader=2)
    cluster.ask(request({"t": [0]}))
    assert [each for _, each in cluster.written()] == [version]

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from mockraft.wire.messages.elect_leaders_response import ElectLeadersResponse

from ...conftest import Cluster
from ...rows import each_row

PREFERRED, UNCLEAN = 0, 1


def request(places: dict[str, list[int]] | None, kind: int = PREFERRED, timeout_ms: int = 1000) -> ElectLeadersRequest:
    asked = None if places is None else [TopicPartitions(topic=t, partitions=ids) for t, ids in places.items()]
    return ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=timeout_ms)


def said(response: ElectLeadersResponse) -> dict[str, list[tuple[int, int, str | None]]]:
    return {
        topic.topic: [(each.partition_id, each.error_code, each.error_message) for each in topic.partition_result]
        for topic in response.replica_election_results
    }


def test_a_first_replica_out_of_sync_or_fenced_is_not_available(three: Cluster) -> None:
    three.create_topic("t", [1, 2], isr=[2], leader=2)
    three.create_topic("u", [3, 2])
    three.fence(3)
    refused = (0, error_codes.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    assert said(three.ask(request({"t": [0], "u": [0]}))) == {"t": [refused], "u": [refused]}
    assert three.written() == []


def test_an_unclean_election_takes_any_living_replica(three: Cluster) -> None:
    topic_id = three.create_topic("t", [1, 2, 3])
    for broker_id in (3, 2, 1):
        three.fence(broker_id)
    assert three.partition(topic_id).leader == -1
    refused = "Eligible topic partition leaders are not available."
    assert said(three.ask(request({"t": [0]}, UNCLEAN))) == {
        "t": [(0, error_codes.ELIGIBLE_LEADERS_NOT_AVAILABLE, refused)]
    }
    three.heartbeat(3)
    assert said(three.ask(request({"t": [0]}, PREFERRED)))["t"][0][1] == error_codes.PREFERRED_LEADER_NOT_AVAILABLE
    assert said(three.ask(request({"t": [0]}, UNCLEAN))) == {"t": [(0, 0, None)]}
    ((record, _),) = three.written()
    assert (record.leader, record.isr, record.leader_recovery_state) == (3, [3], 1)
    assert (record.eligible_leader_replicas, record.last_known_elr) == ([], [])


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


@pytest.mark.parametrize("kind", [2, -1])
def test_an_unknown_kind_of_election_is_refused(three: Cluster, kind: int) -> None:
    response = three.ask(request({"t": [0, 1]}, kind))
    message = f"Unknown election type {kind}"
    assert response.error_code == error_codes.INVALID_REQUEST
    assert said(response) == {"t": [(0, 42, message), (1, 42, message)]}
    assert (three.ask(request(None, kind)).error_code, said(three.ask(request(None, kind)))) == (42, {})


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

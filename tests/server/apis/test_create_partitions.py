import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from mockraft.wire.messages.create_partitions_response import CreatePartitionsResponse
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ...conftest import Cluster
from ...topics import more_partitions


def request(
    *topics: CreatePartitionsTopic, timeout_ms: int = 1000, validate_only: bool = False
) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def said(response: CreatePartitionsResponse) -> list[tuple[str, int, str | None]]:
    return [(each.name, each.error_code, each.error_message) for each in response.results]


def test_places_as_many_replicas_as_the_first_partition_has(three: Cluster) -> None:
    topic_id = three.create_topic("t", [1, 2])
    three.ask(request(more_partitions("t", 9)))
    partitions = [three.partition(topic_id, index) for index in range(1, 9)]
    assert [len({*partition.replicas}) for partition in partitions] == [2] * 8
    assert {partition.leader for partition in partitions} == {1, 2, 3}


def test_first_partition_in_kafkas_map_order_sets_the_replication_factor(three: Cluster) -> None:
    topic_id = three.create_topic("t", [1], [1], [1, 2])
    three.ask(request(more_partitions("t", 4)))
    assert len(three.partition(topic_id, 3).replicas) == 2


@pytest.mark.parametrize(("count", "replicas"), [(3, 2), (4, 2), (5, 1), (6, 1)])
def test_a_change_of_a_partition_makes_room_in_kafkas_map(three: Cluster, count: int, replicas: int) -> None:
    """With room for six, partition 0 comes before partition 2: before that, they share a slot."""
    topic_id = three.create_topic("t", *([[1]] * count))
    three.write(RecordAt(PartitionChangeRecord(topic_id=topic_id, partition_id=2, replicas=[1, 2]), 0))
    three.ask(request(more_partitions("t", count + 1)))
    assert len(three.partition(topic_id, count).replicas) == replicas


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (more_partitions("no-such", 2), error_codes.UNKNOWN_TOPIC_OR_PARTITION, None),
        (
            more_partitions("t", 3, []),
            error_codes.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            more_partitions("t", 3, [1, 1]),
            error_codes.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            more_partitions("t", 4, [1, 2], [3, 4]),
            error_codes.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition 3 are fenced or in controlled "
            "shutdown.",
        ),
        (
            more_partitions("wide", 2),
            error_codes.INVALID_REPLICATION_FACTOR,
            "The target replication factor of 5 cannot be reached because only 4 broker(s) are registered or some "
            "brokers have all their log directories cordoned.",
        ),
    ],
)
def test_refuses_one_topic_and_makes_the_others(
    three: Cluster, asked: CreatePartitionsTopic, code: int, message: str | None
) -> None:
    three.start(4, 5)
    three.create_topic("t", [1, 2], [2, 3])
    three.create_topic("other", [1])
    three.create_topic("wide", [1, 2, 3, 4, 5])
    three.fence(3)
    three.fence(4)
    three.unregister(5)
    results = {name: rest for name, *rest in said(three.ask(request(asked, more_partitions("other", 2))))}
    assert results == {asked.name: [code, message], "other": [0, None]}
    assert [(record.topic_id, version) for record, version in three.written()] == [
        (three.controller.image.topics.by_name["other"].topic_id, 2)
    ]


def test_all_are_refused_without_live_replicas(three: Cluster) -> None:
    three.create_topic("t", [1])
    for broker_id in (1, 2, 3):
        three.fence(broker_id)
    message = "All brokers are currently fenced, or have all their log directories cordoned."
    assert said(three.ask(request(more_partitions("t", 2)))) == [("t", error_codes.INVALID_REPLICATION_FACTOR, message)]


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_request_that_leaves_no_time_is_over(three: Cluster, timeout_ms: int) -> None:
    three.create_topic("t", [1])
    response = three.ask(request(more_partitions("t", 2), more_partitions("u", 2), timeout_ms=timeout_ms))
    assert [(name, code) for name, code, _ in said(response)] == [("t", 7), ("u", 7)]
    nothing_to_do = three.ask(request(more_partitions("t", 2), more_partitions("t", 2), timeout_ms=timeout_ms))
    assert [code for _, code, _ in said(nothing_to_do)] == [error_codes.INVALID_REQUEST]
    assert said(three.ask(request(timeout_ms=timeout_ms))) == []


def test_request_too_large_for_one_batch_is_partly_written_before_4_4(new_cluster: type[Cluster]) -> None:
    three = new_cluster(release="4.3")
    three.start(1, 2, 3)
    three.create_topic("t", [1])
    three.create_topic("u", [1])
    response = three.ask(request(more_partitions("t", 2), more_partitions("u", 2_000_000_000)))
    assert {name: (code, message) for name, code, message in said(response)} == {"t": (0, None), "u": (-1, None)}
    assert len(three.written()) == 10_000
    assert three.ask(request(more_partitions("t", 10_003))).results[0].error_code == -1


def test_new_partitions_are_written_as_old_levels_can_read_them(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=16)
    cluster.start(1)
    cluster.create_topic("t", [1])
    cluster.ask(request(more_partitions("t", 2)), 0)
    ((record, version),) = cluster.written()
    assert (version, record.directories) == (0, [])


def test_release_4_4_takes_ten_thousand_more_partitions_and_no_more(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(release="4.4", metadata_version=30)
    cluster.start(1)
    cluster.create_topic("t", [1], [1])
    message = "Excessively large number of additional partitions per request."
    assert said(cluster.ask(request(more_partitions("t", 10_003)))) == [("t", error_codes.POLICY_VIOLATION, message)]
    assert cluster.written() == []
    asked = (more_partitions("t", 10_002), more_partitions("no-such", 99))
    assert [code for _, code, _ in said(cluster.ask(request(*asked)))] == [0, error_codes.UNKNOWN_TOPIC_OR_PARTITION]
    assert len(cluster.written()) == 10_000


def test_topics_are_no_more_than_one_batch_has_records(cluster: Cluster) -> None:
    asked = [more_partitions(f"no-such-{number}", 2) for number in range(10_001)]
    codes = {(code, message) for _, code, message in said(cluster.ask(request(*asked)))}
    assert codes == {(error_codes.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")}

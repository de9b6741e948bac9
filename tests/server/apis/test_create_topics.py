import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.create_topics_response import CreateTopicsResponse
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.clear_elr_record import ClearElrRecord

from ...conftest import Cluster, type_name
from ...rows import each_row
from ...topics import topic

NO_ID = bytes(16)


def request(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)


def said(response: CreateTopicsResponse) -> list[tuple[str, int, str | None]]:
    return [(each.name, each.error_code, each.error_message) for each in response.topics]


def test_own_minimum_of_in_sync_replicas_clears_elr_before_the_partitions(three: Cluster) -> None:
    (made,) = three.ask(request(topic("t", 2, 2, retention_ms="5", min_insync_replicas="2"))).topics
    assert (made.error_code, made.error_message, made.num_partitions, made.replication_factor) == (0, None, 2, 2)
    kinds = ["TopicRecord", "ConfigRecord", "ConfigRecord", "ClearElrRecord", "PartitionRecord", "PartitionRecord"]
    assert [type_name(record) for record, _ in three.written()] == kinds
    assert three.written()[3] == RecordAt(ClearElrRecord(topic_name="t"), 0)


def test_numbers_left_out_are_the_controllers(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(num_partitions=3, default_replication_factor=2)
    cluster.start(1, 2)
    (made,) = cluster.ask(request(topic("t"))).topics
    assert (made.num_partitions, made.replication_factor) == (3, 2)


def test_returns_every_config_sorted_with_its_source(three: Cluster) -> None:
    (made,) = three.ask(request(topic("t", 1, 1, segment_bytes=" +2097152 "))).topics
    names = [config.name for config in made.configs]
    assert names == sorted(names)
    assert "internal.segment.bytes" not in names
    result = {config.name: (config.value, config.config_source) for config in made.configs}
    assert result["segment.bytes"] == (" +2097152 ", 1)
    assert result["min.insync.replicas"] == ("1", 3)
    assert result["retention.ms"] == ("604800000", 5)
    assert not any(config.read_only or config.is_sensitive for config in made.configs)


def test_refuses_one_topic_and_makes_the_others(three: Cluster) -> None:
    refused, made = three.ask(request(topic("t", a=None, b=None), topic("other", 1, 1))).topics
    assert (refused.error_code, refused.topic_id, refused.num_partitions) == (error_codes.INVALID_CONFIG, NO_ID, -1)
    assert refused.error_message == "Null value not supported for topic configs: a,b"
    assert made.error_code == 0
    assert set(three.controller.image.topics.by_name) == {"other"}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_request_that_leaves_no_time_is_over(three: Cluster, timeout_ms: int) -> None:
    asked = CreateTopicsRequest(topics=[topic("a"), topic("b"), topic("b")], timeout_ms=timeout_ms)
    assert [(each.name, each.error_code) for each in three.ask(asked).topics] == [("a", 7), ("b", 7), ("b", 7)]
    nothing_to_do = CreateTopicsRequest(topics=[topic("b"), topic("b")], timeout_ms=timeout_ms)
    assert [each.error_code for each in three.ask(nothing_to_do).topics] == [error_codes.INVALID_REQUEST]


def test_new_partitions_are_written_as_old_levels_can_read_them(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=16)
    cluster.start(1, 2)
    cluster.ask(request(topic("t", 1, 2)))
    record, version = cluster.written()[-1]
    assert (version, record.directories) == (0, [])


def test_the_same_seed_makes_the_same_topics(new_cluster: type[Cluster]) -> None:
    def ids(seed: int) -> list[tuple[bytes, tuple[int, ...]]]:
        cluster = new_cluster(seed=seed)
        cluster.start(1, 2, 3)
        return [
            (t.topic_id, cluster.partition(t.topic_id).replicas) for t in cluster.ask(request(topic("t", 1, 2))).topics
        ]

    assert ids(3) == ids(3)
    assert ids(3) != ids(4)


def test_topic_ids_are_random_uuids_without_a_leading_dash(three: Cluster) -> None:
    created = three.ask(request(*(topic(f"t{n}", 1, 1) for n in range(300)))).topics
    ids = {each.topic_id for each in created}
    assert len(ids) == 300
    assert all(topic_id[6] >> 4 == 4 and topic_id[8] >> 6 == 2 and topic_id[0] >> 2 != 62 for topic_id in ids)


def test_an_id_that_is_taken_is_not_drawn_again(three: Cluster) -> None:
    three.controller.rng.seed(9)
    first = three.ask(request(topic("first", 1, 1))).topics[0].topic_id
    three.controller.rng.seed(9)
    second = three.ask(request(topic("second", 1, 1))).topics[0].topic_id
    assert first != second


def test_no_replica_is_placed_on_a_broker_that_left(three: Cluster) -> None:
    three.ask(request(topic("before", 3, 3)))
    three.unregister(3)
    three.ask(request(topic("after", 6, 2)))
    placed = three.controller.image.topics.by_name["after"].partitions.values()
    assert {replica for partition in placed for replica in partition.replicas} == {1, 2}


def test_partitions_left_out_count_as_the_controllers_default(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(num_partitions=5_001)
    cluster.start(1)
    message = "Excessively large number of partitions per request."
    assert said(cluster.ask(request(topic("a", -1, 1), topic("b", -1, 1)))) == [("a", 44, message), ("b", 44, message)]


@each_row(("release", "code"), [("4.3", 0), ("4.4", error_codes.INVALID_REPLICA_ASSIGNMENT)])
def test_from_release_4_4_a_wholly_cordoned_broker_cannot_be_assigned(
    new_cluster: type[Cluster], release: str, code: int
) -> None:
    cluster = new_cluster(release=release, metadata_version=30)
    cluster.start(1)
    cluster.heartbeat(1, cordoned_log_dirs=list(cluster.broker(1).log_dirs))
    (made,) = cluster.ask(request(topic("t", manual=[(0, [1])]))).topics
    assert made.error_code == code

"""DescribeTopicPartitions: order, cursors and limits; beside a real broker's in tests/real_kafka."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)


def asked(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    place = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
    topics = [TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=place)


def partitions_of(response: Any) -> list[tuple[str, list[int]]]:
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in response.topics]


@pytest.fixture
def cluster(cluster: Any) -> Any:
    """Topics b (3 partitions), a (2) and c (1)."""
    cluster.register(1)
    cluster.register(2)
    for name, count in (("b", 3), ("a", 2), ("c", 1)):
        cluster.create(name, *({"replicas": [1, 2]} for _ in range(count)))
    return cluster


def test_all_topics_are_returned_in_order(cluster: Any) -> None:
    response = cluster.ask(asked())
    assert partitions_of(response) == [("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])]
    assert response.next_cursor is None
    assert {topic.topic_authorized_operations for topic in response.topics} == {3576}


def test_pages_add_up_to_the_whole(cluster: Any) -> None:
    pages, cursor = [], None
    while True:
        response = cluster.ask(asked("a", "b", "c", limit=2, cursor=cursor))
        pages.append(partitions_of(response))
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
    assert pages == [[("a", [0, 1])], [("b", [0, 1])], [("b", [2]), ("c", [0])]]


def test_the_brokers_limit_counts_too(cluster: Any) -> None:
    cluster.broker.config.properties["max.request.partition.size.limit"] = "1"
    response = cluster.ask(asked("c", "b"))
    assert (partitions_of(response), response.next_cursor.partition_index) == ([("b", [0])], 1)


@pytest.mark.parametrize(("names", "cursor"), [(("a",), ("b", 0)), (("a", "b"), ("b", -1))])
def test_a_cursor_that_leads_nowhere_is_refused(cluster: Any, names: tuple[str, ...], cursor: tuple[str, int]) -> None:
    response = cluster.ask(asked(*names, cursor=cursor))
    assert {topic.error_code for topic in response.topics} == {error_codes.INVALID_REQUEST}


def test_unknown_topics_are_errors_of_their_own(cluster: Any) -> None:
    response = cluster.ask(asked("none", "a", "no/name"))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a", 0),
        ("no/name", error_codes.INVALID_TOPIC_EXCEPTION),
        ("none", error_codes.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_eligible_leaders_are_returned(cluster: Any) -> None:
    cluster.create(
        "d", {"replicas": [1, 2], "isr": [], "leader": -1, "eligible_leader_replicas": [2], "last_known_elr": [1]}
    )
    (partition,) = (cluster.ask(asked("d"))).topics[0].partitions
    assert (partition.leader_id, partition.eligible_leader_replicas, partition.last_known_elr) == (-1, [2], [1])

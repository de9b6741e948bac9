"""CreateTopics, CreatePartitions and DeleteTopics keep to the client's controller mutation quota."""

from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.client_quota_record import ClientQuotaRecord, EntityData

from ...conftest import Cluster
from ...topics import more_partitions, topic

REFUSED = error_codes.THROTTLING_QUOTA_EXCEEDED


@pytest.fixture
def limited(cluster: Cluster) -> Cluster:
    """Alice may change a partition in ten seconds; there are three topics of one partition."""
    cluster.start(1)
    for name in ("a", "b", "c"):
        cluster.create_topic(name, [1])
    entity = [EntityData(entity_type="user", entity_name="alice")]
    cluster.write(RecordAt(ClientQuotaRecord(entity=entity, key="controller_mutation_rate", value=0.1), 0))
    return cluster


def create(cluster: Cluster, version: int, *names: str) -> tuple[list[int], int]:
    topics = [topic(name, 2, 1) for name in names]
    request = CreateTopicsRequest(topics=topics, timeout_ms=9000)
    answer = cluster.ask(request, version, principal="User:alice")
    return [each.error_code for each in answer.topics], answer.throttle_time_ms


def grow(cluster: Cluster, version: int, name: str) -> tuple[list[int], int]:
    topics = [more_partitions(name, 2, [1])]
    answer = cluster.ask(CreatePartitionsRequest(topics=topics, timeout_ms=9000), version, principal="User:alice")
    return [topic.error_code for topic in answer.results], answer.throttle_time_ms


def delete(cluster: Cluster, version: int, name: str) -> tuple[list[int], int]:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=9000)
    answer = cluster.ask(request, version, principal="User:alice")
    return [topic.error_code for topic in answer.responses], answer.throttle_time_ms


def test_new_topics_are_refused_from_version_6_on(limited: Any) -> None:
    assert create(limited, 6, "one", "two") == ([0, REFUSED], 9000)
    assert create(limited, 5, "three") == ([0], 29_000)
    assert "two" not in limited.controller.image.topics.by_name


@pytest.mark.parametrize(("change", "version"), [(grow, 3), (delete, 5)], ids=["new partitions", "deletions"])
def test_changes_are_refused_from_a_version_on(limited: Any, change: Any, version: int) -> None:
    assert [change(limited, version, name) for name in ("a", "b")] == [([0], 0), ([0], 0)]
    assert change(limited, version, "c") == ([REFUSED], 9000)
    assert change(limited, version - 1, "c") == ([0], 19_000)


def test_others_are_not_limited(limited: Any) -> None:
    request = DeleteTopicsRequest(topic_names=["a", "b", "c"], timeout_ms=9000)
    answer = limited.ask(request, 5, principal="User:bob")
    assert ([topic.error_code for topic in answer.responses], answer.throttle_time_ms) == ([0, 0, 0], 0)

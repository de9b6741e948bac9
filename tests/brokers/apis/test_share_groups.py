"""Share groups at their leaders and coordinator: state that nobody needs, and leaders that do not answer."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from mockraft.brokers.shares import shares
from mockraft.wire import error_codes
from mockraft.wire.errors import DisconnectedError
from mockraft.wire.messages import alter_share_group_offsets_request as altering
from mockraft.wire.messages import delete_share_group_state_response as deleted_as
from mockraft.wire.messages.delete_groups_request import DeleteGroupsRequest
from mockraft.wire.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from mockraft.wire.messages.share_fetch_request import FetchPartition, FetchTopic, ShareFetchRequest
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

from .conftest import Cluster, topic_id

KEY, THEIRS = (topic_id("a"), 0), (topic_id("b"), 0)


@pytest.fixture
def sharing(cluster: Cluster) -> Cluster:
    """Broker 1 coordinates groups and leads `a`; broker 2 leads `b`."""
    cluster.register(1)
    cluster.register(2)
    cluster.apply(FeatureLevelRecord(name="share.version", feature_level=1))
    for name, broker_id in (("a", 1), ("b", 2), ("__consumer_offsets", 1)):
        cluster.create(name, {"replicas": [broker_id]})
    cluster.coordinate()
    return cluster


def fetch(cluster: Cluster, group_id: str, epoch: int) -> list[int]:
    topics = [FetchTopic(topic_id=KEY[0], partitions=[FetchPartition(partition_index=0)])] if epoch == 0 else []
    request = ShareFetchRequest(
        group_id=group_id, member_id="m", share_session_epoch=epoch, topics=topics, max_wait_ms=9, max_bytes=99
    )
    return [each.error_code for topic in cluster.ask(request).responses for each in topic.partitions]


def test_state_that_nobody_needs_is_forgotten(sharing: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    of = sharing.broker.shares
    of.reset("moved", KEY, 9)
    for group_id in ("moved", "new"):
        assert [fetch(sharing, group_id, epoch) for epoch in (0, 1, -1)] == [[0], [], []], "9 is behind the log's end"
    assert [*of.partitions] == [("moved", KEY)]
    monkeypatch.setattr(shares, "PARTITIONS_MAX", 2)
    for group_id in ("next", "last"):
        of.reset(group_id, KEY, 0)
    assert [*of.partitions] == [("next", KEY), ("last", KEY)]


def test_a_fetch_looks_again_when_its_own_groups_records_change(sharing: Cluster) -> None:
    of, looks, counts = sharing.broker.shares, list[int](), []
    make = of.partition

    def look(*arguments: Any) -> Any:
        looks.append(0)
        return make(*arguments)

    of.partition = look
    for epoch, changed in enumerate(("g", "other", "g")):
        looks.clear()
        sharing.meanwhile = partial(of.reset, changed, KEY, 0)
        fetch(sharing, "g", epoch)
        counts.append(len(looks))
    assert counts == [3, 2, 3], "at first, after a change, and at the end"


def test_errors_of_leaders_and_leaders_that_do_not_answer_are_reported(sharing: Cluster) -> None:
    partition = altering.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=5)
    topic = altering.AlterShareGroupOffsetsRequestTopic(topic_name="b", partitions=[partition])
    alter, delete = altering.AlterShareGroupOffsetsRequest(group_id="g", topics=[topic]), DeleteGroupsRequest()
    delete.groups_names = ["g"]

    def answer(code: int) -> None:
        sharing.coordinating.run()
        results = [deleted_as.PartitionResult(partition=0, error_code=code)]
        topics = [deleted_as.DeleteStateResult(topic_id=THEIRS[0], partitions=results)]
        # That of InitializeShareGroupState is the same.
        sharing.coordinating.answer(deleted_as.DeleteShareGroupStateResponse(results=topics))

    def alter_and_delete() -> tuple[int, int]:
        altered = sharing.ask(alter).responses[0].partitions[0].error_code
        return altered, sharing.ask(delete).results[0].error_code

    for code in (error_codes.NOT_COORDINATOR, error_codes.NONE):
        sharing.meanwhile = partial(answer, code)
        assert alter_and_delete() == (code, code)
    assert sharing.broker.groups.find_any("g") is None
    sharing.meanwhile = sharing.coordinating.run
    assert alter_and_delete() == (error_codes.COORDINATOR_NOT_AVAILABLE,) * 2


def test_requests_to_a_leader_that_is_unregistered_meanwhile_end(sharing: Cluster) -> None:
    ask = sharing.broker.share_leaders.ask
    asked: list[Any] = [ask([THEIRS], lambda _: ReadShareGroupStateSummaryRequest(group_id="g")) for _ in range(3)]
    sharing.coordinating.run()
    sharing.apply(UnregisterBrokerRecord(broker_id=2, broker_epoch=12))
    sharing.coordinating.answer(DisconnectedError("gone"))
    assert [each.result() for each in asked] == [[], [], []]

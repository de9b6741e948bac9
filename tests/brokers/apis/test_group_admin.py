"""Groups as administrators see them: listed, described, deleted, and their offsets deleted."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from mockraft.wire.messages.delete_groups_request import DeleteGroupsRequest
from mockraft.wire.messages.describe_groups_request import DescribeGroupsRequest
from mockraft.wire.messages.find_coordinator_request import FindCoordinatorRequest
from mockraft.wire.messages.heartbeat_request import HeartbeatRequest
from mockraft.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from mockraft.wire.messages.leave_group_request import LeaveGroupRequest
from mockraft.wire.messages.list_groups_request import ListGroupsRequest
from mockraft.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockraft.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mockraft.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from mockraft.wire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

from .conftest import Cluster, topic_id

SUBSCRIPTION = bytes(2) + ConsumerProtocolSubscription(topics=["orders"]).write(0)


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Broker 1 coordinates every group; there are the topics `orders` and `other`, with one partition each."""
    cluster.register(1)
    for name in ("orders", "other"):
        cluster.create(name, {"replicas": [1]})
    cluster.create("__consumer_offsets", {"replicas": [1, 2], "leader": 1, "isr": [1]})
    cluster.coordinate()
    return cluster


def join(cluster: Cluster, *, protocol_type: str = "consumer", metadata: bytes = SUBSCRIPTION) -> str:
    """Let a member join the group `g`; return its id."""
    protocols = [JoinGroupRequestProtocol(name="range", metadata=metadata)]
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=30_000, protocol_type=protocol_type, protocols=protocols
    )
    joined = cluster.ask(request, 3)
    assert joined.error_code == error_codes.NONE
    return str(joined.member_id)


def sync(cluster: Cluster, member_id: str) -> None:
    assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"assigned")]
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id, assignments=assignments)
    assert cluster.ask(request, 4).error_code == error_codes.NONE


def commit(cluster: Cluster, group_id: str = "g") -> None:
    """Commit offset 3 of both topics, as a consumer without a group does."""
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(committed_offset=3)])
        for name in ("orders", "other")
    ]
    answer = cluster.ask(OffsetCommitRequest(group_id=group_id, topics=topics), 7)
    assert {each.error_code for topic in answer.topics for each in topic.partitions} == {error_codes.NONE}


def listed(
    cluster: Cluster, version: int = 5, *, states: tuple[str, ...] = (), types: tuple[str, ...] = ()
) -> list[tuple[str, str, str, str]]:
    answer = cluster.ask(ListGroupsRequest(states_filter=list(states), types_filter=list(types)), version)
    return [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in answer.groups]


def described(cluster: Cluster, version: int = 6, *, group_id: str = "g", operations: bool = False) -> Any:
    request = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=operations)
    (group,) = cluster.ask(request, version).groups
    return group


def deleted(cluster: Cluster, *group_ids: str) -> list[tuple[str, int]]:
    answer = cluster.ask(DeleteGroupsRequest(groups_names=list(group_ids)))
    return [(each.group_id, each.error_code) for each in answer.results]


def delete_offsets(cluster: Cluster, *topics: tuple[str, int], group_id: str = "g") -> tuple[int, list[int]]:
    """Delete offsets; return the error code and those of the partitions."""
    named = [
        OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
        for name, index in topics
    ]
    answer = cluster.ask(OffsetDeleteRequest(group_id=group_id, topics=named))
    return answer.error_code, [each.error_code for topic in answer.topics for each in topic.partitions]


def committed(cluster: Cluster) -> list[str]:
    """The topics with committed offsets."""
    return [topic.name for topic in cluster.ask(OffsetFetchRequest(group_id="g", topics=None), 7).topics]


def fetched(cluster: Cluster, version: int, **topic: Any) -> tuple[int, int]:
    """The committed offset of a topic's partition 0 and its error, or the group's."""
    if version < 8:
        request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(**topic, partition_indexes=[0])])
        found = cluster.ask(request, version)
    else:
        topics = [OffsetFetchRequestTopics(**topic, partition_indexes=[0])]
        (found,) = cluster.ask(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]), version
        ).groups
    partition = found.topics[0].partitions[0] if found.topics else found
    return getattr(partition, "committed_offset", -1), partition.error_code


def move_coordinator(cluster: Cluster) -> None:
    """Another broker coordinates groups from now on."""
    cluster.register(2)
    cluster.lead("__consumer_offsets", 2)


def test_groups_are_listed_with_their_states(cluster: Cluster) -> None:
    assert listed(cluster) == []
    member_id = join(cluster)
    commit(cluster, "simple")
    assert listed(cluster) == [("g", "consumer", "CompletingRebalance", "classic"), ("simple", "", "Empty", "classic")]
    sync(cluster, member_id)
    assert listed(cluster, 4) == [("g", "consumer", "Stable", ""), ("simple", "", "Empty", "")]
    assert listed(cluster, 3) == [("g", "consumer", "", ""), ("simple", "", "", "")]


@pytest.mark.parametrize(
    ("states", "types", "is_listed"),
    [
        (("empty", "Stable"), (), True),
        (("Stable",), (), False),
        ((), ("Classic",), True),
        ((), ("consumer",), False),
        (("Empty",), ("nonsense",), False),
    ],
)
def test_lists_are_filtered_by_state_and_type(
    cluster: Cluster, states: tuple[str, ...], types: tuple[str, ...], is_listed: bool
) -> None:
    commit(cluster)
    assert bool(listed(cluster, states=states, types=types)) == is_listed


def test_asking_about_a_group_does_not_create_it(cluster: Cluster) -> None:
    assert committed(cluster) == []
    left = cluster.ask(LeaveGroupRequest(group_id="g", member_id="someone"), 2)
    assert left.error_code == error_codes.UNKNOWN_MEMBER_ID
    assert described(cluster).error_code == error_codes.GROUP_ID_NOT_FOUND
    assert listed(cluster) == []


def test_offset_without_metadata_has_an_empty_text(cluster: Cluster) -> None:
    partition = OffsetCommitRequestPartition(committed_offset=3, committed_metadata=None)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    cluster.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    (found,) = cluster.ask(OffsetFetchRequest(group_id="g", topics=None), 7).topics[0].partitions
    assert (found.committed_offset, found.metadata) == (3, "")


def test_topic_that_is_named_twice_has_both_offsets(cluster: Cluster) -> None:
    topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[index]) for index in (0, 1)]
    answer = cluster.ask(OffsetFetchRequest(group_id="g", topics=topics), 7)
    assert [[each.partition_index for each in topic.partitions] for topic in answer.topics] == [[0], [1]]


@pytest.mark.parametrize("version", range(1, 10))
def test_group_without_commits_has_no_offsets(cluster: Cluster, version: int) -> None:
    assert fetched(cluster, version, name="orders") == (-1, error_codes.NONE)


def test_offsets_are_committed_and_fetched_by_topic_id(cluster: Cluster) -> None:
    ids = {topic_id("orders"): (7, error_codes.NONE), bytes(16): (-1, error_codes.UNKNOWN_TOPIC_ID)}
    partitions = [OffsetCommitRequestPartition(committed_offset=7)]
    topics = [OffsetCommitRequestTopic(topic_id=each, partitions=partitions) for each in ids]

    answer = cluster.ask(OffsetCommitRequest(group_id="g", topics=topics), 10)

    refused_first = [error_codes.UNKNOWN_TOPIC_ID, error_codes.NONE]
    assert [topic.partitions[0].error_code for topic in answer.topics] == refused_first
    assert {each: fetched(cluster, 10, topic_id=each) for each in ids} == ids


def test_other_keys_have_no_coordinator(cluster: Cluster) -> None:
    (found,) = cluster.ask(FindCoordinatorRequest(key_type=3, coordinator_keys=["t"])).coordinators
    assert found.error_code == error_codes.INVALID_REQUEST


@pytest.mark.parametrize(
    ("version", "error_code"), [(7, error_codes.ILLEGAL_GENERATION), (9, error_codes.GROUP_ID_NOT_FOUND)]
)
def test_member_of_an_unknown_group_cannot_commit(cluster: Cluster, version: int, error_code: int) -> None:
    topic = OffsetCommitRequestTopic(name="orders", partitions=[OffsetCommitRequestPartition()])
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=1, member_id="m", topics=[topic])
    assert cluster.ask(request, version).topics[0].partitions[0].error_code == error_code
    assert listed(cluster) == []


def test_only_a_stable_group_is_described_with_its_assignor_and_metadata(cluster: Cluster) -> None:
    member_id = join(cluster)
    rebalancing = described(cluster)
    assert (rebalancing.group_state, rebalancing.protocol_type) == ("CompletingRebalance", "consumer")
    assert (rebalancing.protocol_data, rebalancing.members[0].member_metadata) == ("", b"")
    sync(cluster, member_id)
    stable = described(cluster)
    (member,) = stable.members
    assert (stable.group_state, stable.protocol_data) == ("Stable", "range")
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "test", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"assigned")


def test_unknown_group_is_dead_and_an_error_from_version_6_on(cluster: Cluster) -> None:
    older, newer = (described(cluster, version) for version in (5, 6))
    assert (older.group_state, older.error_code) == ("Dead", error_codes.NONE)
    assert (newer.group_state, newer.error_code) == ("Dead", error_codes.GROUP_ID_NOT_FOUND)
    assert newer.error_message == "Group g not found."


def test_authorized_operations_are_given_when_requested(cluster: Cluster) -> None:
    commit(cluster)
    assert described(cluster).authorized_operations == -(1 << 31)
    operations = described(cluster, operations=True).authorized_operations
    assert [bit for bit in range(32) if operations >> bit & 1] == [3, 6, 8, 10, 11]


def test_group_without_members_is_deleted_with_its_offsets(cluster: Cluster) -> None:
    commit(cluster)
    assert deleted(cluster, "g", "none", "g") == [("g", error_codes.NONE), ("none", error_codes.GROUP_ID_NOT_FOUND)]
    assert (listed(cluster), committed(cluster)) == ([], [])


def test_group_with_members_is_not_deleted(cluster: Cluster) -> None:
    member_id = join(cluster)
    assert deleted(cluster, "g") == [("g", error_codes.NON_EMPTY_GROUP)]
    cluster.ask(LeaveGroupRequest(group_id="g", member_id=member_id), 2)
    assert deleted(cluster, "g") == [("g", error_codes.NONE)]


def test_offsets_are_deleted_by_partition(cluster: Cluster) -> None:
    commit(cluster)
    unknown = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert delete_offsets(cluster, ("orders", 0), ("none", 0), ("other", 1)) == (0, [unknown, unknown, 0])
    assert committed(cluster) == ["other"]


def test_offsets_of_subscribed_topics_are_not_deleted(cluster: Cluster) -> None:
    commit(cluster)
    member_id = join(cluster)
    assert delete_offsets(cluster, ("orders", 0), ("other", 0)) == (0, [error_codes.GROUP_SUBSCRIBED_TO_TOPIC, 0])
    assert committed(cluster) == ["orders"]
    cluster.ask(LeaveGroupRequest(group_id="g", member_id=member_id), 2)
    assert delete_offsets(cluster, ("orders", 0)) == (0, [0])


def test_unreadable_subscription_protects_every_topic(cluster: Cluster) -> None:
    join(cluster, metadata=b"?")
    subscribed = error_codes.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offsets(cluster, ("orders", 0), ("other", 0)) == (0, [subscribed, subscribed])


def test_offsets_of_members_that_are_no_consumers_are_not_deleted(cluster: Cluster) -> None:
    join(cluster, protocol_type="connect")
    assert delete_offsets(cluster, ("orders", 0)) == (error_codes.NON_EMPTY_GROUP, [])


@pytest.mark.parametrize(
    ("group_id", "error_code"), [("", error_codes.INVALID_GROUP_ID), ("none", error_codes.GROUP_ID_NOT_FOUND)]
)
def test_group_is_checked_before_the_partitions(cluster: Cluster, group_id: str, error_code: int) -> None:
    assert delete_offsets(cluster, ("orders", 0), ("none", 0), group_id=group_id) == (error_code, [])


def test_groups_of_another_coordinator_are_refused_and_not_listed(cluster: Cluster) -> None:
    commit(cluster)
    move_coordinator(cluster)
    assert listed(cluster) == []
    assert described(cluster).error_code == error_codes.NOT_COORDINATOR
    assert deleted(cluster, "g") == [("g", error_codes.NOT_COORDINATOR)]
    for version in (1, 2, 9):
        assert fetched(cluster, version, name="orders") == (-1, error_codes.NOT_COORDINATOR)
    assert delete_offsets(cluster, ("orders", 0)) == (error_codes.NOT_COORDINATOR, [])


def test_coordinator_that_loads_its_log_refuses_no_heartbeat(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.lead("__consumer_offsets", 2)
    beat = HeartbeatRequest(group_id="g", member_id="m")
    joining = JoinGroupRequest(group_id="g", member_id="m", session_timeout_ms=30_000)
    assert cluster.ask(beat).error_code == error_codes.NOT_COORDINATOR
    assert cluster.ask(ListGroupsRequest()).error_code == error_codes.NONE
    with monkeypatch.context() as patched:
        patched.setattr(cluster.coordinating, "run", lambda: None)
        cluster.lead("__consumer_offsets", 1)
    assert cluster.ask(beat).error_code == error_codes.NONE
    for request in (ListGroupsRequest(), joining):
        assert cluster.ask(request).error_code == error_codes.COORDINATOR_LOAD_IN_PROGRESS
    assert cluster.ask(joining).member_id == ""
    cluster.coordinating.run()
    assert cluster.ask(beat).error_code == error_codes.UNKNOWN_MEMBER_ID
    assert cluster.ask(joining).member_id == "m"

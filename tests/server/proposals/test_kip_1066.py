"""KIP-1066 as its text words it, where Kafka 4.3.1 shipped it otherwise: one test for each such wording."""

from types import SimpleNamespace
from typing import Any

import pytest
from mockraft import Controller, Quorum
from mockraft.wire import error_codes
from mockraft.wire.client import connect
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource

from ...configs import change_configs
from ...topics import assigned, more_partitions, topic
from .conftest import Proposed

A, B, C = (bytes([8] * 15 + [number]) for number in (1, 2, 3))
PROFILE = "kip-1066"
BROKER = 4
SET, APPEND = 0, 2


@pytest.fixture
def cluster(proposed: type[Proposed]) -> Proposed:
    """Broker 1 with directories A and B, broker 2 with C, both unfenced; 2 is wholly cordoned."""
    cluster = proposed(PROFILE)
    cluster.start(1, log_dirs=[A, B])
    cluster.start(2, log_dirs=[C])
    cluster.heartbeat(2, cordoned_log_dirs=[C])
    return cluster


def create(cluster: Proposed, topic: CreatableTopic) -> Any:
    (created,) = cluster.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000)).topics
    return created


def alter(cluster: Proposed, value: str, operation: int = SET) -> Any:
    return cluster.ask(change_configs((BROKER, "1", (operation, "cordoned.log.dirs", value)))).responses[0]


def test_registration_contains_cordoned_directories(cluster: Proposed) -> None:
    cluster.register(3, version=3, log_dirs=[bytes([7] * 16)])
    assert cluster.broker(3).cordoned_log_dirs == (), "below version 4"
    cluster.register(3, log_dirs=[bytes([7] * 16)], cordoned_log_dirs=[bytes([7] * 16)])
    assert cluster.broker(3).has_uncordoned_log_dirs is False
    record, version = cluster.said()[-1]
    assert (type(record).__name__, version, record.cordoned_log_dirs) == ("RegisterBrokerRecord", 4, [bytes([7] * 16)])


def test_heartbeat_version_1_is_the_newest_and_contains_cordoned_directories(cluster: Proposed) -> None:
    assert (cluster.apis[63].min_version, cluster.apis[63].max_version) == (0, 1)
    cluster.heartbeat(1, version=1, cordoned_log_dirs=[B])
    record, version = cluster.said()[-1]
    assert (type(record).__name__, version, record.cordoned_log_dirs) == ("BrokerRegistrationChangeRecord", 3, [B])
    assert cluster.replayed().cluster.brokers[1].cordoned_log_dirs == (B,)


def test_no_cordoned_directories_are_an_empty_list_and_not_null(cluster: Proposed) -> None:
    cluster.register(1, log_dirs=[A, B])
    assert [record.cordoned_log_dirs for record, _ in cluster.said()] == [[]]
    cluster.heartbeat(1, cordoned_log_dirs=[])
    assert cluster.written() == []
    cluster.heartbeat(2, cordoned_log_dirs=[])
    assert cluster.replayed().cluster.brokers[2].cordoned_log_dirs == ()


def test_failed_directory_keeps_the_cordoned_ones(cluster: Proposed) -> None:
    cluster.heartbeat(1, cordoned_log_dirs=[B])
    cluster.heartbeat(1, cordoned_log_dirs=[B], offline_log_dirs=[A])
    assert cluster.broker(1).cordoned_log_dirs == (B,)
    assert cluster.replayed().cluster.brokers[1] == cluster.broker(1)


def test_no_level_of_metadata_version_is_needed(proposed: type[Proposed]) -> None:
    cluster = proposed(PROFILE, metadata_version=29)
    cluster.start(1, log_dirs=[A, B])
    cluster.heartbeat(1, cordoned_log_dirs=[A])
    assert cluster.broker(1).cordoned_log_dirs == (A,)
    assert alter(cluster, "/a").error_code == error_codes.NONE


@pytest.mark.parametrize(("cordoned", "directory"), [([], A), ([A], B), ([B], A)])
def test_the_default_directory_is_one_that_is_not_cordoned(
    cluster: Proposed, cordoned: list[bytes], directory: bytes
) -> None:
    cluster.heartbeat(1, cordoned_log_dirs=cordoned)
    created = create(cluster, topic("t", 1, 1))
    assert cluster.partition(created.topic_id).directories == (directory,)


def test_an_explicit_assignment_to_a_cordoned_broker_is_refused(cluster: Proposed) -> None:
    refused = create(cluster, assigned("t", [1, 2]))
    assert refused.error_code == error_codes.INVALID_REPLICA_ASSIGNMENT
    assert "broker 2" in refused.error_message
    assert create(cluster, assigned("t", [1])).error_code == error_codes.NONE


def test_more_partitions_are_not_assigned_to_a_cordoned_broker_either(cluster: Proposed) -> None:
    create(cluster, assigned("t", [1]))
    asked = [more_partitions("t", 2, [2])]
    (refused,) = cluster.ask(CreatePartitionsRequest(topics=asked, timeout_ms=1000)).results
    assert refused.error_code == error_codes.INVALID_REPLICA_ASSIGNMENT


def reassigned(cluster: Proposed, *replicas: int) -> int:
    topic = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=list(replicas))])
    response = cluster.ask(AlterPartitionReassignmentsRequest(topics=[topic]))
    return int(response.responses[0].partitions[0].error_code)


def test_a_reassignment_to_a_cordoned_broker_is_refused(cluster: Proposed) -> None:
    create(cluster, assigned("t", [1]))
    assert reassigned(cluster, 2) == error_codes.INELIGIBLE_REPLICA


def test_a_reassignment_may_leave_a_replica_on_a_cordoned_broker_where_it_is(cluster: Proposed) -> None:
    cluster.heartbeat(2, cordoned_log_dirs=[])
    create(cluster, assigned("t", [1, 2]))
    cluster.heartbeat(2, cordoned_log_dirs=[C])
    assert reassigned(cluster, 2, 1) == error_codes.NONE


def test_the_config_is_a_string(cluster: Proposed) -> None:
    assert [alter(cluster, value).error_code for value in ("/a", "/a,/b")] == [error_codes.NONE] * 2, "it may grow"
    refused = alter(cluster, "/a", APPEND)
    assert refused.error_code == error_codes.INVALID_CONFIG
    assert "its type is not LIST" in refused.error_message
    node = str(cluster.config.node_id)
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=node, configuration_keys=None)
    (described,) = cluster.ask(DescribeConfigsRequest(resources=[resource])).results
    assert {config.name: config.config_type for config in described.configs}["cordoned.log.dirs"] == 2


async def test_the_next_leader_of_a_quorum_reads_the_proposals_records(registration: Any) -> None:
    async with Quorum(3, profile=PROFILE) as quorum:
        leader = quorum.node(await quorum.wait_for_leader())
        speaks = leader.node.messages
        connection = await connect(leader.config.voter_host, leader.config.voter_port, messages=speaks)
        said = SimpleNamespace(messages=speaks, cluster_id=quorum.cluster_id)
        registered = await connection.send(registration(said, 1, log_dirs=[A, B], cordoned_log_dirs=[A]))
        assert registered.error_code == error_codes.NONE
        await connection.close()
        other = next(node_id for node_id in quorum.node_ids if node_id != quorum.active)
        await quorum.elect(other)
        assert quorum.node(other).controller.image.cluster.brokers[1].cordoned_log_dirs == (A,)


async def test_two_controllers_of_one_process_serve_different_proposals() -> None:
    async with Controller(profile=PROFILE) as one, Controller() as other:
        offered = []
        for controller in (one, other):
            connection = await connect(controller.host, controller.port)
            offered.append(connection.api_versions[63])
            await connection.close()
        assert offered == [(0, 1), (0, 2)]

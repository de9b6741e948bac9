"""DescribeCluster of a broker; beside a real one's in tests/real_kafka."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest


@pytest.fixture
def cluster(cluster: Any) -> Any:
    cluster.register(1, rack="r")
    cluster.register(2, ("INSIDE", "PLAINTEXT"))
    cluster.register(3, fenced=True)
    return cluster


@pytest.mark.parametrize(
    ("version", "with_fenced", "expected"),
    [
        (0, False, [(1, False), (2, False)]),
        (2, False, [(1, False), (2, False)]),
        (2, True, [(1, False), (2, False), (3, True)]),
    ],
)
def test_fenced_brokers_are_returned_on_request(
    cluster: Any, version: int, with_fenced: bool, expected: list[tuple[int, bool]]
) -> None:
    response = cluster.ask(DescribeClusterRequest(include_fenced_brokers=with_fenced), version)
    assert [(each.broker_id, each.is_fenced) for each in response.brokers] == expected
    assert (response.cluster_id, response.endpoint_type) == ("a-cluster", 1)
    assert response.controller_id in (1, 2)


def test_only_brokers_with_the_listener_are_returned(cluster: Any) -> None:
    response = cluster.ask(DescribeClusterRequest(), listener_name="INSIDE")
    assert [each.broker_id for each in response.brokers] == [2]
    assert response.controller_id in (-1, 2)


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            2,
            "MISMATCHED_ENDPOINT_TYPE",
            "sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (9, "UNSUPPORTED_ENDPOINT_TYPE", "Unsupported endpoint type 9"),
    ],
)
def test_a_broker_does_not_describe_controllers(cluster: Any, endpoint_type: int, code: str, message: str) -> None:
    response = cluster.ask(DescribeClusterRequest(endpoint_type=endpoint_type))
    assert response.error_code == getattr(error_codes, code)
    assert message in response.error_message


def test_operations_are_returned_on_request(cluster: Any) -> None:
    response = cluster.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert response.cluster_authorized_operations == 8096

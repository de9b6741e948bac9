"""Controllers with brokers and topics."""

import pytest

from ...conftest import Cluster


@pytest.fixture
def three(cluster: Cluster) -> Cluster:
    """Brokers 1 to 3, unfenced."""
    cluster.start(1, 2, 3)
    return cluster


@pytest.fixture
def topic(cluster: Cluster) -> Cluster:
    """Topic `t` on brokers 1 and 2."""
    cluster.start(1, 2)
    cluster.create_topic("t", [1, 2])
    return cluster

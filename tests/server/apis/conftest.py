"""Controllers with brokers and topics."""

from typing import Any

import pytest
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData

from ...conftest import Cluster


def alter_partition(cluster: Cluster, *partitions: PartitionData, broker: int = 1, **fields: Any) -> Any:
    """The response to a broker that proposes these partitions of the topic, everything else right unless told."""
    given = {
        "broker_id": broker,
        "broker_epoch": cluster.broker(broker).broker_epoch,
        "topics": [TopicData(topic_id=fields.pop("topic_id", cluster.topic_id), partitions=list(partitions))],
        **fields,
    }
    return cluster.ask(AlterPartitionRequest(**given))


def propose(cluster: Cluster, isr: list[int], broker: int | None = None, **fields: Any) -> Any:
    """The answer to a broker (the leader) that proposes this ISR for partition 0, all else right unless told."""
    partition = cluster.partition(cluster.topic_id)
    data: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "leader_recovery_state": partition.leader_recovery_state,
        "new_isr_with_epochs": [BrokerState(broker_id=member) for member in isr],
        **fields,
    }
    response = alter_partition(cluster, PartitionData(**data), broker=partition.leader if broker is None else broker)
    assert response.error_code == 0
    return response.topics[0].partitions[0]


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

"""AlterPartition: the rules in their order, and the state returned to the leader."""

from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_request import BrokerState, PartitionData
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ...conftest import Cluster
from .conftest import alter_partition, propose


@pytest.fixture
def led(cluster: Cluster) -> Cluster:
    """Three brokers, topic t with replicas 1, 2, 3 led by 1, all in sync."""
    cluster.start(1, 2, 3)
    cluster.topic_id = cluster.create_topic("t", [1, 2, 3])
    return cluster


def code(cluster: Cluster, isr: list[int], **fields: Any) -> str:
    answer = propose(cluster, isr, **fields)
    if answer.error_code:
        assert (answer.leader_id, answer.leader_epoch, answer.isr, answer.partition_epoch) == (0, 0, [], 0)
    return str(error_codes.name(answer.error_code))


@pytest.mark.parametrize(
    ("isr", "fields", "name"),
    [
        pytest.param([1], {"partition_epoch": 1, "leader_epoch": -1}, "NOT_CONTROLLER", id="newer partition epoch"),
        pytest.param([1], {"leader_epoch": -1, "broker": 2}, "FENCED_LEADER_EPOCH", id="epoch before the sender"),
        pytest.param([1, 2], {"broker": 2, "partition_epoch": -1}, "INVALID_REQUEST", id="only the leader"),
        pytest.param([9], {"partition_epoch": -1}, "INVALID_UPDATE_VERSION", id="old partition epoch"),
    ],
)
def test_a_proposal_is_checked_in_kafkas_order(led: Cluster, isr: list[int], fields: Any, name: str) -> None:
    assert code(led, isr, **fields) == name


def test_a_recovering_leader_is_the_only_member_until_it_reports_its_recovery(led: Cluster) -> None:
    change = PartitionChangeRecord(topic_id=led.topic_id, partition_id=0, isr=[1], leader_recovery_state=1)
    led.write(RecordAt(change, 2))
    assert code(led, [1, 2], leader_recovery_state=1) == "INVALID_REQUEST"
    answer = propose(led, [1, 2], leader_recovery_state=0)
    assert (answer.error_code, answer.leader_recovery_state, answer.isr) == (0, 0, [1, 2])
    assert led.partition(led.topic_id).leader_recovery_state == 0


def test_a_recovering_leader_may_propose_itself_alone(led: Cluster) -> None:
    led.write(
        RecordAt(PartitionChangeRecord(topic_id=led.topic_id, partition_id=0, isr=[1], leader_recovery_state=1), 2)
    )
    assert code(led, [1], leader_recovery_state=1) == "NONE"


def test_an_unknown_recovery_state_fails_the_request(led: Cluster) -> None:
    partition = led.partition(led.topic_id)
    data = PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=2,
        new_isr_with_epochs=[BrokerState(broker_id=1)],
    )
    assert alter_partition(led, data).error_code == error_codes.UNKNOWN_SERVER_ERROR
    assert led.written() == []

"""AlterPartition: the rules in their order, and the state returned to the leader."""

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ...conftest import Cluster


@pytest.fixture
def led(cluster: Cluster) -> Cluster:
    """Three brokers, topic t with replicas 1, 2, 3 led by 1, all in sync."""
    cluster.start(1, 2, 3)
    cluster.topic_id = cluster.create_topic("t", [1, 2, 3])
    return cluster


def ask(cluster: Cluster, *partitions: PartitionData, broker: int = 1, version: int = 3, **fields: Any) -> Any:
    """The response to a broker that proposes these partitions of the topic, everything else right unless told."""
    given = {
        "broker_id": broker,
        "broker_epoch": cluster.broker(broker).broker_epoch,
        "topics": [TopicData(topic_id=fields.pop("topic_id", cluster.topic_id), partitions=list(partitions))],
        **fields,
    }
    return cluster.ask(AlterPartitionRequest(**given), version)


def propose(cluster: Cluster, isr: list[int], version: int = 3, leader: int = 1, **fields: Any) -> Any:
    """The answer to broker `leader` that proposes this ISR for partition 0, everything else right unless told."""
    partition = cluster.partition(cluster.topic_id)
    epochs = fields.pop("epochs", {})
    members = [BrokerState(broker_id=member, broker_epoch=epochs.get(member, -1)) for member in isr]
    data: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "leader_recovery_state": partition.leader_recovery_state,
        "new_isr_with_epochs" if version >= 3 else "new_isr": members if version >= 3 else isr,
        **fields,
    }
    response = ask(cluster, PartitionData(**data), broker=leader, version=version)
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def code(cluster: Cluster, isr: list[int], **fields: Any) -> str:
    answer = propose(cluster, isr, **fields)
    if answer.error_code:
        assert (answer.leader_id, answer.leader_epoch, answer.isr, answer.partition_epoch) == (0, 0, [], 0)
    return str(error_codes.name(answer.error_code))


def test_a_leader_shrinks_and_grows_its_isr(led: Cluster) -> None:
    answer = propose(led, [1, 2])
    assert (answer.error_code, answer.leader_id, answer.isr) == (0, 1, [1, 2])
    assert (answer.leader_epoch, answer.partition_epoch, answer.leader_recovery_state) == (0, 1, 0)
    assert led.partition(led.topic_id).isr == (1, 2)
    assert propose(led, [1, 2, 3]).partition_epoch == 2
    assert led.written()[0].version == 2


def test_unchanged_isr_writes_no_record(led: Cluster) -> None:
    answer = propose(led, [1, 2, 3])
    assert (answer.error_code, answer.partition_epoch) == (0, 0)
    assert led.written() == []
    assert propose(led, [1, 3], version=2).isr == [1, 3], "version 2 names the members without epochs"


@pytest.mark.parametrize(("broker_id", "epoch_error"), [(1, 1), (9, 0)])
def test_an_unknown_broker_or_epoch_is_stale(led: Cluster, broker_id: int, epoch_error: int) -> None:
    response = ask(led, broker_id=broker_id, broker_epoch=led.broker(1).broker_epoch + epoch_error)
    assert (response.error_code, response.topics) == (error_codes.STALE_BROKER_EPOCH, [])
    without_topics = led.ask(AlterPartitionRequest(broker_id=1, broker_epoch=-1))
    assert (without_topics.error_code, without_topics.topics) == (0, [])


@pytest.mark.parametrize("topic_id", [bytes(16), bytes([5]) * 16])
def test_each_partition_of_an_unknown_topic_has_an_error(led: Cluster, topic_id: bytes) -> None:
    [topic] = ask(led, *(PartitionData(partition_index=index) for index in (4, 2)), topic_id=topic_id).topics
    assert topic.topic_id == topic_id
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(4, 100), (2, 100)]


@pytest.mark.parametrize(
    ("isr", "fields", "name"),
    [
        pytest.param([1], {"partition_index": 1}, "UNKNOWN_TOPIC_OR_PARTITION", id="unknown partition"),
        pytest.param([1], {"leader_epoch": 1}, "NOT_CONTROLLER", id="newer leader epoch"),
        pytest.param([1], {"partition_epoch": 1, "leader_epoch": -1}, "NOT_CONTROLLER", id="newer partition epoch"),
        pytest.param([1], {"leader_epoch": -1, "leader": 2}, "FENCED_LEADER_EPOCH", id="epoch before the sender"),
        pytest.param([1, 2], {"leader": 2, "partition_epoch": -1}, "INVALID_REQUEST", id="only the leader"),
        pytest.param([9], {"partition_epoch": -1}, "INVALID_UPDATE_VERSION", id="old partition epoch"),
        *(([*isr], {}, "INVALID_REQUEST") for isr in ([1, 4], [1, 2, 2], [1, -1], [2, 3], [])),
        pytest.param([1], {"leader_recovery_state": 1}, "INVALID_REQUEST", id="a recovered one does not recover again"),
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


def test_an_unknown_recovery_state_breaks_the_request_as_it_does_kafkas(led: Cluster) -> None:
    data = PartitionData(new_isr_with_epochs=[BrokerState(broker_id=1)], leader_recovery_state=2)
    assert ask(led, data).error_code == error_codes.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("leaving", [Cluster.unregister, Cluster.fence], ids=["unregistered", "fenced"])
def test_a_member_that_left_is_ineligible(led: Cluster, leaving: Callable[[Cluster, int], Any]) -> None:
    leaving(led, 3)
    assert code(led, [1, 3]) == "INELIGIBLE_REPLICA"


def test_a_member_in_controlled_shutdown_is_ineligible(led: Cluster) -> None:
    led.create_topic("other", [3])
    led.heartbeat(3, want_shut_down=True)
    assert led.broker(3).fenced is False
    assert code(led, [1, 3]) == "INELIGIBLE_REPLICA"


def test_a_member_of_another_epoch_is_ineligible(led: Cluster) -> None:
    epoch = led.broker(3).broker_epoch
    assert code(led, [1, 3], epochs={3: epoch - 1}) == "INELIGIBLE_REPLICA"
    assert code(led, [1, 3], epochs={3: epoch}) == "NONE"


def test_a_replica_in_an_offline_directory_may_join_the_isr_but_not_lead(led: Cluster) -> None:
    led.register(3, log_dirs=[bytes([3] * 16)])
    propose(led, [1, 2])
    assert code(led, [1, 2, 3]) == "NONE"
    led.fence(2)
    led.fence(1)
    assert led.partition(led.topic_id).leader == -1


def test_a_reassignment_that_moves_the_leader_is_written_and_returns_an_error(led: Cluster) -> None:
    led.topic_id = led.create_topic("r", [1, 2], isr=[1], adding_replicas=[2], removing_replicas=[1])
    assert code(led, [1, 2]) == "NEW_LEADER_ELECTED"
    partition = led.partition(led.topic_id)
    assert (partition.leader, partition.isr, partition.replicas) == (2, (2,), (2,))
    assert partition.is_reassigning is False


def test_a_reassignment_that_keeps_the_leader_succeeds(led: Cluster) -> None:
    led.topic_id = led.create_topic("r", [1, 2, 3], isr=[1, 2], adding_replicas=[3], removing_replicas=[2])
    answer = propose(led, [1, 2, 3])
    assert (answer.error_code, answer.isr, answer.leader_epoch) == (0, [1, 3], 1)


def test_those_that_leave_an_isr_below_min_isr_stay_eligible(led: Cluster) -> None:
    led.set_config("t", "min.insync.replicas", "2")
    propose(led, [1])
    assert led.partition(led.topic_id).elr == (2, 3)
    propose(led, [1, 2])
    assert led.partition(led.topic_id).elr == ()


def test_one_bad_partition_does_not_spoil_the_others(led: Cluster) -> None:
    state = [BrokerState(broker_id=1), BrokerState(broker_id=2)]
    [topic] = ask(led, *(PartitionData(partition_index=index, new_isr_with_epochs=state) for index in (5, 0))).topics
    assert [p.error_code for p in topic.partitions] == [3, 0]
    assert len(led.written()) == 1

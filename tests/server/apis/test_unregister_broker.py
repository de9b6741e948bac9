from mockraft.wire import error_codes, records
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

from ...conftest import Cluster


def written(cluster: Cluster) -> list[str]:
    return [records.TYPES[record.api_key] for record, _ in cluster.written()]


def test_unknown_broker_is_refused_with_kafkas_message(cluster: Cluster) -> None:
    response = cluster.unregister(7)
    assert response.error_code == error_codes.BROKER_ID_NOT_REGISTERED
    assert response.error_message == "Broker ID 7 is not currently registered"
    assert cluster.written() == []


def test_success_has_an_empty_message(cluster: Cluster) -> None:
    cluster.register(1)
    response = cluster.unregister(1)
    assert (response.error_code, response.error_message) == (0, "")
    assert written(cluster) == ["UnregisterBrokerRecord"]


def test_partitions_come_first_and_the_leader_moves(cluster: Cluster) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2])
    epoch = cluster.broker(1).broker_epoch
    cluster.unregister(1)
    assert written(cluster) == ["PartitionChangeRecord", "UnregisterBrokerRecord"]
    assert cluster.written()[-1].record.broker_epoch == epoch
    partition = cluster.partition(topic_id)
    assert (partition.leader, partition.isr, partition.replicas) == (2, (2,), (1, 2))


def test_it_stays_eligible_until_its_id_registers_again(cluster: Cluster) -> None:
    cluster.start(1)
    topic_id = cluster.create_topic("t", [1])
    cluster.unregister(1)
    assert cluster.partition(topic_id).elr == (1,)
    cluster.register(1)
    assert cluster.partition(topic_id).elr == ()


def test_its_directories_are_free(cluster: Cluster) -> None:
    cluster.register(1)
    cluster.unregister(1)
    request = cluster.registration_request(2)
    request.log_dirs = list(cluster.registration_request(1).log_dirs)
    assert cluster.ask(request).error_code == 0


def test_its_heartbeats_are_stale(cluster: Cluster) -> None:
    cluster.start(1)
    epoch = cluster.broker(1).broker_epoch
    cluster.unregister(1)
    assert cluster.ask(BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch)).error_code == 77


def test_its_session_is_forgotten_when_it_times_out(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.unregister(1)
    cluster.advance(11_000)
    assert cluster.written() == []

"""Registrations as operations: their size limits, and the controller's own registration."""

from mockraft.server.controller.controller import Controller
from mockraft.wire import error_codes, records

from ....conftest import Cluster

MANY = 10_001


def names(cluster: Cluster) -> list[str]:
    return [records.TYPES[record.api_key] for record, _ in cluster.written()]


def led_by_two(cluster: Cluster) -> bytes:
    """More partitions than one batch takes, all led by broker 2 whose session is over."""
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", *[[2, 1]] * 5000)
    cluster.create_topic("u", *[[2, 1]] * (MANY - 5000))
    cluster.now_ms += 9001
    return bytes(topic_id)


def test_a_new_incarnation_may_change_more_partitions_than_fit_into_a_batch(cluster: Cluster) -> None:
    topic_id = led_by_two(cluster)
    cluster.register(2, incarnation_id=bytes([9] * 16))
    assert names(cluster) == ["PartitionChangeRecord"] * MANY + ["RegisterBrokerRecord"]
    assert cluster.partition(topic_id).leader == 1


def test_unregistering_may_not(cluster: Cluster) -> None:
    led_by_two(cluster)
    response = cluster.unregister(2)
    assert response.error_code == error_codes.POLICY_VIOLATION
    assert response.error_message == "Unable to perform excessively large batch operation."
    assert names(cluster) == []


def test_fencing_may_change_more_partitions_than_fit_into_a_batch(cluster: Cluster) -> None:
    topic_id = led_by_two(cluster)
    assert cluster.heartbeat(2, want_fence=True).is_fenced is True
    assert names(cluster)[-1] == "BrokerRegistrationChangeRecord"
    assert len(names(cluster)) == MANY + 1
    assert cluster.partition(topic_id).leader == 1


def test_a_controller_has_a_new_incarnation_at_each_start(cluster: Cluster) -> None:
    node_id = cluster.config.node_id
    first = cluster.controller.image.cluster.controllers[node_id]
    restarted = Controller(cluster.config, cluster.raft, cluster.chance, cluster.now_ms)
    second = restarted.image.cluster.controllers[node_id]
    assert first.incarnation_id != second.incarnation_id
    assert first.endpoints == second.endpoints


def test_a_controller_registers_its_advertised_endpoint(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(advertised_host="controller.example", advertised_port=19093)
    [endpoint] = cluster.controller.image.cluster.controllers[cluster.config.node_id].endpoints
    assert (endpoint.name, endpoint.host, endpoint.port) == ("CONTROLLER", "controller.example", 19093)

"""Registration records, producer ids and the states of brokers."""

from functools import partial
from itertools import product

import pytest
from mockraft.server.controller.brokers import producer_ids
from mockraft.server.controller.brokers.heartbeat import fence_one_stale_broker
from mockraft.server.controller.brokers.heartbeat_states import BrokerState, next_state
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.producer_ids_record import ProducerIdsRecord

from ....conftest import Cluster
from ....rows import each_row

MANY = 10_001


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
    assert cluster.written_types() == ["PartitionChangeRecord"] * MANY + ["RegisterBrokerRecord"]
    assert cluster.partition(topic_id).leader == 1


def test_unregistering_may_not(cluster: Cluster) -> None:
    led_by_two(cluster)
    response = cluster.unregister(2)
    assert response.error_code == error_codes.POLICY_VIOLATION
    assert response.error_message == "Unable to perform excessively large batch operation."
    assert cluster.written_types() == []


def test_fencing_may_change_more_partitions_than_fit_into_a_batch(cluster: Cluster) -> None:
    topic_id = led_by_two(cluster)
    assert cluster.heartbeat(2, want_fence=True).is_fenced is True
    assert cluster.written_types()[-1] == "BrokerRegistrationChangeRecord"
    assert len(cluster.written_types()) == MANY + 1
    assert cluster.partition(topic_id).leader == 1


def test_a_controller_has_a_new_incarnation_at_each_start(cluster: Cluster) -> None:
    node_id = cluster.config.node_id
    first = cluster.controller.image.cluster.controllers[node_id]
    restarted = Controller(cluster.config, cluster.raft, cluster.rng, cluster.now_ms)
    second = restarted.image.cluster.controllers[node_id]
    assert first.incarnation_id != second.incarnation_id
    assert first.endpoints == second.endpoints


def test_a_controller_registers_its_advertised_endpoint(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(advertised_host="controller.example", advertised_port=19093)
    [endpoint] = cluster.controller.image.cluster.controllers[cluster.config.node_id].endpoints
    assert (endpoint.name, endpoint.host, endpoint.port) == ("CONTROLLER", "controller.example", 19093)


def allocate(cluster: Cluster, broker_id: int, epoch: int | None = None) -> int:
    epoch = cluster.broker(broker_id).broker_epoch if epoch is None else epoch
    cluster.mark()
    return cluster.controller.commit(producer_ids.allocate_block(cluster.controller, broker_id, epoch), cluster.now_ms)


def test_the_last_block_ends_within_64_bits(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.write(RecordAt(ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=2**63 - 1001), 0))
    assert allocate(cluster, 1) == 2**63 - 1001
    with pytest.raises(ApiError) as refused:
        allocate(cluster, 1)
    assert refused.value.error_code == error_codes.UNKNOWN_SERVER_ERROR


FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
CONTROLLED_SHUTDOWN, SHUTDOWN_NOW = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW

ANY = None

# current, want fence, want shut down, caught up, leads any, others passed shutdown -> next; the first row that fits
TABLE = [
    (FENCED, ANY, True, ANY, ANY, ANY, SHUTDOWN_NOW),
    (FENCED, False, False, True, ANY, ANY, UNFENCED),
    (FENCED, ANY, ANY, ANY, ANY, ANY, FENCED),
    (UNFENCED, True, True, ANY, ANY, ANY, SHUTDOWN_NOW),
    (UNFENCED, True, False, ANY, ANY, ANY, FENCED),
    (UNFENCED, False, True, ANY, True, ANY, CONTROLLED_SHUTDOWN),
    (UNFENCED, False, True, ANY, False, ANY, SHUTDOWN_NOW),
    (UNFENCED, False, False, ANY, ANY, ANY, UNFENCED),
    (CONTROLLED_SHUTDOWN, ANY, ANY, ANY, True, ANY, CONTROLLED_SHUTDOWN),
    (CONTROLLED_SHUTDOWN, ANY, ANY, ANY, False, True, SHUTDOWN_NOW),
    (CONTROLLED_SHUTDOWN, ANY, ANY, ANY, False, False, CONTROLLED_SHUTDOWN),
    (SHUTDOWN_NOW, ANY, ANY, ANY, ANY, ANY, SHUTDOWN_NOW),
]


def expected(*inputs: object) -> BrokerState:
    for row in TABLE:
        if all(wanted is ANY or wanted == given for wanted, given in zip(row[:-1], inputs, strict=True)):
            return row[-1]
    raise AssertionError(f"the table has no row for {inputs}")


@each_row("current", BrokerState)
def test_next_state_is_the_tables_for_every_heartbeat(current: BrokerState) -> None:
    for flags in product((False, True), repeat=5):
        want_fence, want_shut_down, is_caught_up, leads_any, others_passed_shutdown = flags
        found = next_state(
            current,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            is_caught_up=is_caught_up,
            leads_any=leads_any,
            others_passed_shutdown=others_passed_shutdown,
        )
        assert found is expected(current, *flags), (current, flags)


def test_every_row_of_the_table_is_reached() -> None:
    reached = {expected(state, *flags) for state in BrokerState for flags in product((False, True), repeat=5)}
    assert reached == set(BrokerState)


@each_row(
    ("state", "is_fenced", "should_shut_down"),
    [(FENCED, True, False), (UNFENCED, False, False), (CONTROLLED_SHUTDOWN, False, False), (SHUTDOWN_NOW, True, True)],
)
def test_states_carry_the_answer_to_the_broker(state: BrokerState, is_fenced: bool, should_shut_down: bool) -> None:
    assert (state.is_fenced, state.should_shut_down) == (is_fenced, should_shut_down)


def test_a_block_of_producer_ids_is_recorded_with_its_broker(cluster: Cluster) -> None:
    cluster.start(1)
    allocate(cluster, 1)
    expected = ProducerIdsRecord(broker_id=1, broker_epoch=cluster.broker(1).broker_epoch, next_producer_id=1000)
    assert cluster.written() == [RecordAt(expected, 0)]


def test_brokers_without_a_session_are_fenced_one_by_one_in_as_many_batches_as_needed(cluster: Cluster) -> None:
    cluster.start(1, 2)
    fence = partial(fence_one_stale_broker, cluster.controller)
    assert fence(cluster.now_ms).response is False
    for broker_id in (1, 2):
        result = fence(cluster.now_ms + 9001)
        assert (result.response, result.atomic) == (True, False)
        assert result.reason == f"broker {broker_id}: session timed out"
    assert fence(cluster.now_ms + 9001).response is False

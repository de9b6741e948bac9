"""BrokerHeartbeat: its changes, in their order, and its responses."""

import pytest
from mockraft.wire import error_codes, records
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

from ...conftest import Cluster, uuid

A, B, C = uuid(1), uuid(2), uuid(3)


def written(cluster: Cluster) -> list[tuple[str, int]]:
    return [(records.TYPES[record.api_key], version) for record, version in cluster.written()]


CHANGE, REGISTRATION = "PartitionChangeRecord", "BrokerRegistrationChangeRecord"


@pytest.mark.parametrize(("broker_id", "epoch_error"), [(1, 1), (1, -1), (2, 0)])
def test_an_unknown_broker_or_epoch_is_stale(cluster: Cluster, broker_id: int, epoch_error: int) -> None:
    epoch = cluster.register(1)
    request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch + epoch_error)
    response = cluster.ask(request)
    assert (response.error_code, response.is_fenced) == (error_codes.STALE_BROKER_EPOCH, True)
    assert cluster.written() == []


def test_stale_heartbeat_counts_as_contact(cluster: Cluster) -> None:
    cluster.ask(BrokerHeartbeatRequest(broker_id=1, broker_epoch=17))
    assert cluster.controller.sessions.is_valid(1, 17, cluster.now_ms + 9000)


def test_an_unregistered_broker_is_stale(cluster: Cluster) -> None:
    cluster.start(1)
    epoch = cluster.broker(1).broker_epoch
    cluster.unregister(1)
    assert cluster.ask(BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch)).error_code == 77


def test_a_broker_is_caught_up_once_it_read_its_registration(cluster: Cluster) -> None:
    cluster.register(1)
    offset = cluster.broker(1).registration_offset
    before = cluster.heartbeat(1, current_metadata_offset=offset - 1, want_fence=True)
    assert (before.is_caught_up, before.is_fenced) == (False, True)
    at = cluster.heartbeat(1, current_metadata_offset=offset, want_fence=True)
    assert (at.is_caught_up, at.is_fenced) == (True, True)
    assert cluster.written() == []


def test_unfences_when_caught_up(cluster: Cluster) -> None:
    cluster.register(1)
    behind = cluster.heartbeat(1, current_metadata_offset=cluster.broker(1).registration_offset - 1)
    assert behind.is_fenced is True
    assert cluster.heartbeat(1).is_fenced is False
    assert written(cluster) == [(REGISTRATION, 0)]
    assert cluster.written()[0].record.fenced == -1


def test_an_unfenced_broker_stays_so_however_far_behind(cluster: Cluster) -> None:
    cluster.start(1)
    assert cluster.heartbeat(1, current_metadata_offset=-1).is_fenced is False
    assert cluster.written() == []


def test_fencing_is_written_after_the_partitions(cluster: Cluster) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2], [2, 1])
    response = cluster.heartbeat(1, want_fence=True)
    assert (response.is_fenced, response.should_shut_down) == (True, False)
    assert written(cluster) == [(CHANGE, 2), (CHANGE, 2), (REGISTRATION, 0)]
    assert cluster.written()[-1].record.fenced == 1
    assert [cluster.partition(topic_id, index).isr for index in (0, 1)] == [(2,), (2,)]


def test_unfencing_is_written_before_the_partitions(cluster: Cluster) -> None:
    cluster.start(1)
    topic_id = cluster.create_topic("t", [1])
    cluster.fence(1)
    assert cluster.partition(topic_id).leader == -1
    cluster.heartbeat(1)
    assert written(cluster) == [(REGISTRATION, 0), (CHANGE, 2)]
    assert cluster.partition(topic_id).leader == 1


def test_a_fenced_broker_may_shut_down_at_once_and_is_fenced_once_more(cluster: Cluster) -> None:
    cluster.register(1)
    response = cluster.heartbeat(1, want_shut_down=True, want_fence=True)
    assert (response.is_fenced, response.should_shut_down) == (True, True)
    assert written(cluster) == [(REGISTRATION, 0)]


def test_a_broker_without_leaderships_may_shut_down_at_once(cluster: Cluster) -> None:
    cluster.start(1, 2)
    cluster.create_topic("t", [2, 1])
    response = cluster.heartbeat(1, want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (True, True)
    assert written(cluster) == [(CHANGE, 2), (REGISTRATION, 0)]
    assert cluster.broker(1).fenced is True


def test_controlled_shutdown_marks_the_broker_first_and_moves_its_leaders(cluster: Cluster) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2])
    response = cluster.heartbeat(1, want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (False, False)
    assert written(cluster) == [(REGISTRATION, 1), (CHANGE, 2)]
    assert cluster.written()[0].record.in_controlled_shutdown == 1
    assert cluster.partition(topic_id).leader == 2
    assert cluster.broker(1).in_controlled_shutdown is True


def test_controlled_shutdown_ends_when_every_active_broker_has_read_it(cluster: Cluster) -> None:
    cluster.start(1, 2, 3)
    cluster.create_topic("t", [1, 2])
    for broker_id in (2, 3):
        cluster.heartbeat(broker_id)
    cluster.heartbeat(1, want_shut_down=True)
    shutdown_offset = cluster.log.end_offset - 1
    cluster.heartbeat(2, current_metadata_offset=shutdown_offset)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down is False
    cluster.heartbeat(3, current_metadata_offset=shutdown_offset)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down is True
    assert written(cluster) == [(REGISTRATION, 0)]


def test_controlled_shutdown_waits_for_partitions_without_another_leader(cluster: Cluster) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1], [1, 2])
    cluster.set_config("t", "min.insync.replicas", "1")
    response = cluster.heartbeat(1, want_shut_down=True)
    assert response.should_shut_down is False
    assert cluster.partition(topic_id).leader == -1
    cluster.heartbeat(2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down is True


def test_a_just_unfenced_broker_delays_others_until_its_next_heartbeat(cluster: Cluster) -> None:
    cluster.start(1, 2)
    cluster.create_topic("t", [1, 2])
    cluster.register(3)
    cluster.heartbeat(1, want_shut_down=True)
    for _ in range(2):
        cluster.heartbeat(2)
    cluster.heartbeat(3)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down is False
    cluster.heartbeat(3)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down is True


def test_the_wishes_of_a_broker_in_controlled_shutdown_are_ignored(cluster: Cluster) -> None:
    cluster.start(1, 2)
    cluster.create_topic("t", [1, 2])
    cluster.heartbeat(1, want_shut_down=True)
    response = cluster.heartbeat(1, want_fence=True, want_shut_down=False)
    assert (response.is_fenced, response.should_shut_down) == (False, False)
    assert cluster.written() == []


def test_a_broker_fenced_in_controlled_shutdown_stays_marked(cluster: Cluster) -> None:
    cluster.start(1, 2)
    cluster.create_topic("t", [1, 2])
    cluster.heartbeat(1, want_shut_down=True)
    cluster.advance(11_000)
    assert (cluster.broker(1).fenced, cluster.broker(1).in_controlled_shutdown) == (True, True)
    assert cluster.controller.heartbeats.brokers[1].is_shutting_down is False
    assert cluster.heartbeat(1).is_fenced is False
    assert cluster.controller.is_active(1) is False


def test_timed_out_broker_keeps_its_epoch_and_is_unfenced(cluster: Cluster) -> None:
    cluster.start(1)
    epoch = cluster.broker(1).broker_epoch
    cluster.advance(11_000)
    assert written(cluster) == [(REGISTRATION, 0)]
    assert cluster.heartbeat(1).is_fenced is False
    assert cluster.broker(1).broker_epoch == epoch


def test_state_and_directories_of_one_heartbeat_come_in_order(cluster: Cluster) -> None:
    cluster.register(1, log_dirs=[A, B])
    cluster.heartbeat(1, offline_log_dirs=[B], cordoned_log_dirs=[A])
    assert written(cluster) == [(REGISTRATION, 0), (REGISTRATION, 2), (REGISTRATION, 3)]
    broker = cluster.broker(1)
    assert (broker.fenced, broker.log_dirs, broker.cordoned_log_dirs) == (False, (A,), (A,))


def test_offline_directories_are_unheard_below_their_level(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=16)
    cluster.start(1)
    cluster.heartbeat(1, offline_log_dirs=[A])
    assert cluster.written() == []


@pytest.mark.parametrize(("level", "count"), [(29, 0), (30, 1)])
def test_cordoned_directories_are_unheard_below_their_level(new_cluster: type[Cluster], level: int, count: int) -> None:
    cluster = new_cluster(metadata_version=level)
    cluster.start(1)
    cluster.heartbeat(1, cordoned_log_dirs=[A])
    assert len(cluster.written()) == count


def test_the_session_is_kept_alive_by_heartbeats_only(cluster: Cluster) -> None:
    cluster.start(1, 2)
    for _ in range(6):
        cluster.advance(2000)
        cluster.heartbeat(1)
    assert (cluster.broker(1).fenced, cluster.broker(2).fenced) == (False, True)

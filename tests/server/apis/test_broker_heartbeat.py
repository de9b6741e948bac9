"""BrokerHeartbeat: its changes, in their order, and its responses."""

from typing import Any

from mockraft.server.controller.periodic import write_no_op
from mockraft.wire import error_codes, records
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

from ...conftest import Cluster, uuid
from ...rows import each_row

A = uuid(1)


def written(cluster: Cluster) -> list[tuple[str, int]]:
    return [(records.TYPES[record.api_key], version) for record, version in cluster.written()]


REGISTRATION = "BrokerRegistrationChangeRecord"


def test_stale_heartbeat_counts_as_contact(cluster: Cluster) -> None:
    response = cluster.ask(BrokerHeartbeatRequest(broker_id=1, broker_epoch=17))
    assert (response.error_code, response.is_fenced, cluster.written()) == (error_codes.STALE_BROKER_EPOCH, True, [])
    assert cluster.controller.sessions.is_valid(1, 17, cluster.now_ms + 9000)


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


def test_a_broker_fenced_in_controlled_shutdown_stays_marked(cluster: Cluster) -> None:
    cluster.start(1, 2)
    cluster.create_topic("t", [1, 2])
    cluster.heartbeat(1, want_shut_down=True)
    cluster.advance(11_000)
    assert (cluster.broker(1).fenced, cluster.broker(1).in_controlled_shutdown) == (True, True)
    assert cluster.controller.heartbeats.brokers[1].is_shutting_down is False
    assert cluster.heartbeat(1).is_fenced is False
    assert cluster.controller.is_active(1) is False


def test_offline_directories_are_unheard_below_their_level(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=16)
    cluster.start(1)
    cluster.heartbeat(1, offline_log_dirs=[A])
    assert cluster.written() == []


@each_row(("level", "count"), [(29, 0), (30, 1)])
def test_cordoned_directories_are_unheard_below_their_level(new_cluster: type[Cluster], level: int, count: int) -> None:
    cluster = new_cluster(metadata_version=level)
    cluster.start(1)
    cluster.heartbeat(1, cordoned_log_dirs=[A])
    assert len(cluster.written()) == count


@each_row(
    ("level", "unfences", "leaves", "fences", "idles"),
    [
        (4, ("UnfenceBrokerRecord", 0), [], ("FenceBrokerRecord", 0), []),
        (5, ("UnfenceBrokerRecord", 0), [], ("FenceBrokerRecord", 0), [("NoOpRecord", 0)]),
        (6, (REGISTRATION, 0), [], (REGISTRATION, 0), [("NoOpRecord", 0)]),
        (7, (REGISTRATION, 0), [(REGISTRATION, 1)], (REGISTRATION, 0), [("NoOpRecord", 0)]),
    ],
)
def test_early_levels_have_their_own_records(
    new_cluster: type[Cluster], level: int, unfences: Any, leaves: Any, fences: Any, idles: Any
) -> None:
    """Levels 4 (3.3-IV0) to 6 are in logs that Kafka 3.7 to 3.9 formatted: ReplicationControlManager of 3.9."""
    cluster = new_cluster(release="3.9")
    cluster.write(RecordAt(FeatureLevelRecord(name="metadata.version", feature_level=level), 0))
    ranges = {"metadata.version": (1, 21)}
    cluster.start(2, features=dict(ranges))
    cluster.register(1, features=dict(ranges))
    cluster.heartbeat(1)
    assert written(cluster) == [unfences]
    cluster.create_topic("led", [1])
    cluster.heartbeat(1, want_shut_down=True)
    assert [each for each in written(cluster) if each[0] == REGISTRATION] == leaves
    cluster.fence(2)
    assert written(cluster)[-1:] == [fences]
    found = write_no_op(cluster.controller, 0).records
    assert [(records.TYPES[record.api_key], version) for record, version in found] == idles

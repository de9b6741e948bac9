"""BrokerRegistration and UnregisterBroker: every rule, and the records."""

from typing import Any

import pytest
from mockraft.server.controller.brokers.registration import register_broker
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes, records
from mockraft.wire.messages.broker_registration_request import Feature, Listener
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

from ...conftest import Cluster, uuid
from ...rows import each_row


def reserved(number: int) -> bytes:
    return number.to_bytes(16, "big")


MIGRATING = {"is_migrating_zk_broker": True, "log_dirs": list[bytes]()}
ELR = "eligible.leader.replicas.version"
UNKNOWN_PROTOCOL = Listener(name="P", host="h", port=1, security_protocol=9)
BAD_DIRECTORIES: dict[str, list[bytes]] = {
    "no directory": [],
    "a reserved directory": [reserved(0)],
    "a lost directory": [reserved(2)],
    "the last reserved directory": [reserved(99)],
    "one directory twice": [uuid(1), uuid(1)],
    "a reserved directory beside another": [uuid(1), reserved(3)],
}


def code(cluster: Cluster, broker_id: int = 1, version: int = 4, **fields: Any) -> str:
    """The error's name; with it there is no epoch and nothing is written."""
    response = cluster.ask(cluster.registration_request(broker_id, **fields), version)
    if response.error_code:
        assert response.broker_epoch == -1
        assert cluster.written() == []
    return str(error_codes.name(response.error_code))


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        pytest.param({"cluster_id": "other", **MIGRATING}, "INCONSISTENT_CLUSTER_ID", id="another cluster id, first"),
        pytest.param(MIGRATING, "BROKER_ID_NOT_REGISTERED", id="a broker that migrates from ZooKeeper"),
        *(
            pytest.param({"log_dirs": ids, "listeners": [UNKNOWN_PROTOCOL]}, "INVALID_REGISTRATION", id=why)
            for why, ids in BAD_DIRECTORIES.items()
        ),
        pytest.param({"log_dirs": [reserved(100)]}, "NONE", id="id one hundred is a real directory"),
        pytest.param({"features": {"kraft.version": (0, 0)}}, "UNSUPPORTED_VERSION", id="kraft.version"),
        pytest.param({"features": {ELR: (0, 0)}}, "UNSUPPORTED_VERSION", id="eligible leader replicas"),
    ],
)
def test_a_first_registration_is_checked_in_kafkas_order(cluster: Cluster, fields: dict[str, Any], name: str) -> None:
    assert code(cluster, **fields) == name


def test_id_is_taken_during_the_session_even_after_a_granted_shutdown(cluster: Cluster) -> None:
    cluster.register(1)
    assert code(cluster, incarnation_id=uuid(3)) == "NONE", "a broker that never sent a heartbeat has no session"
    cluster.start(1)
    assert code(cluster, incarnation_id=uuid(2), is_migrating_zk_broker=True) == "DUPLICATE_BROKER_REGISTRATION"
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down is True
    cluster.now_ms += 9000
    assert code(cluster, incarnation_id=uuid(2)) == "DUPLICATE_BROKER_REGISTRATION"
    cluster.now_ms += 1
    assert code(cluster, incarnation_id=uuid(2)) == "NONE"


def test_directories_are_neither_checked_nor_kept_below_their_level(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=16)
    cluster.register(1, log_dirs=[reserved(0)])
    assert cluster.broker(1).log_dirs == ()


@pytest.mark.parametrize(
    "listener",
    [{"host": ""}, {"name": ""}, {"host": " "}, {"port": 0}, {"security_protocol": 4}, {"security_protocol": -1}],
)
def test_a_listener_that_breaks_a_real_controller_is_refused(cluster: Cluster, listener: dict[str, Any]) -> None:
    values = {"name": "P", "host": "h", "port": 9092, "security_protocol": 0, **listener}
    assert code(cluster, listeners=[Listener(**values)]) == "UNKNOWN_SERVER_ERROR"


def without_feature(cluster: Cluster, name: str) -> Any:
    request = cluster.registration_request(1)
    request.features = [feature for feature in request.features if feature.name != name]
    return request


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("metadata.version", error_codes.INVALID_REGISTRATION),
        ("group.version", error_codes.UNSUPPORTED_VERSION),
        ("kraft.version", error_codes.UNSUPPORTED_VERSION),
    ],
)
def test_an_omitted_finalized_feature_is_refused(cluster: Cluster, name: str, code: int) -> None:
    assert cluster.ask(without_feature(cluster, name)).error_code == code


def test_a_disabled_feature_may_be_omitted(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=20, kraft_version=0)
    for name in ("group.version", "kraft.version", "transaction.version"):
        assert cluster.ask(without_feature(cluster, name)).error_code == 0


@pytest.mark.parametrize("more", [0, 100])
def test_the_same_features_are_checked_against_the_levels_of_the_time(cluster: Cluster, more: int) -> None:
    without = without_feature(cluster, ELR)
    without.features += [Feature(name=f"f{each}", max_supported_version=each) for each in range(more)]
    for level, expected in ((0, 0), (1, error_codes.UNSUPPORTED_VERSION), (0, 0)):
        cluster.write(RecordAt(FeatureLevelRecord(name=ELR, feature_level=level), 0))
        assert cluster.ask(without).error_code == expected
    registered = {name: (each.min_version, each.max_version) for name, each in cluster.broker(1).features.items()}
    assert registered == {
        each.name: (each.min_supported_version, each.max_supported_version) for each in without.features
    }


@each_row(("level", "version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)])
def test_the_record_has_the_version_of_the_level(new_cluster: type[Cluster], level: int, version: int) -> None:
    cluster = new_cluster(metadata_version=level)
    cluster.register(1)
    assert cluster.written()[-1].version == version


def restarted(cluster: Cluster, version: int = 4, **fields: Any) -> list[tuple[str, Any]]:
    """Broker 2's session ends unseen by the controller, and another incarnation registers."""
    cluster.now_ms += 9001
    cluster.register(2, version, incarnation_id=uuid(99), **fields)
    return [(records.TYPES[record.api_key], record) for record, _ in cluster.written()]


def test_after_an_unclean_shutdown_partition_changes_come_first_and_the_epoch_is_theirs(cluster: Cluster) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [2, 1])
    offset = cluster.log.end_offset
    (first, change), (second, registration) = restarted(cluster)
    assert (first, second) == ("PartitionChangeRecord", "RegisterBrokerRecord")
    assert (change.leader, change.isr, change.eligible_leader_replicas) == (1, [1], None)
    assert registration.broker_epoch == offset
    assert cluster.broker(2).registration_offset == offset + 1
    assert cluster.partition(topic_id).elr == ()


@pytest.mark.parametrize(
    ("fields", "elr"),
    [
        pytest.param({}, (2,), id="a clean restart keeps it eligible"),
        pytest.param({"previous_broker_epoch": -1}, (), id="an unclean one does not"),
        pytest.param({"version": 2}, (), id="an old request cannot report a clean one"),
    ],
)
def test_eligibility_after_a_restart(cluster: Cluster, fields: Any, elr: tuple[int, ...]) -> None:
    """Broker 2 is the only one in sync of a topic that wants two, and 3 is eligible."""
    cluster.start(1, 2, 3)
    topic_id = cluster.create_topic("t", [1, 2, 3], isr=[2], leader=2, eligible_leader_replicas=[3])
    cluster.set_config("t", "min.insync.replicas", "2")
    restarted(cluster, **{"previous_broker_epoch": cluster.broker(2).broker_epoch, **fields})
    partition = cluster.partition(topic_id)
    assert (partition.leader, partition.isr, partition.elr) == (3, (3,), elr)


def test_an_unclean_restart_ends_eligibility_of_partitions_that_it_was_only_eligible_for(cluster: Cluster) -> None:
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [1, 2], isr=[1], eligible_leader_replicas=[2])
    cluster.set_config("t", "min.insync.replicas", "2")
    restarted(cluster)
    assert cluster.partition(topic_id).elr == ()


def test_without_elr_a_restart_is_like_fencing(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=20)
    cluster.start(1, 2)
    topic_id = cluster.create_topic("t", [2])
    restarted(cluster)
    partition = cluster.partition(topic_id)
    assert (partition.leader, partition.isr) == (-1, (2,))


def test_a_new_incarnation_has_a_new_session(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.now_ms += 9001
    cluster.register(1, incarnation_id=uuid(2))
    assert cluster.heartbeat(1, broker_epoch=cluster.broker(1).broker_epoch - 1).error_code == 77
    assert cluster.heartbeat(1, want_fence=True).is_fenced is True


def test_success_has_an_empty_message(cluster: Cluster) -> None:
    cluster.register(1)
    response = cluster.unregister(1)
    assert (response.error_code, response.error_message) == (0, "")
    assert cluster.written_types() == ["UnregisterBrokerRecord"]


def test_it_stays_eligible_until_its_id_registers_again(cluster: Cluster) -> None:
    cluster.start(1)
    topic_id = cluster.create_topic("t", [1])
    cluster.unregister(1)
    assert cluster.partition(topic_id).elr == (1,)
    cluster.register(1)
    assert cluster.partition(topic_id).elr == ()


def test_its_session_is_forgotten_when_it_times_out(cluster: Cluster) -> None:
    cluster.start(1)
    cluster.unregister(1)
    cluster.advance(11_000)
    assert cluster.written() == []


def test_a_refusal_is_logged_once_with_its_reason_and_a_remedy(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        assert code(cluster, cluster_id="another") == "INCONSISTENT_CLUSTER_ID"
    (warned,) = caplog.messages
    assert warned.startswith("broker 1 may not register: ")
    assert "but got cluster ID another" in warned
    assert warned.endswith("; format its directories with this cluster id, or serve with --cluster-id")
    assert code(cluster, log_dirs=list[bytes]()) == "INVALID_REGISTRATION"
    assert code(cluster) == "NONE"
    assert code(cluster, cluster_id="another\nforged line") == "INCONSISTENT_CLUSTER_ID"
    assert len(caplog.messages) == 3
    assert "\n" not in caplog.messages[-1]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"log_dirs": []}, "No directories specified in request"),
        ({"features": {"metadata.version": (7, 29)}}, "metadata.version"),
    ],
)
def test_a_refusal_has_its_reason(cluster: Cluster, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ApiError, match=reason):
        register_broker(cluster.controller, cluster.registration_request(1, **fields), 4, cluster.now_ms)


@each_row(("release", "is_kept"), [("3.8", False), ("3.9", True)])
def test_an_incarnation_keeps_its_epoch_from_release_3_9_on(
    new_cluster: type[Cluster], release: str, is_kept: bool
) -> None:
    cluster = new_cluster(release=release)
    version = 3 if release == "3.8" else 4
    first = cluster.register(1, version)
    assert (cluster.register(1, version) == first) is is_kept


@each_row(("release", "message"), [("4.0", None), ("4.1", "Broker ID 9 is not currently registered")])
def test_unregistering_an_unknown_broker_names_it_from_release_4_1_on(
    new_cluster: type[Cluster], release: str, message: str | None
) -> None:
    response = new_cluster(release=release).unregister(9)
    assert (response.error_code, response.error_message) == (error_codes.BROKER_ID_NOT_REGISTERED, message or "")

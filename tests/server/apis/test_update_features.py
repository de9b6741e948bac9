"""UpdateFeatures: every rule in its order, and the records."""

from collections.abc import Callable, Iterable

import pytest
from mockraft.releases import Behaviour
from mockraft.wire import error_codes
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

from ...configs import BROKER, config_record
from ...conftest import Cluster
from ...rows import each_row

METADATA, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
GROUP, TRANSACTION = "group.version", "transaction.version"
UP, SAFE, UNSAFE = 1, 2, 3
MINIMUM = "min.insync.replicas"


Update = tuple[str, int, int]
Refusal = Callable[..., str]


def request(*updates: Update, validate_only: bool = False) -> UpdateFeaturesRequest:
    """Updates as (feature, level, upgrade type)."""
    return UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
            for feature, level, kind in updates
        ],
        validate_only=validate_only,
    )


def level(name: str, number: int) -> RecordAt:
    return RecordAt(FeatureLevelRecord(name=name, feature_level=number), 0)


def type_names(records: Iterable[RecordAt]) -> list[str]:
    return [type(record).__name__ for record, _ in records]


@pytest.fixture
def refusal() -> Refusal:
    def message(cluster: Cluster, *updates: Update) -> str:
        response = cluster.ask(request(*updates))
        assert response.error_code == error_codes.INVALID_UPDATE_VERSION
        assert cluster.written() == []
        failed = "The update failed for all features since the following feature had an error: "
        assert response.error_message.startswith(failed)
        return str(response.error_message).removeprefix(failed)

    return message


def test_an_upgrade_is_written_and_returned(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=29)
    epoch = cluster.controller.features_epoch
    response = cluster.ask(request((METADATA, 30, UP)))
    assert (response.error_code, response.error_message) == (0, None)
    assert cluster.written() == [level(METADATA, 30)]
    assert cluster.controller.image.metadata_version == 30
    assert cluster.controller.features_epoch == cluster.log.end_offset - 1 > epoch


@pytest.mark.parametrize("version", [0, 1])
def test_old_versions_return_every_feature(cluster: Cluster, version: int) -> None:
    response = cluster.ask(request((GROUP, 1, UP), (TRANSACTION, 2, UP)), version)
    assert [(each.feature, each.error_code, each.error_message) for each in response.results] == [
        (GROUP, 0, "NONE"),
        (TRANSACTION, 0, "NONE"),
    ]
    assert sorted(record.name for record, _ in cluster.written()) == [GROUP, TRANSACTION]


def test_version_0_can_not_downgrade(cluster: Cluster) -> None:
    asked = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature=GROUP, max_version_level=0, allow_downgrade=True)]
    )
    assert cluster.ask(asked, 0).error_code == error_codes.INVALID_UPDATE_VERSION


@pytest.mark.parametrize(
    ("update", "why"),
    [
        ((GROUP, -1, 0), "The controller does not support the given upgrade type."),
        ((GROUP, -1, 4), "The controller does not support the given upgrade type."),
        ((GROUP, -1, UP), "A feature version cannot be less than 0."),
        ((GROUP, 2, SAFE), "Local controller 3000 only supports versions 0-1"),
        (("no.such", 2, UP), "Local controller 3000 does not support this feature."),
        (("no.such", 0, SAFE), "Feature no.such not found."),
        ((METADATA, 34, UP), "Local controller 3000 only supports versions 7-33"),
        (
            (TRANSACTION, 1, UP),
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        ),
        ((KRAFT, 0, SAFE), "Can't downgrade the version of this feature."),
    ],
)
def test_reports_the_error(cluster: Cluster, refusal: Refusal, update: Update, why: str) -> None:
    assert refusal(cluster, update) == f"Invalid update version {update[1]} for feature {update[0]}. {why}"


def test_a_downgrade_does_not_go_up(new_cluster: type[Cluster], refusal: Refusal) -> None:
    why = f"Invalid update version 1 for feature {GROUP}. Can't downgrade to a newer version."
    assert refusal(new_cluster(metadata_version=20), (GROUP, 1, UNSAFE)) == why


@each_row(("start", "down"), [(29, 23), (22, 17), (16, 15), (10, 8)])
def test_metadata_version_is_downgraded_across_unchanged_records(
    new_cluster: type[Cluster], start: int, down: int
) -> None:
    cluster = new_cluster(metadata_version=start)
    assert cluster.ask(request((METADATA, down, SAFE))).error_code == 0
    assert cluster.controller.image.metadata_version == down


@each_row("start", [30, 23, 17, 15, 14, 13, 11, 8])
def test_metadata_version_does_not_go_down_across_a_change_of_records(
    new_cluster: type[Cluster], refusal: Refusal, start: int
) -> None:
    cluster = new_cluster(metadata_version=start)
    down = f"Unsupported metadata.version downgrade from {start} to {start - 1}. "
    assert refusal(cluster, (METADATA, start - 1, SAFE)) == (
        down + "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    unsafe = down + "Unsafe metadata downgrade is not supported in this version."
    assert refusal(cluster, (METADATA, start - 1, UNSAFE)) == unsafe


def test_broker_without_support_for_the_level_is_named(new_cluster: type[Cluster], refusal: Refusal) -> None:
    cluster = new_cluster(metadata_version=20)
    cluster.register(1)
    cluster.register(2, features={METADATA: (7, 25), GROUP: (0, 0)})
    assert refusal(cluster, (METADATA, 30, UP)).endswith("Broker 2 only supports versions 7-25")
    assert refusal(cluster, (GROUP, 1, UP)).endswith("Broker 2 does not support this feature.")


def test_controller_without_support_for_the_level_is_named(new_cluster: type[Cluster], refusal: Refusal) -> None:
    cluster = new_cluster(metadata_version=20)
    (own,) = cluster.controller.image.cluster.controllers.values()
    record, version = own.to_record()
    record.controller_id = 3001
    record.features = [feature for feature in record.features if feature.name != GROUP]
    cluster.write(RecordAt(record, version))
    assert refusal(cluster, (GROUP, 1, UP)).endswith("Controller 3001 does not support this feature.")


def test_elr_needs_a_metadata_version(new_cluster: type[Cluster], refusal: Refusal) -> None:
    cluster = new_cluster(metadata_version=22)
    why = f"{ELR} could not be set to 1 because it depends on {METADATA} level 23"
    assert refusal(cluster, (ELR, 1, UP)) == f"Invalid update version 1 for feature {ELR}. {why}"
    assert cluster.ask(request((ELR, 1, UP), (METADATA, 23, UP))).error_code == 0
    assert cluster.controller.has(Behaviour.ELR)


def test_every_feature_needs_a_metadata_version_that_there_is(new_cluster: type[Cluster], refusal: Refusal) -> None:
    why = (
        "Invalid update version 1 for feature group.version. group.version could not be set to 1 because it depends on "
    )
    assert refusal(new_cluster(), (GROUP, 1, UP), (METADATA, 6, UP)).endswith(why + "metadata.version=7 (3.3-IV3)")


def test_elr_begins_with_one_minimum_for_all(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=25, min_insync_replicas=2)
    cluster.write(config_record(BROKER, "1", MINIMUM, "3"), config_record(BROKER, "2", MINIMUM, "4"))
    cluster.ask(request((ELR, 1, UP), validate_only=True))
    assert cluster.written() == []
    cluster.ask(request((ELR, 1, UP)))
    first, *own, last = cluster.written()
    assert (first, last) == (config_record(BROKER, "", MINIMUM, "2"), level(ELR, 1))
    assert sorted(record.resource_name for record, _ in own if record.value is None) == ["1", "2"]
    cluster.ask(request((ELR, 1, UP)))
    assert cluster.written() == [level(ELR, 1)]


def test_kraft_version_comes_from_control_records(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(kraft_version=0)
    before = cluster.log.end_offset
    assert cluster.ask(request((KRAFT, 1, UP), validate_only=True)).error_code == 0
    assert cluster.log.kraft_version == 0
    assert cluster.ask(request((KRAFT, 1, UP))).error_code == 0
    assert cluster.log.kraft_version == 1
    assert cluster.log.end_offset == before + 3
    assert type_names(record_at for _, record_at in cluster.log.records(before)) == ["NoOpRecord"]


def test_kraft_version_is_kept_when_requested_again(cluster: Cluster) -> None:
    before = cluster.log.end_offset
    assert cluster.ask(request((KRAFT, 1, SAFE))).error_code == 0
    assert cluster.log.end_offset == before
    assert cluster.ask(request((KRAFT, 1, UP))).error_code == 0
    assert cluster.log.end_offset == before + 1


def test_an_upgrade_to_3_7_registers_the_controller(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=14)
    cluster.ask(request((METADATA, 15, UP)))
    assert type_names(cluster.written()) == ["FeatureLevelRecord"]
    assert cluster.controller.next_tick_ms(cluster.now_ms) == cluster.now_ms
    cluster.advance(0)
    assert type_names(cluster.written()) == ["RegisterControllerRecord"]
    cluster.ask(request((METADATA, 16, UP)))
    assert type_names(cluster.written()) == ["FeatureLevelRecord"]


def test_a_feature_is_turned_off_where_kraft_version_may_go_down(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(release="4.0")
    cluster.ask(request((GROUP, 0, SAFE)))
    assert cluster.written() == [level(GROUP, 0)]


def test_an_update_is_logged_with_its_levels(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    cluster.ask(request((GROUP, 1, UP), (TRANSACTION, 2, UP)))
    assert any(f"features updated: {GROUP} 1, {TRANSACTION} 2 (2 records" in line for line in caplog.messages)


def test_release_3_9_updates_the_features_that_it_can(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(release="3.9")
    updates = ((METADATA, 21, UP), ("no.such", 1, UP), ("no.such.0", 0, UP), (KRAFT, 0, SAFE))
    response = cluster.ask(request(*updates), version=1)
    assert (response.error_code, response.error_message) == (0, "")
    refused = (error_codes.INVALID_UPDATE_VERSION, "Invalid update version 1 for feature no.such. ")
    assert [(each.error_code, (each.error_message or "")[: len(refused[1])]) for each in response.results] == [
        (0, ""),
        refused,
        (0, ""),
        (0, ""),
    ]
    assert cluster.written() == [level(METADATA, 21), level("no.such.0", 0), level(KRAFT, 0)]


@each_row("kind", [SAFE, UNSAFE])
def test_release_3_9_names_the_lowest_metadata_version(new_cluster: type[Cluster], kind: int) -> None:
    response = new_cluster(release="3.9").ask(request((METADATA, 3, kind)), version=1)
    message = "Invalid metadata.version 3. Unable to set a metadata.version less than 3.3-IV0"
    assert [each.error_message for each in response.results] == [message]

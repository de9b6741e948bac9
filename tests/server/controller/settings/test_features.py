import re

import pytest
from mockraft.releases import metadata_version, release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.settings import features

from ....rows import each_row

IN_4_3 = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
NEWEST = {**IN_4_3, "share.version": 2}


def names(level: int) -> list[str]:
    return [type(record).__name__ for record, _ in features.bootstrap_records(level, release())]


def test_names_every_level_from_7_to_33() -> None:
    versions = release().metadata_versions
    assert list(versions) == list(range(7, 34))
    assert (versions[7].name, versions[17].name, versions[33].name) == ("3.3-IV3", "3.7-IV2", "4.4-IV2")


@each_row(
    ("text", "level"),
    [("4.3-IV0", 30), ("30", 30), ("4.3", 30), ("4.4.0", 33), ("3.9", 21), ("4.1", 27), ("3.3-IV3", 7), ("3.7.2", 19)],
)
def test_reads_a_version_as_kafka_does(text: str, level: int) -> None:
    assert features.metadata_version_level(text, release()) == level


@each_row("text", ["6", "34", "4.5-IV0", "4", "", "IV0", "-1"])
def test_refuses_a_version_that_the_release_does_not_have(text: str) -> None:
    with pytest.raises(ValueError, match=r"metadata\.version|feature level"):
        features.metadata_version_level(text, release())


@each_row("text", ["3.0", "1", "3.3-IV2", "4.4"])
def test_lists_only_versions_that_a_new_log_of_the_release_can_begin_with(text: str) -> None:
    with pytest.raises(ValueError, match=rf"^Unknown metadata.version '{text}'. Supported .* are: 3.3-IV3, .*3.9-IV0$"):
        features.metadata_version_level(text, release("3.9"))


@each_row(
    ("level", "register_broker", "partition"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (29, 3, 2), (30, 4, 2)],
)
def test_record_versions_follow_the_level(level: int, register_broker: int, partition: int) -> None:
    versions = metadata_version(level).record_versions
    assert versions["RegisterBrokerRecord"] == register_broker
    assert versions["PartitionRecord"] == versions["PartitionChangeRecord"] == partition
    assert versions.get("RegisterControllerRecord") == (0 if level >= 15 else None)


@each_row(
    ("level", "expected"),
    [
        (7, {}),
        (21, {}),
        (22, {"group.version": 1}),
        (24, {"group.version": 1, "transaction.version": 2}),
        (27, {"eligible.leader.replicas.version": 1, "group.version": 1, "transaction.version": 2}),
        (30, IN_4_3),
        (31, NEWEST),
        (33, NEWEST),
    ],
)
def test_default_feature_levels_are_those_of_kafka_storage_format(level: int, expected: dict[str, int]) -> None:
    assert features.default_feature_levels(level, release()) == expected


def test_the_newest_log_begins_with_a_transaction_of_features_and_min_insync_replicas() -> None:
    records = features.bootstrap_records(33, release())
    assert names(33) == ["BeginTransactionRecord", *["FeatureLevelRecord"] * 6, "ConfigRecord", "EndTransactionRecord"]
    assert records[0].record.name == "Bootstrap records"
    levels = [(r.name, r.feature_level) for r, _ in records[1:7]]
    assert levels == [("metadata.version", 33), *sorted(NEWEST.items())]
    config = records[7].record
    assert (config.resource_type, config.resource_name) == (4, "")
    assert (config.name, config.value) == ("min.insync.replicas", "1")
    assert {version for _, version in records} == {0}


def test_no_transaction_below_level_13() -> None:
    assert names(12) == ["FeatureLevelRecord"]
    assert names(13) == ["BeginTransactionRecord", "FeatureLevelRecord", "EndTransactionRecord"]


def test_min_insync_replicas_is_the_given_default_where_replicas_may_be_eligible() -> None:
    off = features.bootstrap_records(30, release(), feature_levels={"eligible.leader.replicas.version": 0})
    assert [r.name for r, _ in off if type(r).__name__ == "FeatureLevelRecord"] == [
        "metadata.version",
        "group.version",
        "share.version",
        "streams.version",
        "transaction.version",
    ]
    assert "ConfigRecord" not in [type(r).__name__ for r, _ in off]
    config = next(r for r, _ in features.bootstrap_records(30, release(), min_insync_replicas=2) if hasattr(r, "value"))
    assert config.value == "2"


@each_row(
    ("level", "chosen", "why"),
    [
        (30, {"no.such.feature": 1}, "Unsupported feature: no.such.feature. Supported features are: eligible.leader"),
        (30, {"group.version": 2}, "No feature:group.version with feature level 2"),
        (30, {"kraft.version": 2, "no.such": 1}, "Unsupported feature: no.such. "),
        (30, {"kraft.version": 2}, "No feature:kraft.version with feature level 2"),
        (22, {"eligible.leader.replicas.version": 1}, "depends on metadata.version level 23"),
        (0, {"metadata.version": 34}, "metadata.version 4.5-IV0 is not yet stable."),
        (0, {"metadata.version": 35}, "feature level 35. Valid feature levels are from 7 to 34"),
        (0, {"metadata.version": 0}, "feature level 0. Valid feature levels are from 7 to 34"),
        (30, {"metadata.version": 30}, "metadata.version is given twice: as an option and as a feature"),
    ],
)
def test_refuses_features_that_the_release_or_level_does_not_have(level: int, chosen: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        features.initial_levels(release(), level, chosen)


@each_row(("name", "kraft_version"), [("3.7", 0), ("3.8", 0), ("3.9", 1), ("4.4", 1)])
def test_kraft_version_1_comes_with_3_9_whatever_the_metadata_version(name: str, kraft_version: int) -> None:
    assert ControllerConfig(release=name, metadata_version=19).initial_kraft_version == kraft_version


def test_a_feature_that_is_off_needs_no_metadata_version() -> None:
    assert features.initial_levels(release(), 7, {"group.version": 0}) == (7, None, {"group.version": 0})


def test_metadata_version_and_kraft_version_may_be_chosen_as_features() -> None:
    chosen = {"metadata.version": 30, "kraft.version": 0, "share.version": 0}
    assert features.initial_levels(release(), 0, chosen) == (30, 0, {"share.version": 0})
    assert features.initial_levels(release(), 0, {"metadata.version": 34}, unstable=True).metadata_version == 34

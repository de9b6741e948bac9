"""The gate: the conditions of a behaviour, its table's agreement with Kafka's classes, and its page."""

from __future__ import annotations

import re
from pathlib import Path

from mockraft.releases import METADATA_VERSION, SUPPORTED, Behaviour, metadata_version, release
from mockraft.releases.behaviour import Levels, Row

from tools.pages.behaviours import as_markdown

from ..rows import each_row

ROOT = Path(__file__).parents[2]
OF_KAFKA = {
    "migration": Behaviour.ZK_MIGRATION,
    "no_op_record": Behaviour.NO_OP_RECORDS,
    "broker_registration_change_record": Behaviour.REGISTRATION_CHANGES,
    "in_controlled_shutdown_state": Behaviour.CONTROLLED_SHUTDOWN_STATE,
    "scram": Behaviour.SCRAM,
    "metadata_transaction": Behaviour.METADATA_TRANSACTIONS,
    "delegation_token": Behaviour.DELEGATION_TOKENS,
    "controller_registration": Behaviour.CONTROLLER_REGISTRATION,
    "directory_assignment": Behaviour.DIRECTORY_ASSIGNMENT,
    "elr": Behaviour.ELR_RECORDS,
    "cordoned_log_dirs": Behaviour.CORDONED_LOG_DIRS,
    "cidr_acl": Behaviour.ACL_RANGES,
    "controller_unregistration": Behaviour.CONTROLLER_UNREGISTRATION,
}
"""What MetadataVersion of some release says by a method, in snake case."""
EVERY_LEVEL = {
    "alter_partition",
    "allocate_producer_ids",
    "feature_versioning",
    "kraft",
    "leader_recovery",
    "offset_for_leader_epoch",
    "topic_ids",
    "truncation_on_fetch",
}
"""What every level that a controller can have supports."""


@each_row(
    ("row", "kafka_version", "levels", "proposals", "is_met"),
    [
        (Row("", since="4.0"), "3.9.2", {}, (), False),
        (Row("", since="4.0"), "4.0.0", {}, (), True),
        (Row("", since="4.0.2"), "4.0.1", {}, (), False),
        (Row("", since="4.0.2"), "4.0.2", {}, (), True),
        (Row("", until="4.0.2"), "4.0.1", {}, (), True),
        (Row("", until="4.0.2"), "4.0.2", {}, (), False),
        (Row("", since="3.9", until="4.1"), "3.8.1", {}, (), False),
        (Row("", since="3.9", until="4.1"), "4.0.2", {}, (), True),
        (Row("", since="3.9", until="4.10"), "4.9.0", {}, (), True),
        (Row("", since="4.4", backports=("4.2.2",)), "4.2.1", {}, (), False),
        (Row("", since="4.4", backports=("4.2.2",)), "4.2.10", {}, (), True),
        (Row("", since="4.4", backports=("4.2.2",)), "4.3.1", {}, (), False),
        (Row("", since="4.4", backports=("4.2.2",)), "", {}, (), False),
        (Row("", since="4.0"), "", {}, (), False),
        (Row("", levels=Levels("f", 2, 3)), "4.0.0", {}, (), False),
        (Row("", levels=Levels("f", 2, 3)), "4.0.0", {"f": 1}, (), False),
        (Row("", levels=Levels("f", 2, 3)), "4.0.0", {"f": 3}, (), True),
        (Row("", levels=Levels("f", 2, 3)), "4.0.0", {"f": 4}, (), False),
        (Row("", levels=Levels("f", 2), proposal="kip-1"), "4.0.0", {"f": 1}, ("kip-1",), True),
        (Row("", proposal="kip-1"), "4.0.0", {}, ("kip-2",), False),
    ],
)
def test_one_condition_that_is_met_is_enough(
    row: Row, kafka_version: str, levels: dict[str, int], proposals: tuple[str, ...], is_met: bool
) -> None:
    assert row.is_met(kafka_version, levels, proposals) is is_met


def test_levels_are_those_of_kafkas_classes() -> None:
    for of in map(release, SUPPORTED):
        for level, version in of.metadata_versions.items():
            known = {name for name in OF_KAFKA if metadata_version(level).has(OF_KAFKA[name])}
            named = frozenset().union(*(each.supports for each in of.metadata_versions.values()))
            assert known & named == version.supports - EVERY_LEVEL, (of, level)
            bumps = metadata_version(level).has(Behaviour.EPOCH_GROWS_AS_THE_ISR_SHRINKS)
            assert bumps == version.leader_epoch_bump_on_isr_shrink, (of, level)


def test_a_release_and_its_levels_are_asked_together() -> None:
    found = release("4.3").behaviours({METADATA_VERSION: 30}, frozenset({"kip-858"}))
    assert {Behaviour.CORDONING, Behaviour.CORDONED_LOG_DIRS, Behaviour.UNASSIGNED_DIR_IS_ZERO} <= found
    assert not {Behaviour.QUOTAS_ARE_FINITE, Behaviour.ACL_RANGES, Behaviour.CORDONED_CONFIG_IS_A_STRING} & found


def test_every_behaviour_is_asked_for() -> None:
    folders = ("server", "kafka_configs", "brokers", "twin")
    text = "".join(path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.py"))
    asked = set(re.findall(r"has\(\s*Behaviour\.(\w+)", text))
    assert asked == {each.name for each in Behaviour}


def test_the_page_has_the_table() -> None:
    assert (ROOT / "docs" / "reference" / "behaviours.md").read_text() == as_markdown()

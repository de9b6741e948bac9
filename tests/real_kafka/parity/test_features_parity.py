"""The same requests about features to Kafka's controller and to ours: the same answers and records."""

from typing import Any

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

from ...configs import BROKER, DELETE, SET, change_configs
from .conftest import Case, Outcome, Side

pytestmark = pytest.mark.real_kafka

METADATA, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
GROUP, SHARE, STREAMS, TRANSACTION = "group.version", "share.version", "streams.version", "transaction.version"
UP, SAFE, UNSAFE = 1, 2, 3


def update(name: str, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> Case:
    """Updates as (feature, level, upgrade type)."""
    asked = [
        FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind if version else 1)
        for feature, level, kind in updates
    ]
    return Case(name, UpdateFeaturesRequest(feature_updates=asked, validate_only=validate_only), version)


def alter(name: str, broker: str, key: str, value: str | None) -> Case:
    return Case(name, change_configs((BROKER, broker, (SET if value else DELETE, key, value))), 1)


CASES = [
    update("nothing"),
    update("nothing, in version 0", version=0),
    update("an unknown type", (GROUP, 1, 0)),
    update("another unknown type", (GROUP, 1, 4)),
    update("a negative type", (METADATA, 29, -1)),
    update("below 0", (GROUP, -1, SAFE)),
    update("unknown feature", ("no.such", 1, UP)),
    update("unknown feature to 0", ("no.such", 0, SAFE)),
    update("out of range", (GROUP, 2, UP)),
    update("metadata.version out of range", (METADATA, 31, UP)),
    update("metadata.version below range", (METADATA, 6, SAFE)),
    update("kraft.version out of range", (KRAFT, 2, UP)),
    update("down by an upgrade", (TRANSACTION, 1, UP)),
    update("the same level", (GROUP, 1, UP), version=1),
    update("the same level by a downgrade", (GROUP, 1, SAFE)),
    update("the same metadata.version", (METADATA, 30, UP)),
    update("across a metadata change", (METADATA, 29, SAFE)),
    update("across a metadata change, unsafe", (METADATA, 29, UNSAFE)),
    update("far down", (METADATA, 7, UNSAFE)),
    update("kraft.version again", (KRAFT, 1, UP)),
    update("kraft.version again by a downgrade", (KRAFT, 1, SAFE)),
    update("kraft.version down", (KRAFT, 0, SAFE)),
    update("kraft.version down by an upgrade", (KRAFT, 0, UP)),
    update("one bad, one good", (GROUP, 0, SAFE), ("no.such", 1, UP)),
    update("one bad, one good, in version 1", (GROUP, 0, SAFE), (SHARE, 7, UP), version=1),
    update("only validated", (GROUP, 0, SAFE), (TRANSACTION, 0, UNSAFE), validate_only=True),
    update("only validated, and bad", (GROUP, 0, UP), validate_only=True),
    update("only validated kraft.version", (KRAFT, 1, UP), validate_only=True),
    update("version 0 goes up only", (GROUP, 0, SAFE), version=0),
    update("one down", (TRANSACTION, 1, SAFE)),
    update("up again", (TRANSACTION, 2, UP), version=1),
    update("up again by a downgrade", (SHARE, 0, SAFE), (STREAMS, 0, UNSAFE), (GROUP, 0, SAFE), version=1),
    update("all up, in version 0", (SHARE, 1, UP), (STREAMS, 1, UP), (GROUP, 1, UP), version=0),
    update("to a newer level by a downgrade", (TRANSACTION, 1, SAFE)),
    update("and back by a downgrade", (TRANSACTION, 2, UNSAFE)),
    update("twice", (TRANSACTION, 2, UP), (TRANSACTION, 0, SAFE)),
    update("twice, good last", (TRANSACTION, 9, UP), (TRANSACTION, 2, UP), version=1),
    update("elr off", (ELR, 0, SAFE)),
    alter("a broker's own minimum", "1", "min.insync.replicas", "2"),
    alter("another broker's own minimum", "2", "min.insync.replicas", "3"),
    alter("no minimum of the cluster", "", "min.insync.replicas", None),
    alter("something else of a broker", "3", "num.io.threads", "9"),
    update("elr on, validated", (ELR, 1, UP), validate_only=True),
    update("elr on", (ELR, 1, UP), (GROUP, 1, UP)),
    update("elr on again", (ELR, 1, UP)),
]


def run(side: Any) -> Any:
    for broker_id in (1, 2, 3):
        side.add_broker(broker_id, None, 1)
    side.skip_start()
    outcomes = {}
    for case in CASES:
        outcome = outcomes[case.name] = side.outcome(case.request, case.version)
        outcomes[f"finalized after {case.name}"] = finalized(side, outcome.records)
    return outcomes


def finalized(side: Any, records: list[Any]) -> dict[str, int]:
    """Finalized features by ApiVersions, once these records are applied: Kafka publishes its image after it answers."""
    written = {record[2]["name"]: record[2]["featureLevel"] for record in records if record[0] == "FeatureLevelRecord"}
    found: dict[str, int] = {}

    def knows() -> bool:
        answer = side.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
        found.clear()
        found.update({feature.name: feature.max_version_level for feature in answer.finalized_features})
        return all(found.get(name, 0) == level for name, level in written.items())

    wait_until(knows, 60, f"finalized features with {written}")
    return found


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_responses_and_records_equal_kafkas(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]
    assert ours[f"finalized after {name}"] == theirs[f"finalized after {name}"]


LEVELS = [
    update("elr too early", (ELR, 1, UP)),
    update("elr with too low a metadata.version", (METADATA, 22, UP), (ELR, 1, UP)),
    update("down across 14", (METADATA, 13, SAFE)),
    update("no metadata change", (METADATA, 14, UNSAFE)),
    update("registers the controller", (METADATA, 16, UP)),
    update("down to 15", (METADATA, 15, SAFE), version=1),
    update("down to 14", (METADATA, 14, UNSAFE), version=1),
    update("up to 22", (METADATA, 22, UP)),
    update("down to 17", (METADATA, 17, SAFE)),
    update("down to 16", (METADATA, 16, SAFE)),
    alter("a broker's minimum", "1", "min.insync.replicas", "2"),
    update("elr with its metadata.version", (ELR, 1, UP), (METADATA, 23, UP)),
    update("up to 29", (METADATA, 29, UP)),
    update("down to 23", (METADATA, 23, SAFE)),
    update("down to 22", (METADATA, 22, SAFE)),
    update("up to 30", (METADATA, 30, UP), (SHARE, 1, UP), (STREAMS, 1, UP), (GROUP, 1, UP), (TRANSACTION, 2, UP)),
]


def run_levels(side: Any) -> dict[str, Any]:
    side.add_broker(1, None, 1)
    side.new_records()
    outcomes = {}
    for case in LEVELS:
        outcome = side.outcome(case.request, case.version)
        outcomes[case.name] = (outcome.answer, outcome.records, finalized(side, outcome.records))
        if case.name == "registers the controller":
            side.skip_start()
    return outcomes


def test_upgrades_and_downgrades_equal_kafkas(on_both: Any) -> None:
    theirs, ours = on_both(run_levels, "3.6-IV2")
    for case in LEVELS:
        assert ours[case.name] == theirs[case.name], case.name


RANGES: dict[int, dict[str, tuple[int, int]]] = {
    1: {METADATA: (7, 30), KRAFT: (0, 1), GROUP: (0, 1)},
    3: {METADATA: (7, 25), KRAFT: (0, 1)},
    8: {METADATA: (7, 24), KRAFT: (0, 1), GROUP: (0, 1), TRANSACTION: (0, 1)},
    12: {METADATA: (18, 32767), KRAFT: (1, 1), TRANSACTION: (0, 2)},
    21: {METADATA: (20, 20), KRAFT: (0, 1)},
}

UNSUPPORTED = [
    update("metadata.version that some do not know", (METADATA, 30, UP)),
    update("metadata.version that one does not know", (METADATA, 25, UP)),
    update("metadata.version that all but one know", (METADATA, 21, UP)),
    update("metadata.version that some left", (METADATA, 17, SAFE)),
    update("group.version that some do not know", (GROUP, 1, UP)),
    update("transaction.version that one does not know", (TRANSACTION, 2, UP)),
    update("share.version that nobody knows", (SHARE, 1, UP)),
    update("share.version 0", (SHARE, 0, SAFE)),
]


def run_unsupported(side: Side) -> dict[str, Outcome]:
    for broker_id, ranges in RANGES.items():
        request = side.registration(broker_id, ranges, log_dirs=[bytes([broker_id, 7]) * 8])
        assert side.ask(request, 4).error_code == 0
    side.skip_start()
    return side.outcomes(UNSUPPORTED)


def test_refusal_names_the_unsupporting_node(on_both: Any) -> None:
    theirs, ours = on_both(run_unsupported, "3.8-IV0")
    assert ours == theirs


KRAFT_UPDATES = [
    update("validated", (KRAFT, 1, UP), validate_only=True),
    update("to 0", (KRAFT, 0, UP)),
    update("by a downgrade", (KRAFT, 1, SAFE)),
    update("with another", (KRAFT, 1, UP), (GROUP, 0, SAFE)),
    update("again", (KRAFT, 1, UP)),
    update("and back", (KRAFT, 0, UNSAFE)),
]


def run_kraft(side: Any) -> dict[str, Any]:
    side.skip_start()
    outcomes = {}
    for case in KRAFT_UPDATES:
        side.control_types.clear()
        outcome = side.outcome(case.request, case.version)
        outcomes[case.name] = (outcome, side.control_types[:], finalized(side, outcome.records))
    return outcomes


def test_upgrades_kraft_version_as_kafka_does(on_both_with_configured_voters: Any) -> None:
    theirs, ours = on_both_with_configured_voters(run_kraft)
    assert ours == theirs

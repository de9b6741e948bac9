"""The runs shipped with mockraft belong to the current suite."""

import dataclasses
from pathlib import Path

import pytest
from mockraft.conformance import baseline
from mockraft.conformance.case import ELR
from mockraft.conformance.suite import all_cases
from mockraft.conformance.target import METADATA_VERSION, Target
from mockraft.conformance.verdicts import Outcome


@pytest.mark.parametrize("name", baseline.names())
def test_a_baseline_has_the_cases_of_the_suite(name: str) -> None:
    """`mockraft conformance baseline conformance/baselines/NAME.json` writes it again."""
    kept = baseline.read(name)
    target = Target("h", 1, finalized_features={METADATA_VERSION: kept.metadata_version, ELR: 1})
    outcomes = {False: Outcome.PASSED, True: Outcome.NOT_APPLICABLE}
    assert [(each.name, each.area, each.rank, each.source, each.outcome) for each in kept.verdicts] == [
        (case.name, case.area, case.rank.value, case.source, outcomes[case.misfit(target) is not None])
        for case in all_cases()
        if not case.disruptive
    ]


def test_baselines_are_read_back_without_times(tmp_path: Path) -> None:
    kept = baseline.read("kafka-4.3.1")
    timed = dataclasses.replace(kept, seconds=3.5, cluster_id="x", target="h:1")
    baseline.write(timed, tmp_path / "kafka-4.3.1.json")
    assert baseline.read("kafka-4.3.1") == kept
    assert (tmp_path / "kafka-4.3.1.json").read_text() == (
        Path(__file__).parents[2] / "conformance" / "baselines" / "kafka-4.3.1.json"
    ).read_text()

"""The runs shipped with mockraft belong to the current suite."""

import dataclasses
import re
from pathlib import Path

from mockraft.conformance import baseline
from mockraft.conformance.case import ELR
from mockraft.conformance.suite import all_cases
from mockraft.conformance.target import Target
from mockraft.conformance.verdicts import Outcome
from mockraft.releases import METADATA_VERSION, release

from tools.baselines import write

from ..rows import each_row

LACKED = (
    r"the controller (offers \w+ \d+-\d+, not \d+|does not offer \w+)$|\w+ \d+, the newest there, has no [\w.]+$"
    r"|the quorum is static"
)


@each_row("name", baseline.names())
def test_a_baseline_has_the_cases_of_the_suite(name: str) -> None:
    """`python -m tools.baselines` writes them again."""
    kept = baseline.read(name)
    assert [(each.name, each.area, each.rank, each.source) for each in kept.verdicts] == [
        (case.name, case.area, case.rank.value, case.source) for case in all_cases() if not case.disruptive
    ]
    assert kept.failures == []
    level = kept.metadata_version
    levels = {
        METADATA_VERSION: level,
        ELR: release(name.removeprefix("kafka-")).metadata_version(level).default_levels.get(ELR, 0),
    }
    target = Target("h", 1, supported_features={METADATA_VERSION: (1, level)}, finalized_features=levels)
    misfits = [case.name for case in all_cases() if not case.disruptive and case.misfit(target) is not None]
    not_applicable = {each.name for each in kept.verdicts if each.outcome is Outcome.NOT_APPLICABLE}
    assert [each for each in misfits if each not in not_applicable] == []
    # Whatever else does not apply names the API, version or field that the release lacks; 4.3 and newer lack none.
    lacking = [each.reason for each in kept.verdicts if each.name in not_applicable - set(misfits)]
    assert [reason for reason in lacking if not re.search(LACKED, reason)] == []
    assert not lacking or not release(name.removeprefix("kafka-")).is_since("4.3")


def test_baselines_are_read_back_without_times(tmp_path: Path) -> None:
    kept = baseline.read("kafka-4.3.1")
    timed = dataclasses.replace(kept, seconds=3.5, cluster_id="x", target="h:1")
    write(timed, tmp_path / "kafka-4.3.1.json")
    assert baseline.read("kafka-4.3.1") == kept
    assert (tmp_path / "kafka-4.3.1.json").read_text() == (
        Path(__file__).parents[2] / "conformance" / "baselines" / "kafka-4.3.1.json"
    ).read_text()

"""`make release-check` of a release that mockraft does not have, from Maven and from a folder of jars."""

from __future__ import annotations

from pathlib import Path

import pytest
from mockraft.kafka.jars import jars_directory
from mockraft.releases import NEWEST

from tools.release_check.__main__ import main
from tools.release_check.steps import STEPS

from ..budgets import soak

pytestmark = [pytest.mark.real_kafka, soak]

ALL_PASSED = f"{len(STEPS)} of {len(STEPS)} steps passed"


def test_a_release_of_a_supported_line_passes_every_step(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    assert main(["4.3.0", "--report", str(report)]) == 0
    text = report.read_text()
    assert ALL_PASSED in text
    assert f"| Message specs | {NEWEST} | 4.3.0 |" in text


def test_jars_of_an_unknown_release_pass_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest release under the name of a candidate that nobody knows."""
    monkeypatch.setenv("MOCKRAFT_CACHE", str(jars_directory(NEWEST).parent))
    candidate, report = tmp_path / "libs", tmp_path / "report.md"
    candidate.mkdir()
    for jar in jars_directory(NEWEST).glob("*.jar"):
        (candidate / jar.name.replace(f"-{NEWEST}.jar", "-9.9.0-rc0.jar")).symlink_to(jar)
    assert main(["--jars", str(candidate), "--report", str(report)]) == 0
    text = report.read_text()
    assert ALL_PASSED in text
    assert f"0 differences to {NEWEST}" in text

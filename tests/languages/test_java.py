"""The Java client is generated from the OpenAPI document and compiled; its tests and the example pass."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from ..cli.cli import invoke
from .tools import ROOT, copied, run

pytestmark = [pytest.mark.languages, pytest.mark.timeout(900)]

TESTS = {"junit": 12, "example": 4}
CAPTURE = ROOT / "tests" / "captures" / "controller-4.3.1.pcap"
SAFE, UNSAFE = ({"wait": 1}, {"restart": "all"})


def saved_plan(folder: Path, name: str, step: Mapping[str, object]) -> None:
    """Save a plan as a JUnit test of the example."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps([step]))
    test = folder / "examples" / "junit" / "src" / "test" / "java" / "example" / f"{name}.java"
    options = ("--from", CAPTURE, "--at", 100, plan, "--save-test", test)
    assert invoke("twin", "plan", *options).exit_code == (step is UNSAFE)
    assert len(test.read_text().splitlines()) <= 15


def test_the_tests_of_the_java_modules_pass(tmp_path: Path) -> None:
    folder = copied(tmp_path, "clients", "examples/junit")
    saved_plan(folder, "SafePlanTest", SAFE)
    saved_plan(folder, "UnsafePlanTest", UNSAFE)
    options = ("--batch-mode", "--no-transfer-progress", "-Dmaven.test.failure.ignore=true")
    # JVMs that live for seconds: the second compiler costs more than it gains.
    quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    run(folder / "clients" / "java", "mvn", *options, "test", package="maven", **quick)
    passed = {"junit": 0, "example": 0}
    for report in folder.rglob("surefire-reports/*.txt"):
        if report.name == "example.UnsafePlanTest.txt":
            assert "Tests run: 1, Failures: 1, Errors: 0" in report.read_text()
            assert "step 1 breaks: offline: t2-0, t2-1" in report.read_text()
            continue
        found = re.search(r"Tests run: (\d+), Failures: 0, Errors: 0, Skipped: 0", report.read_text())
        assert found, report.read_text()
        passed["example" if report.name.startswith("example.") else "junit"] += int(found[1])
    assert passed == TESTS

"""The Java client is generated from the OpenAPI document and compiled; its tests and the example pass."""

import re
from pathlib import Path

import pytest

from .tools import copied, run

pytestmark = [pytest.mark.languages, pytest.mark.timeout(900)]

TESTS = {"junit": 9, "example": 3}


def test_the_tests_of_the_java_modules_pass(tmp_path: Path) -> None:
    folder = copied(tmp_path, "clients", "examples/junit")
    run(folder / "clients" / "java", "mvn", "--batch-mode", "--no-transfer-progress", "test", package="maven")
    passed = {"junit": 0, "example": 0}
    for report in folder.rglob("surefire-reports/*.txt"):
        found = re.search(r"Tests run: (\d+), Failures: 0, Errors: 0, Skipped: 0", report.read_text())
        assert found, report.read_text()
        passed["example" if report.name.startswith("example.") else "junit"] += int(found[1])
    assert passed == TESTS

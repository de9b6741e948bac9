"""Run the Java example in examples/junit with its own tools."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.languages, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "junit"


def test_the_junit_example_passes(tmp_path: Path) -> None:
    maven = shutil.which("mvn")
    assert maven is not None, "mvn was not found: install maven"
    project = tmp_path / "junit"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("target"))
    environment = os.environ | {"MOCKRAFT": f"{sys.executable} -m mockraft"}
    command = [maven, "--batch-mode", "--no-transfer-progress", "test"]
    ended = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=800)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0" in ended.stdout

"""Run the Go example in examples/go with its own tools."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.languages, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "go"


def test_the_go_example_passes(tmp_path: Path) -> None:
    go = shutil.which("go")
    assert go is not None, "go was not found: install golang-go"
    environment = os.environ | {"MOCKRAFT": f"{sys.executable} -m mockraft", "GOCACHE": str(tmp_path / "cache")}
    command = [go, "test", "-count=1", "-v", "./..."]
    ended = subprocess.run(command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("--- PASS") == 3

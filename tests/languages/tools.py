"""Copies of the clients' folders, and the tools of their languages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOCKRAFT = f"{sys.executable} -m mockraft"


def copied(folder: Path, *names: str) -> Path:
    """Copy folders of the repository; relative paths between them stay."""
    leftovers = shutil.ignore_patterns("target", "node_modules", "build")
    for name in names:
        shutil.copytree(ROOT / name, folder / name, ignore=leftovers)
    return folder


def run(folder: Path, command: str, *arguments: str, package: str, **environment: str) -> str:
    """Run a command in a folder and return its output; the test fails if the command does."""
    tool = shutil.which(command)
    if tool is None:
        pytest.fail(f"{command} was not found: install {package}")
    variables = os.environ | {"MOCKRAFT": MOCKRAFT} | environment
    ended = subprocess.run([tool, *arguments], cwd=folder, env=variables, capture_output=True, text=True, timeout=800)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout

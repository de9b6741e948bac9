"""action.yml: its script runs each check, and the page uses inputs that it has."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import yaml
from mockraft import Controller

from ..cli.test_vectors import RIGHT, saying, write_vectors
from ..rows import each_row
from .blocks import ROOT

PAGE = ROOT / "docs/how-to/checks/github-action.md"
ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text())
CAPTURE = ROOT / "tests/captures/controller-4.3.1.pcap"
EXPRESSION = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")


def check(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the step Check as a runner does, with these inputs and the others' defaults."""
    (step,) = (step for step in ACTION["runs"]["steps"] if step.get("id") == "check")
    assert inputs.keys() <= ACTION["inputs"].keys()
    values = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
    environment = {name: EXPRESSION.sub(lambda found: values[found[1]], text) for name, text in step["env"].items()}
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    (folder / "script").write_text(step["run"])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "script"],
        cwd=folder,
        env={**os.environ, **path, **environment, **files},
        capture_output=True,
        text=True,
        check=False,
    )


@each_row(
    ("inputs", "code", "summary", "cases"),
    {
        "conformance": (
            {"check": "conformance", "arguments": "--area 'producer ids' --only \"block\""},
            0,
            "# KRaft controller conformance",
            "producer ids",
        ),
        "replay": (
            {"check": "replay", "capture": str(CAPTURE), "arguments": "--port 19093 --filter ApiVersions"},
            0,
            "34 of 34 responses as captured",
            "replay to",
        ),
        "vectors": ({"check": "vectors", "codec": saying(*RIGHT)}, 0, "1 passed, 0 failed", "SnapshotHeaderRecord"),
        "a wrong codec": (
            {"check": "vectors", "codec": saying("{}")},
            1,
            "an answer is one of",
            "SnapshotHeaderRecord",
        ),
        "not expanded": ({"check": "vectors", "arguments": "'$(touch made)' ;"}, 2, "$(touch made)", None),
        "no controller": ({"check": "conformance", "bootstrap": "127.0.0.1:1"}, 6, "127.0.0.1:1", None),
    },
)
def test_check_writes_summary_and_junit(
    inputs: dict[str, str], code: int, summary: str, cases: str | None, tmp_path: Path
) -> None:
    write_vectors(tmp_path)
    with Controller.sync(release="4.3") as controller:
        done = check(tmp_path, **{"bootstrap": controller.bootstrap, **inputs})
    assert done.returncode == code, done.stdout + done.stderr
    assert summary in (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    assert not (tmp_path / "made").exists()
    junit = tmp_path / (tmp_path / "GITHUB_OUTPUT").read_text().strip().removeprefix("junit=")
    assert junit.exists() == (cases is not None)
    if cases is not None:
        assert cases in {str(each.get("name")).partition(" 127")[0] for each in ET.parse(junit).iter("testsuite")}


def test_unknown_check_is_an_error_of_the_workflow(tmp_path: Path) -> None:
    done = check(tmp_path, check="lint")
    assert (done.returncode, done.stdout) == (2, "::error::check: it is conformance, replay or vectors, not 'lint'\n")


def test_page_uses_inputs_that_exist_and_options_of_the_command() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    steps = [step for job in yaml.safe_load(block)["jobs"].values() for step in job["steps"]]
    used = [step["with"] for step in steps if step.get("uses", "").startswith("mockraft/mockraft@")]
    assert {each["check"] for each in used} == {"conformance", "replay", "vectors"}
    for each in used:
        assert each.keys() <= ACTION["inputs"].keys()
        given = [word for word in shlex.split(each["arguments"]) if word.startswith("--")]
        shown = subprocess.run(
            [sys.executable, "-m", "mockraft", each["check"], "--help"], capture_output=True, text=True, check=True
        ).stdout
        assert [word for word in given if f"{word} " not in shown] == []


def test_dev_container_runs_a_target_of_the_makefile() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make .venv/ready"
    assert (
        subprocess.run(["make", "--dry-run", ".venv/ready"], cwd=ROOT, capture_output=True, check=False).returncode == 0
    )

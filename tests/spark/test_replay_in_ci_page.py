"""docs/how-to/captures/replay-in-ci.md: its workflow is valid, and its steps run against a bucket."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from mockraft import Controller

from ..budgets import soak
from ..s3_server import S3Server

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "captures" / "replay-in-ci.md"
ACTION = re.compile(r"[\w.-]+/[\w.-]+@v\d+")


def workflow() -> Any:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return yaml.safe_load(block)


def test_workflow_has_actions_with_versions_commands_and_files_to_keep() -> None:
    found = workflow()
    # YAML 1.1 reads `on` as a boolean.
    assert found[True]["schedule"] == [{"cron": "0 5 * * 1"}]
    (job,) = found["jobs"].values()
    steps = job["steps"]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    assert all(ACTION.fullmatch(step["uses"]) for step in steps if "uses" in step)
    (kept,) = (step for step in steps if step.get("if") == "always()")
    assert kept["with"]["path"] == "replay*"


@soak
@pytest.mark.spark
def test_steps_compare_two_releases_over_a_week_in_a_bucket(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Controller.sync(brokers=1) as controller:
        controller.write_journal(tmp_path / "run.pcapng")
        port = controller.port
    week = (datetime.now(UTC) - timedelta(days=7)).strftime("%G-W%V")
    s3.put(f"s3://caps/week={week}/20261120T101500Z-ring.pcap07", (tmp_path / "run.pcapng").read_bytes())
    found = workflow()
    # Both releases are installed already, as far as the command can see, and pip installs nothing.
    cache = tmp_path / "cache"
    for version in (found["env"][name].partition("==")[2] for name in ("NEW", "IN_USE")):
        home = cache / "mockraft" / "versions" / version
        (home / "bin").mkdir(parents=True)
        (home / "installed").touch()
        (home / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (home / "bin" / "python").chmod(0o755)
    (tmp_path / "pip").write_text("#!/bin/sh\n")
    (tmp_path / "pip").chmod(0o755)
    (tmp_path / "mockraft").write_text(f'#!/bin/sh\nexec {sys.executable} -m mockraft "$@"\n')
    (tmp_path / "mockraft").chmod(0o755)
    job = found["env"] | {"CAPTURES": "s3://caps", "XDG_CACHE_HOME": str(cache)}
    environment = os.environ | {key: value for key, value in job.items() if key != "AWS_REGION"}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    (job,) = found["jobs"].values()
    scripts = [step["run"].replace("--ports 9093", f"--ports {port}") for step in job["steps"] if "run" in step]

    def run(script: str) -> subprocess.CompletedProcess[str]:
        words = ["bash", "-e", "-c", script]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    for script in scripts:
        done = run(script)
        assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "replay.json").read_text())
    assert (report["target"], report["different"]) == (found["env"]["NEW"], 0)
    assert report["sent"] > 5
    suite = ET.fromstring((tmp_path / "replay.xml").read_bytes())
    assert {case.get("name") for case in suite} >= {"BrokerRegistration", "BrokerHeartbeat"}
    assert suite.get("failures") == "0"
    assert "</html>" in (tmp_path / "replay.html").read_text()
    for name in ("rules.json", "diffs/_SUCCESS", "baseline/diffs/_SUCCESS"):
        assert (tmp_path / "replayed" / name).is_file()

    # The last option wins: the new release has another metadata.version, which ApiVersions responses tell.
    new = cache / "mockraft" / "versions" / found["env"]["NEW"].partition("==")[2] / "bin" / "python"
    new.write_text(f'#!/bin/sh\nexec {sys.executable} "$@" --metadata-version 32\n')
    done = run(scripts[-1])
    assert done.returncode == 1, done.stderr
    suite = ET.fromstring((tmp_path / "replay.xml").read_bytes())
    assert suite.get("failures") == "1"
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["ApiVersions"]

"""docs/how-to/captures/delta.md: its job with the real package, on a PySpark that it is made for."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from mockraft.kafka.jars import Artifact, copy_artifacts, made_once

from ..budgets import soak
from ..spark_replay.ring_files import a_day_later

pytestmark = [pytest.mark.spark, soak, pytest.mark.xdist_group("spark_processes"), pytest.mark.timeout(1800)]

JOB = Path(__file__).with_name("lake_job.py")
PYSPARK = "4.1.4"
PACKAGE = Artifact("io.delta", "delta-spark_4.1_2.13", "4.4.0")
FRAMES = 1726


def install_pyspark(target: Path) -> None:
    with TemporaryDirectory(dir=target.parent) as folder:
        to = Path(folder, "packages")
        words = ("pip", "install", "--quiet", "--no-deps", "--target", str(to), f"pyspark=={PYSPARK}")
        subprocess.run([sys.executable, "-m", "uv", *words, "--python", sys.executable], check=True)
        to.rename(target)


def fetch_package(target: Path) -> None:
    with TemporaryDirectory(dir=target.parent) as folder:
        jars = Path(folder, "jars")
        assert copy_artifacts([PACKAGE], Path(folder), jars, lambda line: None) == ""
        jars.rename(target)


def test_days_of_clusters_grow_a_table_and_a_repeated_day_adds_no_rows(tmp_path: Path, controller_capture: str) -> None:
    pyspark = made_once(f"pyspark-{PYSPARK}", install_pyspark)
    jars = made_once(f"{PACKAGE.name}-{PACKAGE.version}", fetch_package)
    second = a_day_later(Path(controller_capture), tmp_path / "second.pcap")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")} | {
        "PYTHONPATH": str(pyspark),
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, sorted(jars.glob('*.jar'))))} pyspark-shell",
    }
    words = [sys.executable, str(JOB), str(tmp_path), controller_capture, str(second)]
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((tmp_path / "facts.json").read_text())

    assert found["spark"] == PYSPARK
    of_older = ["2026-11-20", "prod-1", "0.1.0", FRAMES]
    first, repeated, merged = found["first"], found["repeated"], found["merged"]
    assert first["counts"] == found["then"]["counts"] == [of_older]
    assert "first_diff_offset" not in first["columns"]
    assert {"first_diff_offset", "unknown_tags"} == {*repeated["columns"]} - {*first["columns"]}
    release = repeated["counts"][1][2]
    assert repeated["counts"] == merged["counts"] == [of_older, ["2026-11-21", "prod-1", release, FRAMES]]
    assert found["other cluster"]["counts"][2:] == [["2026-11-21", "prod-2", release, 10]]
    assert found["decoded again"]["counts"][0] == ["2026-11-20", "prod-1", release, FRAMES]
    assert {each["twice"] for each in found.values() if isinstance(each, dict)} == {0}
    assert found["equal"]

"""docs/how-to/captures/delta-and-iceberg.md: its job with the real packages, on each PySpark that has some."""

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
from ..spark_replay.ring_files import a_day_later, ring_files

pytestmark = [pytest.mark.spark, soak, pytest.mark.xdist_group("spark_processes"), pytest.mark.timeout(1800)]

JOB = Path(__file__).with_name("lake_job.py")
PACKAGES = [
    ("4.0", "delta", Artifact("io.delta", "delta-spark_4.0_2.13", "4.4.0")),
    ("4.1", "delta", Artifact("io.delta", "delta-spark_4.1_2.13", "4.4.0")),
    ("4.2", "delta", Artifact("io.delta", "delta-spark_4.2_2.13", "4.4.0")),
    ("4.0", "iceberg", Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", "1.11.0")),
    ("4.1", "iceberg", Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0")),
]
FRAMES = 1726


def fetch(package: Artifact, target: Path) -> None:
    with TemporaryDirectory(dir=target.parent) as folder:
        jars = Path(folder, "jars")
        assert copy_artifacts([package], Path(folder), jars, lambda line: None) == ""
        jars.rename(target)


def facts_of(kind: str, package: Artifact, folder: Path, capture: str) -> dict[str, Any]:
    jars = made_once(f"{package.name}-{package.version}", lambda target: fetch(package, target))
    second = a_day_later(Path(capture), folder / "second.pcap")
    ring = ring_files(Path(capture), folder / "ring", 4)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")} | {
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, sorted(jars.glob('*.jar'))))} pyspark-shell"
    }
    words = map(str, [sys.executable, JOB, kind, folder, capture, second, *ring])
    done = subprocess.run([*words], env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((folder / "facts.json").read_text())
    return found


@pytest.mark.parametrize(
    ("kind", "package"),
    [
        pytest.param(kind, package, marks=pytest.mark.needs_pyspark(pyspark, exactly=True), id=f"{kind}-{pyspark}")
        for pyspark, kind, package in PACKAGES
    ],
)
def test_table_grows_by_days_and_by_files_without_a_row_twice(
    tmp_path: Path, controller_capture: str, kind: str, package: Artifact
) -> None:
    found = facts_of(kind, package, tmp_path, controller_capture)

    of_older = ["2026-11-20", "prod-1", "0.1.0", FRAMES]
    first, repeated, merged = (found[name] for name in ("first", "repeated", "merged"))
    assert first["counts"] == found["then"]["counts"] == [of_older]
    assert "first_diff_offset" not in first["columns"]
    assert {"first_diff_offset", "unknown_tags"} == {*repeated["columns"]} - {*first["columns"]}
    release = repeated["counts"][1][2]
    assert repeated["counts"] == merged["counts"] == [of_older, ["2026-11-21", "prod-1", release, FRAMES]]
    assert found["other cluster"]["counts"][2:] == [["2026-11-21", "prod-2", release, 10]]
    assert found["decoded again"]["counts"][0] == ["2026-11-20", "prod-1", release, FRAMES]
    assert {each["twice"] for each in found.values() if isinstance(each, dict)} == {0}
    assert found["equal"]
    assert found["unpaired"][1] < found["unpaired"][0]  # the second file completes rows of the first
    assert found["equal to the whole"]

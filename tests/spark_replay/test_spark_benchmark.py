"""The output of benchmarks/spark.py for measured and missing values."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MEBIBYTE = 1 << 20


@pytest.fixture
def spark_results(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import spark_results

    return spark_results


def measured(spark_results: Any) -> Any:
    """Two rounds, of which Spark took a tenth and the core an eighth of tshark's time, and three sizes."""
    results = spark_results.Results(2_000_000, 2, file_bytes=500_000_000, stream_bytes=350_000_000)
    results.pairs = [spark_results.Pair((40.0, 1500 * MEBIBYTE), 5.0, 4.0, 200 * MEBIBYTE, 4.0, 7.0) for _ in range(2)]
    results.decode_frames_per_s = [400_000.0, 600_000.0]
    results.shuffle_bytes = 60_000_000
    results.workers = {10_000_000: {"python": 300 * MEBIBYTE, "java": 2000 * MEBIBYTE}}
    for packets, seconds in ((100_000, 0.4), (1_000_000, 2.0), (10_000_000, 21.0)):
        results.row(packets).update({"Spark": seconds, "core": seconds})
    return results


def test_gates_are_medians_of_ratios_and_cost_is_compared_between_the_two_largest_files(spark_results: Any) -> None:
    gates = {gate.what: float(gate.measured) for gate in spark_results.result(measured(spark_results)).gates}
    assert gates == {
        "Spark, frames to Parquet on two cores: tshark's time ÷ Spark's": 10.0,
        "core in one process: tshark's time ÷ the core's": 8.0,
        "frames decoded, encoded again and compared per second, two cores": 500_000,
        "Spark, time on one core ÷ time on two": 1.75,
        "memory of a Python worker of Spark, most, MiB": 300,
        "Spark: cost of a packet in the largest file ÷ cost in the next smaller one": 1.05,
        "core: cost of a packet in the largest file ÷ cost in the next smaller one": 1.05,
    }


def test_terabyte_estimate_follows_the_measurement(spark_results: Any) -> None:
    (terabyte, shuffle) = spark_results.result(measured(spark_results)).summary
    assert "125 MB/s on two cores, 62 MB/s a core" in terabyte
    assert "= 4.4 hours of a core: 5 cores for one hour, 27 for ten minutes" in terabyte
    assert "0.12 of it" in shuffle


def test_missing_measurements_are_named_without_figure(spark_results: Any) -> None:
    results = spark_results.Results(1000, 1, missing=["tshark (Debian package tshark)"])
    results.pairs = [spark_results.Pair(None, 5.0, 4.0, MEBIBYTE, 4.0, 7.0)]
    made = spark_results.result(results)
    assert made.summary[-1] == "Not measured: tshark (Debian package tshark)."
    assert [gate.what for gate in made.gates] == ["Spark, time on one core ÷ time on two"]
    assert type(made).from_json(made.to_json()) == made


def test_help_names_commands_and_durations() -> None:
    command = [sys.executable, "-B", str(BENCHMARKS / "spark.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "about six minutes on a quiet machine" in done.stdout
    assert "--minutes" in done.stdout

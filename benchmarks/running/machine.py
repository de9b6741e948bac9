"""The first section of docs/evidence/benchmarks.md: commit, machine, versions and the parts of the run."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.wire import codec_path
from result import SPREAD_MAX, Cell, Table
from running.runner import RUNS_MAX, Runner

PACKAGES = ("mockraft", "mockraft-speed", "kio", "kafka-python", "confluent-kafka", "pyspark")
PROGRAMS = {
    "java": ("java", "-version"),
    "C compiler": ("cc", "--version"),
    "Go": ("go", "version"),
    "Rust": ("rustc", "--version"),
    "tshark": ("tshark", "--version"),
}


def first_line(*command: str) -> str:
    """Return the first line of what a program writes to stdout, else to stderr, or why there is none."""
    if shutil.which(command[0]) is None:
        return "not installed"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return ((done.stdout or done.stderr).splitlines() or [""])[0].strip()


def package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """Return the model of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def commit(root: Path) -> str:
    """Return the commit, and whether files other than the page differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/evidence/benchmarks*")
    return f"`{git('rev-parse', '--short=12', 'HEAD') or 'unknown'}`" + (" with changes" if changed else "")


def versions() -> list[list[Cell]]:
    """Return machine, programs and packages as rows."""
    memory = psutil.virtual_memory().total / (1 << 30)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    rows: list[list[Cell]] = [
        ["processor", f"{os.cpu_count()} × {processor()}, {memory:.0f} GiB"],
        ["system", f"{platform.system()} {platform.release()} {platform.machine()}"],
        ["load averages at the end (1, 5, 15 minutes)", load],
        ["Python", platform.python_version()],
        ["mockraft's codec, where a table does not name it", codec_path.path],
        ["Kafka", KAFKA_VERSION],
    ]
    rows += [[name, first_line(*command)] for name, command in PROGRAMS.items()]
    rows += [[name, package_version(name)] for name in PACKAGES]
    return rows


def introduction(root: Path, runner: Runner) -> list[str]:
    """Return the lines before the sections of the benchmarks."""
    parts: list[list[Cell]] = [
        [name, len(part.runs), f"{part.expected_s:.0f}", ", ".join(f"{each:.0f}" for each in part.seconds)]
        for name, part in runner.parts.items()
    ]
    uncertain = ", ".join(part.name for part in runner.uncertain) or "none"
    gates = [gate for part in runner.parts.values() for gate in part.result.gates] + [runner.duration()]
    missed = [gate for gate in gates if not gate.holds]
    return [
        "# Benchmarks",
        "",
        "`make benchmarks` writes this page, all of it in one run. mockraft and the other implementations are measured "
        "in the same run on the same machine. Compare ratios; single figures depend on the machine.",
        "",
        f"Measured {datetime.now(UTC):%Y-%m-%d} from commit {commit(root)}: {len(gates) - len(missed)} of {len(gates)} "
        "bounds are met.",
        "",
        *(f"- Not met: {gate.what}: {gate.measured} (required {gate.bound})." for gate in missed),
        *([""] if missed else []),
        f"A benchmark is repeated, up to {RUNS_MAX} runs in all, while it misses a bound, or while its rounds differ "
        f"by more than {100 * SPREAD_MAX:.0f} % of their median and lie on both sides of a bound. The median of all "
        "runs is judged; spread is largest minus smallest of all rounds, as a share of the median. Tables are of the "
        f"newest run. Still uncertain at the end: {uncertain}.",
        "",
        "## The run",
        "",
        *Table("", ["machine and versions", ""], versions()).lines(),
        "",
        *Table("", ["benchmark", "runs", "expected s", "s"], parts).lines(),
        "",
        *Table("", ["bound", "measured", "spread", "runs", "required", "met"], [runner.duration().row()]).lines(),
        "",
    ]

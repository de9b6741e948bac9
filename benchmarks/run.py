"""Run the benchmarks one after the other and write docs/evidence/benchmarks.md.

make benchmarks                              run all and write the whole page
make benchmarks ARGS='codec double'          run two and print their sections
make benchmarks ARGS='--write codec double'  run two and write their sections of the page

Each benchmark compares mockraft with other implementations in the same run:

codec       encoding and decoding of messages, with kio and kafka-python
controller  throughput, latency and memory, with Kafka's controller
growth      cost of a request in clusters of 100 to 100,000 topics or brokers
fleet       10,000 simulated brokers, on mockraft and on Kafka's controller
startup     time until a controller accepts connections and three brokers run
failover    time without an active controller after the active one is killed
double      cost of stubs; request rate of other test doubles
fairness    a broker's heartbeats beside hostile clients, on mockraft and on Kafka's controller
plugin      cost of the pytest plugin, of a new controller and of a reset
spark       frames of a capture on Spark, with tshark

The exit code is 1 if a bound is not met. A benchmark also runs alone: python benchmarks/codec.py --quick
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from picture import draw
from result import Result, end_on_signals

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evidence" / "benchmarks.md"
BENCHMARKS = ("codec", "controller", "growth", "fleet", "startup", "failover", "double", "fairness", "plugin", "spark")


def main() -> int:
    end_on_signals()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="BENCHMARK", help="default: all")
    parser.add_argument("--write", action="store_true", help="write their sections; keep the others")
    options = parser.parse_args()
    names = options.only or BENCHMARKS
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    results = [run(name) for name in names]
    sections = {result.title: result.section(name) for name, result in zip(names, results, strict=True)}
    if options.only and options.write:
        sections = written_sections() | sections
    page = "\n".join([introduction(), *sections.values()])
    if options.only and not options.write:
        print(page)
    else:
        for name, result in zip(names, results, strict=True):
            if result.picture is not None:
                draw(result.picture, PAGE.parent / f"benchmarks-{name}.svg")
        PAGE.write_text(page)
        print(f"{PAGE.relative_to(ROOT)} written")
    missed = [gate for result in results for gate in result.gates if not gate.holds]
    for gate in missed:
        print(f"bound not met: {gate.what}: {gate.measured} (required {gate.bound})", file=sys.stderr)
    return 1 if missed else 0


def written_sections() -> dict[str, str]:
    """Return the sections of the present page by title."""
    _, *texts = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)
    return {text.partition("\n")[0].removeprefix("## "): text.rstrip("\n") + "\n" for text in texts}


def run(name: str) -> Result:
    """Run one benchmark in a process of its own."""
    print(f"running {name} …", file=sys.stderr, flush=True)
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            process.terminate()  # it stops its servers; `subprocess.run` would leave them
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Result.from_json(output)


def introduction() -> str:
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "`make benchmarks` writes this page. mockraft and the other implementations are measured in the same run "
            "on the same machine. Compare ratios; single figures depend on the machine.",
            "",
            f"Measured {datetime.now(UTC):%Y-%m-%d} with Python {platform.python_version()} on {os.cpu_count()} cores "
            f"({platform.system()} {platform.machine()}).",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())

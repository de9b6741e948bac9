"""Run the benchmarks one after the other and write docs/evidence/benchmarks.md.

make benchmarks                              run all and write the whole page
make benchmarks ARGS='codec double'          run two and print their sections

Each benchmark compares mockraft with other implementations in the same run:

codec       encoding and decoding of messages, with kio and kafka-python, and libraries in Go and Rust
controller  throughput, latency and CPU time, with Kafka's controller
cluster     single operations, memory and pauses with 100,000 partitions, with Kafka's controller
growth      cost of a request in clusters of 100 to 100,000 topics or brokers
fleet       10,000 simulated brokers, on mockraft and on Kafka's controller
startup     time until a controller accepts connections and three brokers run
failover    time without an active controller after the active one is killed
double      cost of stubs; request rate of other test doubles
fairness    a broker's heartbeats beside hostile clients, on mockraft and on Kafka's controller
plugin      cost of the pytest plugin, of a new controller, of a reset, and of a first test in Go and Java
spark       frames of a capture on Spark, with tshark

A benchmark with a missed bound, or with rounds that differ too much, is repeated before it is judged
(running/runner.py). The exit code is 1 if a bound is not met. A benchmark also runs alone:
python benchmarks/codec.py --quick
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from result import ROOT, Result, end_on_signals
from running.machine import introduction
from running.picture import draw
from running.runner import Runner

PAGE = ROOT / "docs" / "evidence" / "benchmarks.md"
EXPECTED_S = {
    "codec": 60,
    "controller": 180,
    "cluster": 60,
    "growth": 60,
    "fleet": 90,
    "startup": 60,
    "failover": 40,
    "double": 60,
    "fairness": 150,
    "plugin": 80,
    "spark": 220,
}
"""Seconds of one run on a quiet machine with two cores, programs of other languages compiled."""
OPTIONS = {"spark": ("--packets", "1000000", "--sizes", "100000,1000000", "--minutes", "5")}
"""Smaller than its defaults, so that all fit into the limit."""
PART_S_MAX = 600
"""A benchmark that takes longer is ended, and has failed."""
LAST_OUTPUT_S_MAX = 30


def main() -> int:
    end_on_signals()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="BENCHMARK", help="default: all; their sections are printed")
    options = parser.parse_args()
    names = options.only or list(EXPECTED_S)
    if unknown := set(names) - set(EXPECTED_S):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(EXPECTED_S)}")
    runner = Runner({name: EXPECTED_S[name] for name in names}, measure, say)
    runner.run()
    sections = [part.result.section(name) for name, part in runner.parts.items()]
    page = "\n".join([*introduction(ROOT, runner), *sections])
    if options.only:
        print(page)
    else:
        for name, part in runner.parts.items():
            if part.result.picture is not None:
                draw(part.result.picture, PAGE.parent / f"benchmarks-{name}.svg")
        PAGE.write_text(page)
        say(f"{PAGE.relative_to(ROOT)} written")
    lines, code = runner.verdict()
    print("\n".join(lines))
    return code


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(name: str) -> Result:
    """Run one benchmark in a process of its own."""
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *OPTIONS.get(name, ()), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            output, _ = process.communicate(timeout=PART_S_MAX)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                output, _ = process.communicate(timeout=LAST_OUTPUT_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
        except BaseException:
            process.terminate()  # it stops its servers; `subprocess.run` would leave them
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Result.from_json(output)


if __name__ == "__main__":
    sys.exit(main())

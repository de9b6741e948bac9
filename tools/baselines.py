"""`python -m tools.baselines`: run all cases on Kafka's own controllers, and write conformance/baselines anew.

Kafka's jars are fetched once by Maven; Java 17 or newer is needed. A controller takes about a minute. All releases
together also write exchanges.json, for `mockraft conformance diff`. The command stops at a run in which Kafka fails a
case: the case is wrong.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from mockraft.conformance.observed import variants
from mockraft.conformance.verdicts import Run
from mockraft.releases import SUPPORTED, release

from tools.on_kafka import run_on_kafka

FOLDER = Path(__file__).parents[1] / "conformance" / "baselines"
KEPT = ("name", "area", "rank", "source", "outcome", "reason")


def main() -> None:
    """Write the runs of the versions that the command line names, as a rule all."""
    parser = argparse.ArgumentParser(prog="python -m tools.baselines", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="as 4.4.0; default: every supported one")
    versions = parser.parse_args().versions
    runs = {}
    for version in versions or SUPPORTED:
        with tempfile.TemporaryDirectory(prefix="mockraft-") as directory:
            found = run_on_kafka(Path(directory), version=version, observe=not versions)
        print(f"kafka-{version}: " + ", ".join(f"{number} {outcome}" for outcome, number in found.count().items()))
        if found.failures:
            raise SystemExit("\n".join(f"kafka-{version}: {each.name}: {each.reason}" for each in found.failures))
        write(found, FOLDER / f"kafka-{version}.json")
        runs[release(version).name] = found
    if not versions:
        write_exchanges(runs, FOLDER / "exchanges.json")


def write(found: Run, path: Path) -> None:
    """Write a run in a short form: one line per case, without times and details."""
    head = {"target": path.stem, "cluster_id": "", "metadata_version": found.metadata_version, "release": found.release}
    verdicts = [{key: tree[key] for key in KEPT if tree[key]} for tree in map(asdict, found.verdicts)]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in verdicts)
    path.write_text(f'{json.dumps(head)[:-1]}, "verdicts": [\n{lines}\n]}}\n', encoding="utf-8")


def write_exchanges(runs: Mapping[str, Run], path: Path) -> None:
    """Write the exchanges of the cases that differ, a line for each case."""
    lines = (f"{json.dumps(name)}: {json.dumps(kept, ensure_ascii=False)}" for name, kept in variants(runs).items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Every benchmark of this folder, one after the other; writes docs/benchmarks.md. `make benchmarks`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from picture import draw

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
BENCHMARKS = ("codec", "controller", "growth", "fleet", "startup", "failover", "double", "plugin", "spark")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the benchmarks and write docs/benchmarks.md.")
    parser.add_argument("only", nargs="*", help="some of them; prints and writes nothing")
    options = parser.parse_args()
    names = options.only or BENCHMARKS
    results = [run(name) for name in names]
    page = "\n".join([introduction(), *(section(name, result) for name, result in zip(names, results, strict=True))])
    if options.only:
        print(page)
    else:
        for name, result in zip(names, results, strict=True):
            if "picture" in result:
                draw(result["picture"], PAGE.parent / f"benchmarks-{name}.svg")
        PAGE.write_text(page)
        print(f"{PAGE.relative_to(ROOT)} written")
    missed = [gate for result in results for gate in result.get("gates", []) if not holds(gate)]
    for gate in missed:
        print(f"missed: {gate['what']}: {gate['measured']} (wanted {bound(gate)})", file=sys.stderr)
    return 1 if missed else 0


def run(name: str) -> dict[str, Any]:
    print(f"running {name} …", file=sys.stderr, flush=True)
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def introduction() -> str:
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "`make benchmarks` measures and writes this page. Every figure of a peer comes from the same run on the "
            "same machine as ours; ratios are what to read, single figures move with the machine.",
            "",
            f"Written {datetime.now(UTC):%Y-%m-%d} with Python {platform.python_version()} on {os.cpu_count()} cores "
            f"({platform.system()} {platform.machine()}).",
            "",
        ]
    )


def section(name: str, result: dict[str, Any]) -> str:
    lines = [f"## {result['title']}", "", result["about"], ""]
    for table in result["tables"]:
        lines += [f"### {table['title']}", "", row(table["columns"]), row(["---"] * len(table["columns"]))]
        lines += [row(cells) for cells in table["rows"]] + [""]
    if "picture" in result:
        lines += [f"![{result['picture']['title']}](benchmarks-{name}.svg)", ""]
    lines += [f"- {line}" for line in result.get("summary", [])]
    gates = result.get("gates", [])
    if gates:
        lines += ["", "| what is held | measured | wanted | |", "| --- | --- | --- | --- |"]
        lines += [
            row([gate["what"], gate["measured"], bound(gate), "yes" if holds(gate) else "**no**"]) for gate in gates
        ]
    return "\n".join([*lines, ""])


def row(cells: list[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def bound(gate: dict[str, Any]) -> str:
    return f"≥ {gate['at_least']}" if "at_least" in gate else f"≤ {gate['at_most']}"


def holds(gate: dict[str, Any]) -> bool:
    measured = float(gate["measured"])
    return bool(measured >= gate["at_least"] if "at_least" in gate else measured <= gate["at_most"])


if __name__ == "__main__":
    sys.exit(main())

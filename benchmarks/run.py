"""Every benchmark of this folder, one after the other; writes docs/benchmarks.md. `make benchmarks`.

make benchmarks                              all of them, the page anew
make benchmarks ARGS='codec double'          these two, printed
make benchmarks ARGS='--write codec double'  these two, their sections of the page anew
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="BENCHMARK", help=f"some of {', '.join(BENCHMARKS)}")
    parser.add_argument("--write", action="store_true", help="write the sections of those, and leave the others")
    options = parser.parse_args()
    names = options.only or BENCHMARKS
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    results = [run(name) for name in names]
    sections = {result["title"]: section(name, result) for name, result in zip(names, results, strict=True)}
    if options.only and options.write:
        sections = written_sections() | sections
    page = "\n".join([introduction(), *sections.values()])
    if options.only and not options.write:
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


def written_sections() -> dict[str, str]:
    """The page's sections by their titles, as they are."""
    _, *texts = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)
    return {text.partition("\n")[0].removeprefix("## "): text.rstrip("\n") + "\n" for text in texts}


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

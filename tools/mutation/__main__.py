"""`make mutants ARGS='server/raft --sample 1000'`: change the code of a package and see whether its tests notice."""

from __future__ import annotations

import argparse
import datetime
import os
import random
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from .judge import Judge, MutantVerdict
from .mutants import drawn_from

CONFIG = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mockraft-mutants"]
EPILOG = """\
Each mutant is one small change: `<` to `<=`, `and` to `or`, a number plus one, an argument left out. A mutant that
no test notices (a survivor) is a missing test, or code that does nothing. The first run of a package's tests finds
which test reaches which line; then each mutant runs only the tests that reach it, in a process of its own.

examples:
  make mutants ARGS='server/raft --sample 100'
  make mutants ARGS='server/raft --only server/raft/leading.py'
  make mutants ARGS='kafka_api --sample 1000 --seed 7 --fail-under 90'
  make mutants ARGS='server/raft --again run.log'
"""


def main() -> int:
    """Judge a sample of one package's mutants and print survivors and a row for docs/evidence/mutation-testing.md."""
    parser = argparse.ArgumentParser(
        prog="make mutants", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("package", choices=sorted(CONFIG), help="as in [tool.mockraft-mutants] of pyproject.toml")
    parser.add_argument("--sample", type=int, default=1000, help="number of mutants (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--only", type=Path, help="mutate one file or folder of the package")
    parser.add_argument("--again", type=Path, help="only the survivors that an earlier run printed into this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: CPUs)")
    parser.add_argument("--fail-under", type=float, default=0.0, help="exit code 1 below this percentage killed")
    if len(sys.argv) == 1:
        parser.print_help()
        return 0
    args = parser.parse_args()
    chosen = CONFIG[args.package]
    sources = [args.only] if args.only else [Path(each) for each in chosen["sources"]]
    paths = sorted({path for source in sources for path in ([source] if source.is_file() else source.rglob("*.py"))})
    mutants = drawn_from(paths, random.Random(args.seed))
    if args.again:
        survivors = set(args.again.read_text().splitlines())
        mutants = [mutant for mutant in mutants if str(mutant) in survivors]
    judge = Judge(mutants, args.sample, args.jobs)
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "-q", "--hypothesis-seed=0", "-o", "timeout=0", f"--basetemp={folder}/tests"]
        pytest.main([*options, "-o", "tmp_path_retention_policy=none", *chosen["tests"]], plugins=[judge])
    if judge.failed:
        print(*judge.failed, "the tests must pass before mutants can be judged", sep="\n", file=sys.stderr)
        return 2
    if not judge.killed + judge.counts[MutantVerdict.SURVIVED]:
        print("no mutant was tried: no test runs the code, or none could be put in place", file=sys.stderr)
        return 2
    print(f"\n{len(judge.survivors)} survivors:", *judge.survivors, sep="\n")
    percent = 100 * judge.killed / judge.counted
    print(
        "\n| package | mutants in all | tried | killed | of these by a limit | survived | killed % | date |",
        f"| `{args.package}` | {len(mutants):,} | {judge.counted:,} | {judge.killed:,}"
        f" | {judge.counts[MutantVerdict.TIMED_OUT]} | {len(judge.survivors)} | {percent:.1f}"
        f" | {datetime.date.today()} |",
        sep="\n",
    )
    return int(percent < args.fail_under)


if __name__ == "__main__":
    sys.exit(main())

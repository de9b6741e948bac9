"""`python -m mockraft.codegen`: generate the code of `wire` from Kafka's schemas."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import mockraft.schemas_json
import mockraft.wire
from mockraft.codegen import compare
from mockraft.codegen.generate import generate_release, stale, write
from mockraft.codegen.spec import SpecError
from mockraft.releases import NEWEST

_EPILOG = """\
other command:
  python -m mockraft.codegen compare --help    list every difference between two releases

Files are written where `mockraft.wire` is, so run it from a checkout installed with `pip install -e .`.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 1 if `--check` finds a difference and 2 for a faulty schema."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["compare"]:
        return compare.main(arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        files = generate_release(options.schemas / options.release)
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.check:
        return _check(files, options.target)
    changes = write(files, options.target)
    print(f"{len(files)} files, {len(changes)} written or deleted")
    return 0


def _check(files: dict[str, str], target: Path) -> int:
    differences = stale(files, target)
    for difference in differences:
        print(difference)
    if differences:
        print("run `python -m mockraft.codegen` and commit what it writes", file=sys.stderr)
    return 1 if differences else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mockraft.codegen",
        description="Generate mockraft.wire.messages, .records, error_codes and api_keys from Kafka's schemas.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 and name each file that is not current"
    )
    parser.add_argument("--release", default=NEWEST, help="the Kafka release to generate from (default: %(default)s)")
    parser.add_argument(
        "--schemas",
        type=Path,
        default=_folder(mockraft.schemas_json),
        help="where the releases' folders are (default: %(default)s)",
    )
    parser.add_argument(
        "--target",
        type=Path,
        default=_folder(mockraft.wire).parent,
        help="the folder that holds `wire` (default: %(default)s)",
    )
    return parser


def _folder(package: object) -> Path:
    return Path(next(iter(package.__path__)))  # type: ignore[attr-defined]


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has enough (`compare … | head`). Python writes the rest at its end, so it gets another place.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)

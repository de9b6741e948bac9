"""`python -m mockraft.codegen`: generate the code of `wire` from Kafka's schemas."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import mockraft.schemas_json
import mockraft.wire
from mockraft.codegen.generate import generate_release, stale, write
from mockraft.codegen.spec import SpecError
from mockraft.releases import NEWEST

_EPILOG = "Files are written where `mockraft.wire` is, so run it from a checkout installed with `pip install -e .`."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 1 if `--check` finds a difference and 2 for a faulty schema."""
    options = _parser().parse_args(argv)
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
    sys.exit(main())

"""`python -m tools.compare_releases OLD NEW`: the differences between two releases, as Kafka's jars have them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from mockraft.codegen.spec_changes import compare
from mockraft.releases import SUPPORTED, Release, release
from mockraft.releases.changes import as_text


def main(arguments: list[str]) -> int:
    """Run the command; return its exit code: 0 with or without differences, 2 for a name that is not a release."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.compare_releases",
        description="List the differences between two releases: message specs, APIs on the controller's listener, "
        "features and their levels, metadata versions, configuration keys with defaults and bounds, error codes.",
        epilog=f"example: python -m tools.compare_releases {SUPPORTED[-2]} {SUPPORTED[-1]} --json",
    )
    parser.add_argument("old", help="a release (4.3 or 4.3.1), or a folder that `make sync` wrote")
    parser.add_argument("new", help="the same")
    parser.add_argument("--json", action="store_true", help="a JSON list of {kind, what, before, since}")
    options = parser.parse_args(arguments)
    try:
        old, new = (find_release(name) for name in (options.old, options.new))
    except FileNotFoundError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    found = compare(old, new)
    if options.json:
        print(json.dumps([each.as_tree() for each in found], indent=1, ensure_ascii=False))
        return 0
    for line in as_text(found):
        print(line)
    print(f"{len(found)} differences between Kafka {old.kafka_version} and {new.kafka_version}")
    return 0


def find_release(name: str) -> Release:
    """Return the release of a name, or of a folder. Raises FileNotFoundError, which tells how to fetch it.

    A folder under `schemas_json` here comes first, so that a release that was just fetched is found.
    """
    for folder in (Path(name), Path("schemas_json") / name):
        if (folder / "features.json").is_file():
            return Release(folder.resolve().name, folder.resolve().parent)
    known = {text for version in SUPPORTED for text in (version, version.rpartition(".")[0])}
    if name in known:
        return release(name)
    raise FileNotFoundError(
        f"{name} is neither a folder that `make sync` wrote nor one of {', '.join(SUPPORTED)} "
        f"(fetch it: make sync X={name})"
    )


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has enough (`… | head`). Python writes the rest at its end, so it gets another place.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)

"""`make sync`: write the specs and facts of a Kafka release into schemas_json."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mockraft.kafka.release_tables import SyncError, sync
from mockraft.releases import NEWEST


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the release; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="make sync",
        description="Read message specs, error codes, features, configuration keys and API versions from a release's "
        "jars, which Maven fetches (Java 17+ and mvn needed).",
        epilog=f"then: python -m tools.compare_releases {NEWEST} X, and see CONTRIBUTING.md for the rest of the way",
    )
    parser.add_argument("kafka_version", metavar="X", help=f"a release on Maven, such as {NEWEST}")
    parser.add_argument("--into", type=Path, default=Path("schemas_json"), help="the folder of releases (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        folder = sync(options.kafka_version, options.into)
    except SyncError as error:
        print(f"sync: {error}", file=sys.stderr)
        return 1
    print(f"{folder}: {sum(1 for _ in folder.rglob('*.json'))} files from Kafka {options.kafka_version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

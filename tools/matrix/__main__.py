"""`make matrix`: write the tables of docs/evidence/matrix.md, after measuring some of its data anew if asked."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from mockraft.releases import SUPPORTED

from . import captured, controllers, page

EPILOG = """\
evidence:
  controllers    mockraft's controller of each release against the kept runs of Kafka's own (half a minute)
  captures       traffic of a real cluster of each release (Java, Maven and dumpcap; ten minutes)

examples:
  make matrix                                              the page, from what is kept
  make matrix ARGS='controllers captures'                  both measured anew
  make matrix ARGS='captures --kafka-version 4.4.0'        one capture
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, with a line of progress for each release, and write the page. Return 1 if a controller differs."""
    parser = argparse.ArgumentParser(
        prog="make matrix", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measured", nargs="*", metavar="EVIDENCE", help="measure anew: controllers, captures")
    parser.add_argument("--kafka-version", choices=SUPPORTED, action="append", help="only this one; may be repeated")
    options = parser.parse_args(argv)
    if unknown := {*options.measured} - {"controllers", "captures"}:
        parser.error(f"{min(unknown)!r} is neither controllers nor captures")
    # Cases about refused requests would fill the screen with the controller's own warnings.
    logging.disable(logging.WARNING)
    differing = 0
    for version in options.kafka_version or SUPPORTED:
        if "controllers" in options.measured:
            compared = controllers.compare(version)
            controllers.keep(compared)
            differing += len(compared["differing"])
            _print(f"{version}: {compared['cases']} cases, {len(compared['differing'])} differ")
        if "captures" in options.measured:
            found = captured.capture(version)
            captured.keep(found)
            _print(f"{version}: {found['decoded']} of {found['frames']} captured frames are decoded")
    page.write()
    _print(f"wrote {page.PAGE.name}")
    return 1 if differing else 0


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())

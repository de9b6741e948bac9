"""`make release-check X=4.5.0`: what of mockraft fails with a Kafka release.

What the release changes is printed by `mockraft release-check`, which the target runs first.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mockraft.kafka.jars import VERSION, KafkaUnavailableError
from mockraft.kafka.jars_folder import link_into, version_of
from mockraft.releases import NEWEST

from .report import NOT_ALL_RAN, as_markdown, exit_code, run_steps, summary
from .steps import STEPS, fetch_jars
from .subject import Subject

EPILOG = f"""\
steps:
{chr(10).join(f"  {each.name:<12} {each.question}" for each in STEPS)}

exit codes:
  0 all passed; 1 something of mockraft fails with the release; 2 Kafka or a step could not run, and a line says why

examples:
  make release-check X=4.5.0
  make release-check JARS=~/kafka/libs     a release candidate, or what ./gradlew releaseTarGz built from trunk
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run all steps with progress on standard output, write the report, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="make release-check",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("version", nargs="?", help="X: a release on Maven, such as 4.5.0")
    parser.add_argument("--jars", type=Path, metavar="DIR", help="JARS: a folder with every jar of a distribution")
    parser.add_argument("--report", type=Path, metavar="FILE", help="default: build/release-check-VERSION.md")
    options = parser.parse_args(argv)
    if (options.version is None) == (options.jars is None):
        parser.error("name a release (X=4.5.0) or a folder of jars (JARS=DIR), one of them")
    if options.version is not None and not re.fullmatch(VERSION, options.version):
        parser.error(f"{options.version!r} is not a Kafka release: give it as in 4.5.0, 4.5.0-rc0 or 4.5.0-SNAPSHOT")
    with tempfile.TemporaryDirectory(prefix="mockraft-release-check-") as folder:
        version = options.version
        try:
            if options.jars is not None:
                version = version_of(options.jars)
                link_into(Path(folder, "cache"), options.jars, version)
                os.environ["MOCKRAFT_CACHE"] = str(Path(folder, "cache"))
            subject = Subject(version, Path(folder), lambda line: _print(f"      {line}"))
            fetch_jars(subject)
        except KafkaUnavailableError as error:
            print(f"release-check: {error}", file=sys.stderr)
            return NOT_ALL_RAN
        return _check(subject, options.report or Path(f"build/release-check-{version}.md"))


def _check(subject: Subject, report: Path) -> int:
    results = run_steps(STEPS, subject, _print)
    version = subject.kafka_version
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(as_markdown(results, f"Kafka {version}, checked against {NEWEST}"), encoding="utf-8")
    print(f"Kafka {version}: {summary(results)}. Report: {report}")
    return exit_code(results)


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""`mockraft release-check`: what a Kafka release, or a candidate for one, changes in comparison with the one before."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.kafka.jars import VERSION, KafkaUnavailableError, jars_directory, java
from mockraft.kafka.jars_folder import version_of
from mockraft.kafka.release_tables import SyncError
from mockraft.kafka.release_verdict import Built, Verdict, judge, predecessor
from mockraft.kafka_api.options import OptionError, blaming, option

NAME = "release-check"
ABOUT = """Check a Kafka release, or a candidate for one, before a vote: what it changes against the one before.

Reads the classes of both: message specs, APIs of the controller, features and metadata versions, configuration keys,
error codes, and the methods of the controller's classes that changed. Starts no Kafka. Prints a page in Markdown that
fits into a mail; the first lines are what to look at. Java 17 (a JDK); Maven fetches the release before.

  mockraft release-check --kafka-version 4.4.0
  mockraft release-check --jars kafka_2.13-4.5.0/libs
  mockraft release-check --jars kafka_2.13-4.4.1/libs --against 4.4.0 --json

""" + exit_codes(ExitCode.MISSING, done="nothing to look at", failed="something to look at")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft release-check`."""

    kafka_version: str | None = option(None, metavar="X", help="A release on Maven, as in 4.4.0.")
    jars: Path | None = option(None, metavar="DIR", help="The libs folder of a distribution, such as a candidate's.")
    against: str | None = option(
        None,
        metavar="X|DIR",
        help="The release to compare with, or its libs folder. Default: the patch release before, or the newest one of"
        " the line before.",
    )
    as_json: bool = option(False, "--json", help="All as JSON.")


def release_check(options: Options) -> None:
    """Print the verdict."""
    if (options.kafka_version is None) == (options.jars is None):
        raise OptionError("name a release (--kafka-version 4.4.0) or a folder of jars (--jars DIR), one of them")
    try:
        java()
        verdict = _verdict(options)
    except KafkaUnavailableError as error:
        _end(error, "candidates are rarely on Maven: --jars DIR takes the libs folder of a distribution")
    except SyncError as error:
        _end(error, "are all jars of the distribution in the folder?")
    if options.as_json:
        print(json.dumps(verdict.as_tree(), indent=1, ensure_ascii=False))
    else:
        print(verdict.as_markdown(), end="")
    if verdict.points:
        raise SystemExit(ExitCode.FAILED)


def _verdict(options: Options) -> Verdict:
    jars = options.jars if options.jars is not None else _fetched(options.kafka_version or "", "--kafka-version")
    with blaming("--against"):
        against = options.against or predecessor(version_of(jars))
    older = Path(against) if Path(against).is_dir() else _fetched(against, "--against")
    with tempfile.TemporaryDirectory(prefix="mockraft-release-check-") as folder:
        old, new = (Built.read(each, Path(folder, name)) for name, each in (("old", older), ("new", jars)))
        return judge(old, new)


def _fetched(version: str, flag: str) -> Path:
    if not re.fullmatch(VERSION, version):
        raise OptionError(f"{version!r} is not a Kafka release: give it as in 4.4.0 or 4.4.0-rc0", flag)
    return jars_directory(version, lambda line: print(line, file=sys.stderr))


def _end(error: Exception, advice: str) -> NoReturn:
    end(NAME, f"{error} ({advice})", ExitCode.MISSING)


COMMANDS = {NAME: Command(NAME, release_check, ABOUT)}

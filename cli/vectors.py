"""`mockraft vectors`: bodies of all messages as Kafka's classes write them, and another codec judged by them."""

from __future__ import annotations

import asyncio
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.cli.terminal import Terminal
from mockraft.conformance import Run
from mockraft.conformance.reports.failure_text import lines
from mockraft.conformance.reports.junit import write_junit
from mockraft.conformance.verdicts import Outcome
from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.jars import KafkaUnavailableError
from mockraft.kafka_api.options import OptionError, argument, blaming, option
from mockraft.releases import DEFAULT, SUPPORTED, release
from mockraft.vectors.judging import Question, judge, questions_of
from mockraft.vectors.making import make_release
from mockraft.vectors.vector_files import MANIFEST, VectorsError, read_manifest, read_message, write_manifest

_ALL = "all"
_FAILURES_SHOWN = 20
_LINES_SHOWN = 4

ABOUT = """Write vectors for codecs into DIR, or judge a codec by them.

Vectors are bodies of each message and record, in each version, as JSON and as the bytes that Kafka's own classes make
of them; and malformed bytes, with Kafka's error. Making them needs Java 17, and Maven for the release's jars; a DIR
that has vectors already, such as the archive of a mockraft release, needs neither.

  mockraft vectors kafka-4.4                                       5,773 vectors of 222 messages
  mockraft vectors every-release --release all
  mockraft vectors kafka-4.4 --check 'python codec.py' --junit vectors.xml
  mockraft vectors kafka-4.4 --check ./codec --only Heartbeat --only Fetch

The program of --check is started once, without a shell. It reads JSON lines with `release`, `message`, `version` and
`direction`: decode with `hex`, or encode with `json`. It answers each with a line, in their order: {"json": …} or
{"hex": …}, {"error": …} for what it refuses, or {"unsupported": …} for what it does not have.

""" + exit_codes(ExitCode.MISSING, done="every answer is Kafka's", failed="an answer is not Kafka's, or none came")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft vectors`."""

    folder: Path = argument(Path("vectors"), metavar="DIR", help="The folder of the vectors; made if it is not there.")
    releases: list[str] | None = option(
        None,
        "--release",
        metavar="RELEASE",
        help=f"A Kafka release, or all; may be repeated. Default: {DEFAULT}, or those in DIR.",
        completes=lambda: [_ALL, *SUPPORTED],
    )
    only: list[str] | None = option(None, help="Only messages whose name has this text; may be repeated.")
    check: str | None = option(None, metavar="COMMAND", help="Judge the codec of this program.")
    timeout_s: float = option(30, lowest=0.1, help="End the program if no answer comes for so many seconds.")
    junit_file: Path | None = option(None, "--junit", help="Write the verdicts as JUnit XML.")


def vectors(options: Options) -> None:
    """Make the vectors if they are not there, and judge a codec; see ABOUT."""
    command = _command(options.check)
    if options.junit_file is not None and not command:
        raise OptionError("it has the verdicts of --check", "--junit")
    with blaming("--release"):
        kafka_versions = [*_versions(options.releases or ())]
    if not (options.folder / MANIFEST).is_file():
        _make(options, kafka_versions or [release().kafka_version])
    try:
        questions = [*_questions(options, kafka_versions)]
    except VectorsError as error:
        raise OptionError(str(error), "DIR") from None
    if not questions:
        raise OptionError(f"no message in {options.folder} is called so", "--only")
    if command:
        _judge(options, command, questions)


def _command(text: str | None) -> list[str]:
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise OptionError(str(error), "--check") from None
    if text is not None and not words:
        raise OptionError("it is empty: which program?", "--check")
    return words


def _versions(names: list[str] | tuple[()]) -> Iterator[str]:
    for name in names:
        yield from SUPPORTED if name == _ALL else [release(name).kafka_version]


def _make(options: Options, kafka_versions: list[str]) -> None:
    """Make the folder beside its place, and put it there when it is complete."""
    target = options.folder
    console = Terminal(stderr=True)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise OptionError(f"{target} is there, without a {MANIFEST}: name a new or empty folder", "DIR")
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.absolute().parent) as folder:
            made = Path(folder, "made")
            made.mkdir()
            found = {}
            for each in kafka_versions:
                with console.status(f"Kafka {each}'s classes write its messages"):
                    found[each] = make_release(made / each, each, options.only or ())
            write_manifest(made, version("mockraft"), found)
            made.rename(target)
    except OSError as error:
        raise OptionError(f"{target} cannot be written: {error.strerror}", "DIR") from None
    except VectorsError as error:
        raise OptionError(str(error), "--only") from None
    except KafkaUnavailableError as error:
        end("vectors", f"{error} (to make vectors; those of a mockraft release need neither)", ExitCode.MISSING)
    except KafkaProcessError as error:
        end("vectors", error, ExitCode.FAILED)


def _questions(options: Options, kafka_versions: list[str]) -> Iterator[Question]:
    """Read the vectors, print how many there are, and yield the questions for a codec."""
    found = read_manifest(options.folder)
    if absent := [each for each in kafka_versions if each not in found]:
        raise VectorsError(f"{options.folder} has {', '.join(found)} and not {absent[0]}: name another folder")
    for each in kafka_versions or found:
        counts: Counter[str] = Counter()
        for of in found[each]:
            if not options.only or any(text.lower() in of.message.lower() for text in options.only):
                of_message = read_message(options.folder, each, of)
                counts += Counter(vectors=len(of_message), messages=1)
                yield from questions_of(each, of, of_message)
        print(f"Kafka {each}: {counts['vectors']:,} vectors of {counts['messages']} messages in {options.folder}")


def _judge(options: Options, command: list[str], questions: list[Question]) -> None:
    with blaming("--check", OSError):
        found = asyncio.run(judge(command, questions, options.timeout_s))
    _show(found)
    if options.junit_file is not None:
        with blaming("--junit", OSError):
            write_junit(found, options.junit_file, "vectors")
    if found.failures or not found.count()[Outcome.PASSED]:
        raise SystemExit(ExitCode.FAILED)


def _show(found: Run) -> None:
    console = Terminal(soft_wrap=True)
    for verdict in found.failures[:_FAILURES_SHOWN]:
        console.print(verdict.name, style="bold")
        for line in islice(lines(verdict), _LINES_SHOWN):
            console.print(f"  {line}")
    if len(found.failures) > _FAILURES_SHOWN:
        console.print(f"… and {len(found.failures) - _FAILURES_SHOWN} more; --junit has all")
    for reason, number in found.reasons_of_applicability().most_common(_FAILURES_SHOWN):
        console.print(f"  {number:>4}  {reason}", style="dim")
    count = found.count()
    parts = [f"{count[Outcome.PASSED]} passed", f"{len(found.failures)} failed"]
    parts += [f"{count[Outcome.NOT_APPLICABLE]} not tried"] if count[Outcome.NOT_APPLICABLE] else []
    console.print(f"versions of messages: {', '.join(parts)} in {found.seconds:.1f} s")


COMMANDS = {"vectors": Command("vectors", vectors, ABOUT)}

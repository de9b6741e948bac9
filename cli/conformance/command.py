"""`mockraft conformance`, the suite against any controller, and `mockraft differences`, what is known to differ."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from mockraft.cli.command_line import Command
from mockraft.cli.conformance.screen import Screen
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.conformance import CannotConnectError, Run, observed, run
from mockraft.conformance import baseline as kept_runs
from mockraft.conformance.known_differences import known_differences
from mockraft.conformance.release_changes import as_text, changes, select
from mockraft.conformance.reports.html_report import NoTemplatesError, write_html
from mockraft.conformance.reports.junit import write_junit
from mockraft.conformance.reports.summary import Level, write_summary
from mockraft.conformance.suite import AREAS, all_cases
from mockraft.conformance.target import look_up
from mockraft.kafka_api.options import Option, OptionError, blaming, option
from mockraft.releases import NEWEST, SUPPORTED, release

if TYPE_CHECKING:
    from mockraft.conformance.case import Case
    from mockraft.releases import Release

ABOUT = """Run the conformance cases against any KRaft controller and report its differences from Kafka.

Each case has brokers and topics of its own, sends requests, and checks the responses and the records that Fetch then
returns. It removes what it created; cases that make Kafka's own controller resign run only with --disruptive. Do not
run it against a cluster that you need: it registers brokers, creates topics and changes dynamic configs for a moment.

  mockraft serve --port 9093 &
  mockraft conformance --bootstrap 127.0.0.1:9093
  mockraft conformance --bootstrap 127.0.0.1:9093 --area topics --only 'exists'
  mockraft conformance --bootstrap kafka:9093 --json kafka.json
  mockraft conformance --bootstrap mine:9093 --against kafka.json --html report.html
  mockraft conformance --bootstrap mine:9093 --against kafka-3.9.2
  mockraft conformance --bootstrap mine:9093 --release 4.2.1
  mockraft conformance --bootstrap mine:9093 --level core --summary conformance.md

Levels, each with the cases of those before it:
  core    brokers run on it and lose no data: the cases of rank must, without the area quorum
  full    brokers and tools also get Kafka's answers and texts: all cases without the area quorum
  quorum  other controllers vote with it and follow it, too: all cases

Ranks of cases (--list):
  must    brokers break, or lose data, without it
  should  brokers and tools get another response than Kafka's
  quirk   surprising behaviour of Kafka

""" + exit_codes(ExitCode.NO_ANSWER, ExitCode.MISSING, done="every case passed", failed="a case failed")
DIFFERENCES_ABOUT = """List the known differences between mockraft and Kafka's controller, with reasons."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft conformance`."""

    bootstrap: str | None = option(None, help="host:port of the CONTROLLER listener; several separated by commas.")
    cluster_id: str | None = option(None, help="The cluster's id. Default: the controller's.")
    release: str | None = option(
        None,
        metavar="X",
        help="The controller's Kafka release, as in 4.2.1. Default: the newest patch release of the line that has its "
        "newest metadata.version.",
    )
    level: Literal["core", "full", "quorum"] = option("quorum", help="Only the cases of this level; see above.")
    area: list[str] | None = option(None, help="Only this area; may be repeated. --list has them.")
    only: list[str] | None = option(None, help="Only cases whose name has this text; may be repeated.")
    list_cases: bool = option(False, "--list", help="List the cases that would run, and stop.")
    disruptive: bool = option(False, help="Also cases that make Kafka's controller resign.")
    strict: bool = option(False, help="No effect; kept for existing scripts.")
    parallel: int = option(16, lowest=1, highest=200, help="How many cases run side by side.")
    seed: int | None = option(None, help="Seed of names and ids, for runs that repeat.")
    junit_file: Path | None = option(None, "--junit", help="Write the verdicts as JUnit XML.")
    json_file: Path | None = option(None, "--json", help="Write the run to this file, for --against.")
    summary_file: Path | None = option(
        None, "--summary", help="Write a page to publish (Markdown): release, level, passed, failed, not applicable."
    )
    html_file: Path | None = option(None, "--html", help="Write an HTML report (needs mockraft[conformance]).")
    show_secrets: bool = option(False, help="Show passwords, keys, tokens and sensitive configs.")
    against: str | None = option(
        None,
        metavar="RUN",
        help="Compare with a file that --json wrote, with the controller at host:port, or with a run that comes with "
        f"mockraft: kafka-{NEWEST} is Kafka's own controller of that version ({SUPPORTED[0]} to {NEWEST}), at its "
        "newest level.",
        completes=kept_runs.names,
    )


OldRelease = Annotated[
    str | None, Option(is_argument=True, metavar="OLD", help="The older release: 4.3.", shown_default="")
]
NewRelease = Annotated[
    str | None, Option(is_argument=True, metavar="NEW", help="The newer release: 4.4.", shown_default="")
]
OnlyKind = Annotated[
    Literal["rule", "observed", "api", "feature", "metadata.version", "error", "config"] | None,
    Option(flags=("--only",), help="Only this kind of changes.", shown_default=""),
]
AsJson = Annotated[bool, Option(flags=("--json",), help="As JSON.")]


def conformance(options: Options) -> None:
    """Run the cases; see ABOUT."""
    cases = _chosen(options)
    screen = Screen()
    if options.list_cases:
        screen.list_cases(cases)
        return
    if options.bootstrap is None:
        raise OptionError("say which controller: --bootstrap host:port", "--bootstrap")
    with blaming("--release"):
        stated = release(options.release) if options.release else None
    other = _kept(options.against)
    ask = partial(_run, screen, cases, options)
    try:
        with blaming("--bootstrap"):
            found = asyncio.run(ask(options.bootstrap, options.cluster_id, stated))
            if options.against is not None and other is None:
                other = asyncio.run(ask(options.against, None))
    except CannotConnectError as error:
        end("conformance", error, ExitCode.NO_ANSWER)
    screen.summary(found)
    if other is not None:
        screen.comparison(found, other)
    _write(found, other, options)
    if found.failures:
        raise SystemExit(ExitCode.FAILED)


def diff(old: OldRelease = None, new: NewRelease = None, only: OnlyKind = None, as_json: AsJson = False) -> None:
    """List what the controller of Kafka NEW does differently from that of Kafka OLD.

    First the rules that came without a version or level of their own, and the requests of the conformance suite that
    Kafka's own controllers answered differently, with both answers. Then APIs, features, metadata versions, errors and
    configuration keys, as Kafka's own classes have them. Nothing is started.

      mockraft conformance diff 4.3 4.4
      mockraft conformance diff 3.9 4.4 --only observed
      mockraft conformance diff 3.9 4.4 --json
    """
    if old is None or new is None:
        raise OptionError("name two releases, the older one first: mockraft conformance diff 4.3 4.4")
    with blaming("OLD / NEW"):
        found = changes(release(old), release(new))
    answers = observed.observed(release(old), release(new))
    if only is not None:
        found, answers = select(only, found, answers)
    if as_json:
        trees = [*(each.as_tree() for each in found), *observed.as_trees(answers)]
        print(json.dumps(trees, indent=1, ensure_ascii=False))
        return
    for line in as_text(found, answers, release(old).name, release(new).name):
        print(line)


def differences(as_json: AsJson = False) -> None:
    """Print the list; see DIFFERENCES_ABOUT."""
    entries = known_differences()
    if as_json:
        print(json.dumps([dataclasses.asdict(each) for each in entries], indent=1, ensure_ascii=False))
    else:
        for each in entries:
            print(f"{each.id}  ({each.area}, {each.kind})")
            print(f"  Kafka     {each.kafka}\n  mockraft  {each.mockraft}\n  why       {each.why}\n")


def _chosen(options: Options) -> list[Case]:
    areas, only = options.area or [], options.only or []
    if unknown := [each for each in areas if each not in AREAS]:
        raise OptionError(f"there is no area {unknown[0]!r}; there are: {', '.join(AREAS)}", "--area")
    level = Level(options.level)
    chosen = [
        case
        for case in all_cases()
        if level.has(case)
        and (not areas or case.area in areas)
        and (not only or any(text.lower() in case.name.lower() for text in only))
        and (options.disruptive or not case.disruptive)
    ]
    if not chosen:
        message = "no case is called so; --list has the names" if only else f"level {level} has no case of this area"
        raise OptionError(message, "--only" if only else "--level")
    return chosen


def _kept(against: str | None) -> Run | None:
    """The run in that file or of that name; None where there is neither, so that it must be an address."""
    if against is None:
        return None
    path = Path(against)
    with blaming("--against", OSError, ValueError):
        if path.exists():
            return Run.read_json(path)
    names = kept_runs.names()
    if against in names:
        return kept_runs.read(against)
    if not against.rpartition(":")[2].isdigit():
        message = f"{against!r} is neither a file nor host:port nor one of: {', '.join(names)}"
        raise OptionError(message, "--against")
    return None


def _write(found: Run, other: Run | None, options: Options) -> None:
    try:
        if options.summary_file is not None:
            level, is_selection = Level(options.level), bool(options.area or options.only)
            write_summary(found, level, options.summary_file, on=datetime.now(UTC).date(), is_selection=is_selection)
        if options.junit_file is not None:
            write_junit(found, options.junit_file)
        if options.json_file is not None:
            found.write_json(options.json_file)
        if options.html_file is not None:
            write_html(found, options.html_file, other)
    except NoTemplatesError as error:
        end("conformance", error, ExitCode.MISSING)
    except OSError as error:
        end("conformance", error, ExitCode.USAGE)


async def _run(
    screen: Screen,
    cases: list[Case],
    options: Options,
    bootstrap: str,
    cluster_id: str | None,
    stated: Release | None = None,
) -> Run:
    with screen.progress(len(cases)) as on_verdict:
        return await run(
            await look_up(bootstrap, cluster_id, stated),
            cases=cases,
            parallel=options.parallel,
            seed=options.seed,
            show_secrets=options.show_secrets,
            on_verdict=on_verdict,
        )


COMMANDS = {
    "conformance": Command("conformance", conformance, ABOUT, subcommands={"diff": Command("diff", diff)}),
    "differences": Command("differences", differences, DIFFERENCES_ABOUT),
}

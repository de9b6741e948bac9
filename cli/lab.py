"""`mockraft lab`: find a schedule of the controller under which a test fails."""

from __future__ import annotations

import logging
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end, end_without, write_json
from mockraft.cli.terminal import Terminal
from mockraft.files.trees import read_tree
from mockraft.kafka_api.options import OptionError, argument, option
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.testing.lab import trial
from mockraft.testing.lab.schedule import KINDS, draw, stub_file
from mockraft.testing.lab.search import FailsUndisturbedError, find, undisturbed
from mockraft.testing.lab.story import as_lines, write_page
from rich.progress import Progress

if TYPE_CHECKING:
    from mockraft.testing.lab.schedule import Schedule
    from mockraft.testing.lab.search import FailingSchedule
    from mockraft.testing.lab.trial import TrialResult

ABOUT = """Run a test many times, each time with a controller that is disturbed in another way, until the test fails.

  mockraft lab -- pytest -q test_broker.py
  mockraft lab --brokers 3 --runs 200 -- go test ./...
  mockraft lab --seed 17 --runs 1 -- pytest -q test_broker.py        the schedule of one seed
  mockraft lab --schedule lab/schedule.json -- pytest -q test_broker.py

A schedule is a few disturbances, drawn from a seed: the n-th heartbeat of broker 1 is answered late, is lost, meets a
standby, or fences the broker. The first run has none, and its requests are the ones that are disturbed. A schedule
under which the command fails is made smaller, repeated, described and saved; it is a stub file, for serve --stubs too.

The command finds the controller in MOCKRAFT_BOOTSTRAP, its cluster id in MOCKRAFT_CLUSTER_ID and its HTTP API in
MOCKRAFT_ADMIN. In pytest, the controllers of mockraft's fixtures get the schedule.

""" + exit_codes(
    ExitCode.MISSING,
    done="the command passed under every schedule",
    failed="a schedule was found under which it fails, or it fails without any",
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft lab`."""

    command: list[str] | None = argument(None, metavar="COMMAND...", help="The test, after --.")
    runs: int = option(50, lowest=1, help="Maximum number of schedules to try.")
    seed: int = option(1, lowest=0, help="Seed of the first schedule; the next ones count up.")
    disturbances: int = option(4, lowest=1, highest=50, help="Maximum number of disturbances in a schedule.")
    kinds: str | None = option(
        None,
        metavar="A,B",
        help="Only disturbances of these kinds: late answer, late request, lost request, lost answer, standby, fenced.",
    )
    repeats: int = option(5, lowest=1, help="Number of runs with the smallest failing schedule.")
    timeout_s: float = option(60, lowest=0.1, help="Seconds after which a run counts as failed, and is killed.")
    brokers: int = option(0, lowest=0, help="Simulated brokers of the controller.")
    release: str | None = option(None, metavar="X.Y", help="Kafka release of the controller.")
    schedule: Path | None = option(None, metavar="FILE", help="Repeat this schedule, or any stub file, instead.")
    out: Path = option(Path("lab"), metavar="DIR", help="Folder for schedule.json, story.html and output.txt.")


def run(options: Options) -> None:
    """Search, or repeat one schedule."""
    if not options.command:
        raise OptionError("what to run is missing: mockraft lab -- pytest -q test_broker.py")
    command = options.command
    logging.getLogger("mockraft").addHandler(logging.NullHandler())  # disturbed simulated brokers have much to say
    try:
        controller = {} if options.release is None else {"release": options.release}
        subject = trial.Subject(command, options.timeout_s, options.brokers, controller)
        with _ending_by_exit(), tempfile.TemporaryDirectory(prefix="mockraft-lab-") as folder:
            failed = (_repeat if options.schedule else _search)(options, subject, Path(folder))
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("mockraft"):
            raise
        end_without("lab", error.name, "admin")
    except OSError as error:
        end("lab", f"{error.filename or command[0]}: {error.strerror}", ExitCode.USAGE)
    except ValueError as error:
        end("lab", error, ExitCode.USAGE)
    if failed:
        raise SystemExit(ExitCode.FAILED)


@contextmanager
def _ending_by_exit() -> Iterator[None]:
    """Let SIGTERM end the process as `sys.exit` does, so that the command is killed and the folder deleted."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _repeat(options: Options, subject: trial.Subject, folder: Path) -> bool:
    assert options.schedule is not None
    stubs = read_tree(options.schedule).tree
    read_stub_file(options.schedule)  # its errors name this file, where those of a trial name the trial's copy
    outcomes = [trial.run(subject, stubs, folder / str(index)) for index in range(options.repeats)]
    for outcome in outcomes:
        print(str(outcome))
    failed = [each for each in outcomes if each.failed]
    print(f"failed {len(failed)} of {len(outcomes)} times")
    if failed:
        _write_output(options, failed[-1])
        print(failed[-1].output)
    return bool(failed)


def _write_output(options: Options, outcome: TrialResult) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "output.txt").write_text(outcome.output)


def _search(options: Options, subject: trial.Subject, folder: Path) -> bool:
    kinds = [each.strip() for each in options.kinds.split(",")] if options.kinds else [*KINDS]
    if unknown := [each for each in kinds if each not in KINDS]:
        raise ValueError(f"--kinds: there is no {unknown[0]!r}; there are {', '.join(KINDS)}")
    numbers = count()

    def one(schedule: Schedule) -> TrialResult:
        return trial.run(subject, stub_file(schedule), folder / str(next(numbers)))

    try:
        seen = undisturbed(one)
    except FailsUndisturbedError as error:
        end("lab", f"{error}\n{error.outcome.output}", ExitCode.FAILED)
    drawn = partial(draw, seen=seen, disturbances_max=options.disturbances, brokers=options.brokers, kinds=kinds)
    drawn(options.seed)  # ValueError if there is nothing to disturb
    print(f"undisturbed: passed, with {sum(seen.values())} requests of {len(seen)} kinds to disturb")
    seeds = range(options.seed, options.seed + options.runs)
    with _progress(len(seeds)) as on_trial:
        found = find(one, drawn, seeds, repeats=options.repeats, on_trial=on_trial)
    if found is None:
        print(f"passed under {len(seeds)} schedules, seeds {seeds[0]} to {seeds[-1]}, {next(numbers)} runs")
        return False
    _report(options, subject, found, stub_file(found.schedule))
    return True


@contextmanager
def _progress(runs: int) -> Iterator[Callable[[int, TrialResult], None]]:
    """Show a bar in a terminal; yield what is to be called after each trial."""
    console = Terminal()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("schedules", total=runs)

        def on_trial(seed: int, outcome: TrialResult) -> None:
            bar.update(task, advance=1, description=f"seed {seed} {outcome}")

        yield on_trial


def _of_trials(options: Options) -> Iterator[str]:
    """Yield the options of each trial that are not the default, with which a schedule fails again."""
    for name in ("brokers", "release", "timeout_s"):
        if (value := getattr(options, name)) != getattr(Options(), name):
            yield from (f"--{name.replace('_', '-')}", str(value))


def _report(options: Options, subject: trial.Subject, found: FailingSchedule, stubs: Any) -> None:
    command = shlex.join(subject.command)
    schedule = options.out / "schedule.json"
    again = (*_of_trials(options), "--schedule", str(schedule), "--", *subject.command)
    repeat = shlex.join(("mockraft", "lab", *again))
    _write_output(options, found.outcome)
    write_json("lab", schedule, stubs)
    print(f"\nseed {found.seed}: {found.outcome}; {found.failures} of {found.repeats} times with this schedule\n")
    for line in as_lines(found):
        print(f"  {line}")
    if not found.failures:
        print("\nit did not fail again: what the command does at random, or the machine, may be the cause")
    print(f"\nrepeat it:  {repeat}")
    try:
        write_page(found, command, repeat, options.out / "story.html")
        print(f"timeline:   {options.out / 'story.html'}")
    except ModuleNotFoundError:
        print("timeline:   needs jinja2 (pip install jinja2)")


COMMANDS = {"lab": Command("lab", run, ABOUT)}

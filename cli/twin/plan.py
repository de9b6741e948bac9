"""`mockraft twin plan`: what would happen, step by step."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.cli.twin.options import SOURCE_HELP, history_of, report
from mockraft.files.trees import GivenFileError, NoYamlError
from mockraft.kafka_api.options import OptionError, argument, blaming, option, required
from mockraft.testing.plan.written_test import write_test

if TYPE_CHECKING:
    from mockraft.testing.plan import PlanOutcome
    from mockraft.twin import History, Moment
    from mockraft.twin.brokers import Which

ABOUT = """Do the steps of a plan on a twin with simulated brokers, in virtual time, and show what each would do.

A step is answered as Kafka's controller of that release would answer, by error code and message. Then time passes
until nothing changes any more. The table has, for each step, how long that took, and the partitions without a leader,
with fewer in-sync replicas than min.insync.replicas, and under-replicated: the most during the step, and those at its
end. --save-test keeps state and plan as a pytest test, which fails until the plan is safe. Without a plan the state
itself is checked.

  mockraft twin plan --from controller-data plan.yaml
  mockraft twin plan --from night.pcap --at 1200 plan.json --json
  mockraft twin plan --from controller-data --save-test test_state.py
  mockraft twin plan --from controller-data plan.yaml --save-test test_upgrade.py
  mockraft twin plan --from controller-data plan.yaml --save-test src/test/java/example/UpgradeTest.java

plan.yaml, with every kind of step:
  steps:
  - upgrade: {metadata.version: 4.4}         # or a level, of any feature
  - restart: all                             # rolling, or [1, 2]
  - restart: {brokers: [1, 2], together: true, release: 4.4}   # at the same time; as brokers of another release
  - replication_factor: {factor: 3}          # of all topics, or with topic: t
  - reassign: {topic: t, partition: 0, replicas: [1, 2]}   # null cancels
  - drain: [3]                               # its replicas move to others; {brokers: [3], topics: [t]}: some do
  - shut_down: [3]                           # controlled
  - unregister: [3]
  - lose: [2]                                # brokers that die
  - start: [2]                               # any broker that does not run and was registered once
  - start: {brokers: [5], release: 4.4}      # or with features: {name: [min, max]}, rack: a, directories: [ID]
  - lose_rack: a
  - lose_directory: {broker: 1, directory: 0}
  - restore_directory: {broker: 1, directory: 0}   # its id, or number among the failed ones; the broker restarts
  - config: {topic: t, set: {min.insync.replicas: 1}}   # or broker: 1, or broker: default; null removes it
  - elect: {topic: t, partition: 0, unclean: true}
  - wait: 60                                 # seconds

""" + exit_codes(
    ExitCode.MISSING,
    done="each step was accepted and kept all partitions available, and all are at the end",
    failed="a step was refused, or a partition is made unavailable, or is so at the end",
)


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of the command."""

    source: Path = required("--from", help=SOURCE_HELP)
    plan: Path | None = argument(None, metavar="PLAN", help="The steps, as YAML or JSON. Default: none.")
    at: str | None = option(None, metavar="OFFSET|TIME", help="Begin with the state after that record.")
    all_brokers: bool = option(False, "--all", help="Also simulate brokers that were fenced.")
    session_timeout_ms: int = option(9_000, lowest=1, help="broker.session.timeout.ms of the controllers.")
    save_test: Path | None = option(None, metavar="FILE", help="Write a pytest test, and its state beside it.")
    overwrite: bool = option(False, help="Let --save-test replace an existing test.")
    as_json: bool = option(False, "--json", help="As JSON.")


def plan(options: PlanOptions) -> None:
    """Do the steps; see ABOUT."""
    from mockraft import Controller
    from mockraft.testing.plan import PlanError, read_plan
    from mockraft.testing.twins import with_registrations

    save_test = options.save_test
    logging.getLogger().addHandler(logging.NullHandler())
    if save_test is not None and save_test.exists() and not options.overwrite:
        raise OptionError(f"{save_test} exists: replace it and its state with --overwrite", "--save-test")
    try:
        with blaming("PLAN", GivenFileError, PlanError):
            steps = read_plan(options.plan) if options.plan is not None else []
    except NoYamlError as error:
        end("twin plan", error, ExitCode.MISSING)
    history = history_of(options.source)
    which: Which = "all" if options.all_brokers else "live"
    with blaming("--at"):
        moment = history.moment(options.at)
        steps = with_registrations(steps, moment.image, history, moment)
        simulated = _simulated(history, moment, which, is_needed=bool(steps))
        twin = Controller.sync(
            twin_of=history,
            twin_at=moment,
            clock="virtual",
            twin_brokers=which,
            session_timeout_ms=options.session_timeout_ms,
            seed=0,
        )
    with twin as controller:
        outcome: PlanOutcome = controller.plan(steps)
    report(history, moment, simulated)
    print(json.dumps(outcome.to_json(), indent=1, ensure_ascii=False) if options.as_json else str(outcome))
    if save_test is not None:
        with blaming("--save-test", OSError, ValueError):
            written = write_test(save_test, history, moment, steps, which, options.session_timeout_ms)
        print(f"mockraft twin plan: wrote {' and '.join(map(str, written))}", file=sys.stderr)
        if not any(map(save_test.match, ("test_*.py", "*_test.py", "*.java"))):
            print(f"mockraft twin plan: pytest collects test_*.py, and not {save_test.name} by itself", file=sys.stderr)
    if not outcome.is_safe:
        # Other errors may have the same exit code: clients look for this line.
        print("mockraft twin plan: the plan is not safe", file=sys.stderr)
        raise SystemExit(ExitCode.FAILED)


def _simulated(history: History, moment: Moment, which: Which, *, is_needed: bool) -> int:
    """Return the number of simulated brokers. ValueError if there is none and steps need one."""
    brokers = moment.image.cluster.brokers.values()
    if not brokers:
        raise ValueError(f"{history.source}: at offset {moment.id.end_offset - 1} no broker was registered")
    count = sum(which == "all" or not each.fenced for each in brokers)
    if count or not is_needed:
        return count
    raise ValueError(
        f"{history.source}: at offset {moment.id.end_offset - 1} no broker was unfenced, so none would run: choose a"
        " point before they stopped with --at, or simulate the fenced ones too with --all"
    )


COMMAND = Command("plan", plan, ABOUT)

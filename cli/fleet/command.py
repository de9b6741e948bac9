"""`mockraft fleet`: many simulated brokers in a few processes, on any controller."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from mockraft.brokers.fleet.limits import OWN_REPLICATION_BROKERS_MAX, shortage
from mockraft.brokers.fleet.plan import ScriptError, plan, read_script
from mockraft.cli.broker.options import RunOptions
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import client_security
from mockraft.files.trees import GivenFileError
from mockraft.kafka_api.options import OptionError, blaming, option

if TYPE_CHECKING:
    from mockraft.brokers.fleet.plan import Action

BROKERS_A_PROCESS = 2_500
STARTS_PER_S = 500

ABOUT = """Run many simulated brokers on any KRaft controller, mockraft's or Kafka's, in a few processes.

They register, heartbeat and leave as Kafka's brokers do. Up to 100 each replicate the metadata log for themselves; more
share one replica of it in each process (--replication). A line a second says how many are registered, fenced and
unfenced, how many heartbeats are answered and how fast. Ctrl-C has all of them leave by controlled shutdown, a second
one stops them at once.

  mockraft fleet --brokers 1000 --bootstrap-controller 127.0.0.1:9093
  mockraft fleet --brokers 10000 --ramp 30 --for 120 --json run.json --bootstrap-controller …
  mockraft fleet --brokers 300 --racks a,b,c --script trouble.json --seed 7 --bootstrap-controller …

A script is a JSON or TOML file of steps, each with when, what and to whom:

  {"steps": [
    {"at_s": 20, "do": "kill", "percent": 5, "back_after_s": 30},
    {"at_s": 40, "do": "rolling-restart", "racks": ["a"], "at_once": 5, "every_s": 2},
    {"at_s": 60, "do": "freeze", "count": 3, "back_after_s": 15},
    {"at_s": 80, "do": "disconnect", "over_s": 10},
    {"at_s": 90, "do": "fail-log-dir", "brokers": [1, 2]}
  ]}

""" + exit_codes(
    ExitCode.NO_ANSWER, ExitCode.MISSING, failed="brokers were fenced by mistake, died or never registered"
)


@dataclass(frozen=True, kw_only=True)
class FleetOptions(RunOptions):
    """Options of `mockraft fleet`."""

    brokers: int = option(100, lowest=1, highest=1_000_000, help="How many simulated brokers.")
    first_id: int = option(1, lowest=0, highest=2**31 - 1_000_001, help="The id of the first; the others follow.")
    processes: int | None = option(
        None, lowest=1, highest=256, help=f"Default: one for each {BROKERS_A_PROCESS:,}, no more than cores."
    )
    ramp: float | None = option(
        None, lowest=0, help=f"Spread the starts over so many seconds. Default: {STARTS_PER_S} a second."
    )
    racks: str | None = option(None, help="Names of racks with commas between, dealt out in turn.")
    log_dirs: int = option(1, lowest=1, highest=1000, help="Log directories of each broker, in memory only.")
    heartbeat_interval_ms: int = option(2_000, lowest=1, highest=2**31 - 1, help="broker.heartbeat.interval.ms")
    session_timeout_ms: int = option(
        9_000, lowest=2, highest=2**31 - 1, help="broker.session.timeout.ms of the controller."
    )
    replication: str | None = option(None, help="own or shared. Default: own for up to 100 brokers.")
    script: Path | None = option(None, help="What shall happen to them and when; JSON, or TOML in *.toml.")
    seed: int | None = option(
        None, help="Seed of ids and of the brokers that a script draws. Default: a new one, shown in the summary."
    )
    json_file: Path | None = option(None, "--json", help="Write the summary with a sample a second to this file.")


def fleet(options: FleetOptions) -> None:
    """Run a fleet until a signal or the end of its time."""
    from mockraft.cli.fleet.processes import FleetOrder, run_fleet, to_json

    replication, brokers = options.replication, options.brokers
    if replication not in (None, "own", "shared"):
        raise OptionError(f"{replication!r} is neither own nor shared", "--replication")
    shares = (replication or ("own", "shared")[brokers > OWN_REPLICATION_BROKERS_MAX]) == "shared"
    processes = options.processes or min(os.cpu_count() or 1, -(-brokers // BROKERS_A_PROCESS))
    if (problem := shortage(brokers, processes, shares_replication=shares)) is not None:
        raise OptionError(problem, "--brokers")
    names: list[str | None] = [name.strip() or None for name in options.racks.split(",")] if options.racks else [None]
    racks = {options.first_id + number: names[number % len(names)] for number in range(brokers)}
    seed = random.randrange(1 << 31) if options.seed is None else options.seed
    ramp_s = brokers / STARTS_PER_S if options.ramp is None else options.ramp
    order = FleetOrder(
        bootstrap=options.addresses,
        cluster_id=options.cluster_id,
        security=client_security(options.command_config),
        racks=racks,
        actions=_actions(racks, ramp_s, options.script, seed),
        processes=processes,
        options={
            "seed": seed,
            "shares_replication": shares,
            "log_dirs_per_broker": options.log_dirs,
            "heartbeat_interval_ms": options.heartbeat_interval_ms,
            "session_timeout_ms": options.session_timeout_ms,
            "command_config": options.command_config and str(options.command_config.absolute()),
        },
        for_s=options.for_s,
    )
    with _open_for_writing(options.json_file) as out:
        summary = run_fleet(order)
        if summary is None:
            raise SystemExit(ExitCode.NO_ANSWER)
        if out is not None:
            out.write(to_json(summary))
    if summary["went_wrong"]:
        raise SystemExit(ExitCode.FAILED)


def _actions(racks: dict[int, str | None], ramp_s: float, script: Path | None, seed: int) -> list[Action]:
    with blaming("--script", ScriptError, GivenFileError):
        return plan(racks, round(1000 * ramp_s), read_script(script) if script is not None else (), seed)


@contextlib.contextmanager
def _open_for_writing(path: Path | None) -> Iterator[TextIO | None]:
    """The file, tried before the run: an hour of measuring shall not end with a bad path."""
    if path is None:
        yield None
        return
    try:
        out = path.open("w")
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}", "--json") from None
    with out:
        yield out


COMMANDS = {"fleet": Command("fleet", fleet, ABOUT)}

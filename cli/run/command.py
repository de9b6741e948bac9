"""`mockraft run`: the controller with simulated brokers to look at."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockraft.brokers.lifecycle import End
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.signals import end_tasks, stop_on_signals, until_signal
from mockraft.cli.terminal import Terminal
from mockraft.kafka_api.options import option
from mockraft.kafka_api.shell import event_loop
from mockraft.releases import release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.settings.features import levels_for_simulated_brokers
from mockraft.wire.directory_ids import draw_cluster_id
from rich.live import Live

if TYPE_CHECKING:
    from mockraft.server.running import RunningController

DEFAULT_PORT = 9093
REDRAW_S = 0.5
PLAIN_POLL_S = 0.05
SHUTDOWN_MS = 5_000

RUN_ABOUT = """Run a controller with simulated brokers and show them live.

The brokers register, replicate the metadata log, heartbeat and are unfenced as Kafka's are, and serve clients.
More of them, and real ones, can join while it runs. Without a terminal it prints plain lines. Ctrl-C ends it.

""" + exit_codes(ExitCode.CANNOT_LISTEN, done="it was stopped")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft run`."""

    brokers: int = option(3, lowest=0, help="How many simulated brokers.")
    log_dirs: int = option(2, lowest=1, help="Log directories of each simulated broker.")
    host: str = option("127.0.0.1", help="Address to listen on.")
    port: int | None = option(None, lowest=0, highest=65535, help="Port to listen on. Default: 9093, or a free one.")
    for_s: float | None = option(None, "--for", lowest=0, help="Stop after so many seconds.")
    plain: bool = option(False, help="Plain lines, as without a terminal.")
    session_timeout_ms: int = option(9_000, lowest=1, help="broker.session.timeout.ms")
    seed: int | None = option(None, help="Seed of everything random, for runs that repeat.")


def run(options: Options) -> None:
    """Run a controller and brokers until Ctrl-C."""
    logging.getLogger().addHandler(logging.NullHandler())
    with asyncio.Runner(loop_factory=event_loop) as runner:
        code = runner.run(_run(options, random.Random(options.seed)))
    if code:
        raise SystemExit(code)


def is_live(plain: bool) -> bool:
    """Return True if a screen can be drawn: in a terminal, unless plain lines are wanted."""
    return sys.stdout.isatty() and not plain and os.environ.get("TERM") != "dumb"


async def _run(options: Options, rng: random.Random) -> int:
    """Run until a signal or the time is over; gives the exit code."""
    from mockraft.brokers.fleet.fleet import start_brokers

    try:
        running = await _start_controller(options, rng)
    except OSError as error:
        where = f"{options.host}:{options.port}" if options.port is not None else f"any port of {options.host}"
        print(f"mockraft run: cannot listen on {where}: {error.strerror}", file=sys.stderr)
        return ExitCode.CANNOT_LISTEN
    started_ms = running.clock.now_ms()
    address = (running.config.voter_host, running.config.voter_port)
    with stop_on_signals() as stopped:
        cluster_id = running.config.cluster_id
        fleet = await start_brokers(
            [address],
            cluster_id,
            dict.fromkeys(range(1, options.brokers + 1)),
            log_dirs=options.log_dirs,
            rng=rng,
            client_port=0,
        )
        show = asyncio.ensure_future((_show_live if is_live(options.plain) else _show_plain)(running, started_ms))
        await until_signal(stopped, show, timeout_s=options.for_s)
        await end_tasks(show)
        await fleet.shut_down(SHUTDOWN_MS)
    up_s = (running.clock.now_ms() - started_ms) / 1000
    await running.stop()
    left = sum(broker.end is End.GRANTED for broker in fleet.brokers)
    print(f"stopped after {up_s:.1f} s; {left} of {len(fleet.brokers)} brokers left by controlled shutdown")
    return 0


async def _start_controller(options: Options, rng: random.Random) -> RunningController:
    """On the port that was asked for; on Kafka's usual one, or any free one, when none was. Raises OSError."""
    from mockraft.server.running import RunningController

    config = ControllerConfig(
        host=options.host,
        port=DEFAULT_PORT if options.port is None else options.port,
        cluster_id=draw_cluster_id(rng),
        session_timeout_ms=options.session_timeout_ms,
        features=levels_for_simulated_brokers(release(), {}) if options.brokers else {},
    )
    try:
        return await RunningController.start(config, rng=rng)
    except OSError:
        if options.port is not None:
            raise
        return await RunningController.start(dataclasses.replace(config, port=0), rng=rng)


async def _show_live(running: RunningController, started_ms: int) -> None:
    from mockraft.cli.run.screen import Moment, Screen

    # The alternate screen is redrawn in place: nothing scrolls and nothing flickers.
    with Live(console=Terminal(), screen=True, auto_refresh=False, vertical_overflow="crop") as shown:
        while True:
            shown.update(Screen(Moment.of(running, started_ms)), refresh=True)
            await asyncio.sleep(REDRAW_S)


async def _show_plain(running: RunningController, started_ms: int) -> None:
    """Print a line for each change of a broker's state."""
    from mockraft.cli.run.screen import Moment, clients_of, state_of

    moment = Moment.of(running, started_ms)
    print(
        f"mockraft running bootstrap={moment.bootstrap} cluster_id={moment.cluster_id} "
        f"metadata.version={moment.metadata_version}"
    )
    states: dict[int, str] = {}
    while True:
        moment = Moment.of(running, started_ms)
        for broker in moment.brokers:
            state = f"{state_of(broker)}, {'fenced' if broker.fenced else 'unfenced'}"
            if states.get(broker.broker_id) != state:
                states[broker.broker_id] = state
                print(
                    f"{moment.up_ms / 1000:6.1f} s  broker {broker.broker_id}: {state}, epoch {broker.epoch}, "
                    f"clients at {clients_of(broker)}"
                )
        await asyncio.sleep(PLAIN_POLL_S)


COMMANDS = {"run": Command("run", run, RUN_ABOUT)}

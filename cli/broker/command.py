"""`mockraft broker`: one simulated broker as a process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mockraft.brokers.config import draw_config
from mockraft.brokers.config_on_disk import LogDirPaths, draw_config_on_disk
from mockraft.brokers.log_dirs.ensemble import LogDirsError, Refusal
from mockraft.cli.broker import disk_faults as disks
from mockraft.cli.broker import options as option
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode
from mockraft.cli.logs import LineFormatter
from mockraft.cli.refusals import ProposalOptions
from mockraft.cli.signals import end_tasks, stop_on_signals, until_signal
from mockraft.kafka_api.shell import event_loop
from mockraft.wire.client import DisconnectedError

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.config import BrokerConfig

IN_THE_CLEAR = "; if a controller with TLS or SASL listens there, say how to log in with --command-config"


def broker(options: option.BrokerOptions, faults: option.DiskFaultOptions, proposals: ProposalOptions) -> None:
    """Run one simulated broker."""
    parsed = disks.faults_of(faults)
    fields = options.fields(proposals)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LineFormatter("%(asctime)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    with asyncio.Runner(loop_factory=event_loop) as runner:
        code = runner.run(_broker(options, fields, parsed, random.Random(options.seed)))
    if code:
        raise SystemExit(code)


async def _broker(
    options: option.BrokerOptions, fields: dict[str, Any], faults: Sequence[disks.DiskFault], rng: random.Random
) -> ExitCode:
    """Run until a signal, the time is over or it died; gives the exit code."""
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.listener.client_listener import ListenerError

    try:
        config = await _config(options, fields, rng)
    except LogDirsError as error:
        how = await _how_to_format(error, options, fields)
        return _fail(ExitCode.UNUSABLE_DIRECTORY, f"{error}{how}")
    except DisconnectedError as error:
        return _fail(ExitCode.NO_ANSWER, f"{error}{'' if fields['security'] else IN_THE_CLEAR}")
    except (OSError, LookupError, ValueError) as error:
        return _fail(ExitCode.NO_ANSWER, f"{error} (or give --cluster-id)")
    disks.check(faults, [path for path, _ in config.log_dirs], config.metadata_log_dir)
    simulated = SimulatedBroker(config)
    with stop_on_signals() as stopped:
        try:
            simulated.start()
        except OSError as error:
            await simulated.close()
            return _fail(ExitCode.UNUSABLE_DIRECTORY, _reason(error))
        except ListenerError as error:
            await simulated.close()
            return _fail(ExitCode.CANNOT_LISTEN, str(error))
        if simulated.listener is not None:
            print(f"broker {options.broker_id} serves clients at {simulated.listener.bootstrap} once it runs")
        breaking = asyncio.ensure_future(disks.carry_out(simulated, faults, rng.getrandbits(32)))
        await _live(simulated, stopped, options.for_s)
        await end_tasks(breaking)
    print(f"broker {options.broker_id} stopped: {simulated.end_reason}")
    return ExitCode.FAILED if simulated.end is not None and simulated.end.is_failure else ExitCode.DONE


async def _live(simulated: SimulatedBroker, stopped: asyncio.Event, for_s: float | None) -> None:
    """Return when the broker is over: by itself, or with the controller's leave after a signal or `for_s`."""
    over = asyncio.ensure_future(simulated.stopped.wait())
    await until_signal(stopped, over, timeout_s=for_s)
    if not over.done():
        stopped.clear()
        about = "asks the controller for leave; Ctrl-C again stops it at once"
        print(f"broker {simulated.config.broker_id} {about}")
        leaving = asyncio.ensure_future(simulated.shut_down())
        await until_signal(stopped, leaving)
        if not leaving.done():
            await simulated.kill()
        await leaving
    await simulated.close()
    await end_tasks(over)


async def _config(options: option.BrokerOptions, fields: dict[str, Any], rng: random.Random) -> BrokerConfig:
    """Return the broker's config; the cluster id comes from a controller where no option has it."""
    bootstrap, cluster_id = options.addresses, options.cluster_id
    if cluster_id is None and (not options.log_dir or options.format_missing):
        cluster_id = await _fetched_cluster_id(options, fields)
    if not options.log_dir:
        assert cluster_id is not None
        return draw_config(options.broker_id, cluster_id, bootstrap, rng, **fields)
    return draw_config_on_disk(
        options.broker_id,
        cluster_id,
        bootstrap,
        rng,
        LogDirPaths(options.log_dir, options.metadata_log_dir, options.format_missing),
        **fields,
    )


async def _fetched_cluster_id(options: option.BrokerOptions, fields: dict[str, Any]) -> str:
    from mockraft.brokers.fleet.fleet import fetch_cluster_id

    return await fetch_cluster_id(options.addresses[0], security=fields["security"])


async def _how_to_format(error: LogDirsError, options: option.BrokerOptions, fields: dict[str, Any]) -> str:
    """Return the command that formats the directories, with the controller's cluster id if it is known."""
    if error.refusal is not Refusal.NOT_FORMATTED:
        return ""
    cluster_id = options.cluster_id
    if cluster_id is None:
        with contextlib.suppress(OSError, LookupError, ValueError):
            cluster_id = await _fetched_cluster_id(options, fields)
    command = ["mockraft", "format", "--ignore-formatted", "--cluster-id", cluster_id or "CLUSTER_ID"]
    command += ["--node-id", str(options.broker_id)]
    for path in options.log_dir or ():
        command += ["--log-dir", str(path)]
    if options.metadata_log_dir:
        command += ["--metadata-log-dir", str(options.metadata_log_dir)]
    return f"\nTo format what is not: {shlex.join(command)}\nor give this command --format."


def _reason(error: Exception) -> str:
    """An error of starting on directories, for people."""
    if isinstance(error, OSError) and error.filename is not None and str(error.filename) not in str(error.strerror):
        return f"{error.filename}: {error.strerror}"
    return str(error.strerror if isinstance(error, OSError) and error.strerror else error)


def _fail(code: ExitCode, message: str) -> ExitCode:
    print(f"mockraft broker: {message}", file=sys.stderr)
    return code


COMMANDS = {"broker": Command("broker", broker, option.BROKER_ABOUT, headings=option.HEADINGS)}

"""`mockraft broker`: one simulated broker as a process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from mockraft.commands.broker import disk_faults as disks
from mockraft.commands.broker import options as option
from mockraft.commands.proposal_options import Profile, Schemas, overlay
from mockraft.commands.signals import end_tasks, stop_on_signals

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.config import BrokerConfig
    from mockraft.brokers.log_dirs.ensemble import LogDirsError
    from mockraft.wire.client_security import ClientSecurity

BROKER_DIED = 1
PORT_TAKEN = 3
LOG_DIRS_UNUSABLE = 4
NO_CONTROLLER = 5

IN_THE_CLEAR = "; if a controller with TLS or SASL listens there, say how to log in with --command-config"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "broker",
        help=option.BROKER_ABOUT,
        short_help="Run one simulated broker on any controller.",
        cls=option.BrokerCommand,
    )(broker)


def broker(
    broker_id: option.BrokerId,
    bootstrap_controller: option.Bootstrap,
    cluster_id: option.ClusterId = None,
    rack: option.Rack = None,
    log_dir: option.LogDirPaths = None,
    metadata_log_dir: option.MetadataLogDir = None,
    format_missing: option.Format = False,
    cordoned_log_dir: option.CordonedLogDir = None,
    io_errors: option.IoErrors = option.IoErrorRule.KAFKA,
    restart_partitions_elsewhere: option.RestartElsewhere = False,
    fail_log_dir: disks.FailLogDir = None,
    fill: disks.Fill = None,
    slow: disks.Slow = None,
    flaky: disks.Flaky = None,
    corrupt: disks.Corrupt = None,
    heal: disks.Heal = None,
    listener: option.ListenerText = None,
    settings: option.Settings = None,
    command_config: option.CommandConfig = None,
    profile: Profile = None,
    schemas: Schemas = None,
    for_s: option.For = None,
    seed: option.Seed = None,
) -> None:
    """Run one simulated broker."""
    from mockraft.server.running import event_loop
    from mockraft.wire import messages

    faults = disks.faults_of(locals())
    bootstrap = tuple(host_and_port(part, "--bootstrap-controller") for part in bootstrap_controller.split(","))
    host, port = host_and_port(listener, "--listener") if listener else ("127.0.0.1", None)
    options: dict[str, Any] = {
        "rack": rack,
        "host": host,
        "port": port,
        "serve_clients": True,
        "security": client_security(command_config),
        "messages": overlay(profile, schemas) or messages,
        "cordoned_log_dirs": option.cordoned(cordoned_log_dir or ()),
        "io_errors": str(io_errors),
        "restart_partitions_elsewhere": restart_partitions_elsewhere,
        **option.fields_of(settings or ()),
        **option.proposed(profile or ()),
    }
    if log_dir:
        options |= {"paths": log_dir, "metadata_log_dir": metadata_log_dir, "format_missing": format_missing}
    elif metadata_log_dir or format_missing:
        raise typer.BadParameter("which directories? name them with --log-dir", param_hint="--log-dir")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    with asyncio.Runner(loop_factory=event_loop) as runner:
        code = runner.run(_broker(broker_id, bootstrap, cluster_id, options, faults, for_s, random.Random(seed)))
    if code:
        raise typer.Exit(code)


async def _broker(
    broker_id: int,
    bootstrap: tuple[tuple[str, int], ...],
    cluster_id: str | None,
    options: dict[str, Any],
    faults: Sequence[disks.Fault],
    for_s: float | None,
    chance: random.Random,
) -> int:
    """Run until a signal, the time is over or it died; gives the exit code."""
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.listener.client_listener import ListenerError
    from mockraft.brokers.log_dirs.ensemble import LogDirsError
    from mockraft.brokers.log_dirs.errors import LoadError
    from mockraft.wire.client import DisconnectedError

    try:
        config = await _config(broker_id, bootstrap, cluster_id, options, chance)
    except LogDirsError as error:
        how = await _how_to_format(error, broker_id, cluster_id, bootstrap[0], options)
        return _fail(LOG_DIRS_UNUSABLE, f"{error}{how}")
    except DisconnectedError as error:
        return _fail(NO_CONTROLLER, f"{error}{'' if options['security'] else IN_THE_CLEAR}")
    except (OSError, LookupError, ValueError) as error:
        return _fail(NO_CONTROLLER, f"{error} (or give --cluster-id)")
    disks.check(faults, [path for path, _ in config.log_dirs])
    simulated = SimulatedBroker(config)
    with stop_on_signals() as stopped:
        try:
            simulated.start()
        except (OSError, LoadError) as error:
            await simulated.close()
            return _fail(LOG_DIRS_UNUSABLE, _told(error))
        except ListenerError as error:
            await simulated.close()
            return _fail(PORT_TAKEN, str(error))
        if simulated.listener is not None:
            print(f"broker {broker_id} serves clients at {simulated.listener.bootstrap} once it runs", flush=True)
        breaking = asyncio.ensure_future(disks.carry_out(simulated, faults, chance.getrandbits(32)))
        await _live(simulated, stopped, for_s)
        await end_tasks(breaking)
    print(f"broker {broker_id} stopped: {simulated.end_reason}", flush=True)
    return BROKER_DIED if simulated.end is not None and simulated.end.is_failure else 0


async def _live(simulated: SimulatedBroker, stopped: asyncio.Event, for_s: float | None) -> None:
    """Return when the broker is over: by itself, or with the controller's leave after a signal or `for_s`."""
    over, waiting = asyncio.ensure_future(simulated.stopped.wait()), asyncio.ensure_future(stopped.wait())
    await asyncio.wait((over, waiting), timeout=for_s, return_when=asyncio.FIRST_COMPLETED)
    if not over.done():
        stopped.clear()
        about = "asks the controller for leave; Ctrl-C again stops it at once"
        print(f"broker {simulated.config.broker_id} {about}", flush=True)
        again = asyncio.ensure_future(stopped.wait())
        leaving = asyncio.ensure_future(simulated.shut_down())
        await asyncio.wait((leaving, again), return_when=asyncio.FIRST_COMPLETED)
        if not leaving.done():
            await simulated.kill()
        await leaving
        await end_tasks(again)
    await simulated.close()
    await end_tasks(over, waiting)


async def _config(
    broker_id: int,
    bootstrap: tuple[tuple[str, int], ...],
    cluster_id: str | None,
    options: dict[str, Any],
    chance: random.Random,
) -> BrokerConfig:
    """Return the broker's config; the cluster id comes from a controller where no option has it."""
    from mockraft.brokers.config import draw_config
    from mockraft.brokers.config_on_disk import draw_config_on_disk
    from mockraft.brokers.fleet import fetch_cluster_id

    in_memory = "paths" not in options
    if cluster_id is None and (in_memory or options["format_missing"]):
        cluster_id = await fetch_cluster_id(bootstrap[0], security=options["security"])
    if in_memory:
        assert cluster_id is not None
        return draw_config(broker_id, cluster_id, bootstrap, chance, **options)
    return draw_config_on_disk(broker_id, cluster_id, bootstrap, chance, **options)


async def _how_to_format(
    error: LogDirsError, broker_id: int, cluster_id: str | None, bootstrap: tuple[str, int], options: dict[str, Any]
) -> str:
    """Return the command that formats the directories, with the controller's cluster id if it is known."""
    from mockraft.brokers.fleet import fetch_cluster_id
    from mockraft.brokers.log_dirs.ensemble import Refusal

    if error.refusal is not Refusal.NOT_FORMATTED:
        return ""
    if cluster_id is None:
        with contextlib.suppress(OSError, LookupError, ValueError):
            cluster_id = await fetch_cluster_id(bootstrap, security=options["security"])
    named = " ".join(f"--log-dir {path}" for path in options["paths"])
    more = f" --metadata-log-dir {options['metadata_log_dir']}" if options["metadata_log_dir"] else ""
    return (
        f"\nTo format what is not: mockraft format --ignore-formatted --cluster-id {cluster_id or 'CLUSTER_ID'} "
        f"--node-id {broker_id} {named}{more}\nor give this command --format."
    )


def _told(error: Exception) -> str:
    """An error of starting on directories, for people."""
    if isinstance(error, OSError) and error.filename is not None and str(error.filename) not in str(error.strerror):
        return f"{error.filename}: {error.strerror}"
    return str(error.strerror if isinstance(error, OSError) and error.strerror else error)


def _fail(code: int, message: str) -> int:
    print(f"mockraft broker: {message}", file=sys.stderr)
    return code


def client_security(path: Path | None) -> ClientSecurity | None:
    """Read the file of --command-config; BadParameter when it cannot be used."""
    from mockraft.wire.client_security import read_properties

    try:
        return None if path is None else read_properties(path)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--command-config") from None


def host_and_port(text: str, option: str) -> tuple[str, int]:
    """Parse host:port; BadParameter for anything else."""
    from mockraft.brokers.config import endpoint_of

    try:
        return endpoint_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None

"""`mockraft broker`: one simulated broker as a process."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from mockraft.grouped_help import GroupedCommand
from mockraft.proposal_options import Profile, Schemas, overlay
from mockraft.signals import end_tasks, stop_on_signals

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.config import BrokerConfig
    from mockraft.brokers.log_dirs.ensemble import LogDirsError
    from mockraft.wire.client_security import ClientSecurity

BROKER_DIED = 1
PORT_TAKEN = 3
LOG_DIRS_UNUSABLE = 4
NO_CONTROLLER = 5

GROUPS = {
    "Broker": ("broker_id", "bootstrap_controller", "cluster_id", "rack", "listener", "command_config"),
    "Log directories": ("log_dir", "metadata_log_dir", "format_missing"),
    "Proposals": ("profile", "schemas"),
    "Run": ("for_s", "seed", "help"),
}
"""Parameters of `broker` by the heading that they stand under, in the order in which they are shown."""

IN_THE_CLEAR = "; if a controller with TLS or SASL listens there, say how to log in with --command-config"

BROKER_ABOUT = """Run one simulated broker on any KRaft controller, mockraft's or Kafka's.

With --log-dir it keeps its replicas there, in Kafka's own files; such directories must be formatted, as Kafka's must.
Without, they are in memory. It prints a line for each step of its life. SIGTERM and Ctrl-C begin a controlled
shutdown, a second one ends it at once.

\b
  mockraft broker --id 1 --bootstrap-controller 127.0.0.1:9093
  mockraft broker --id 1 --bootstrap-controller 127.0.0.1:9093 --format --log-dir d1 --log-dir d2

Exit codes: 1 it had to stop as a real broker would have, 2 a bad option, 3 the listener cannot be had, 4 the log
directories cannot be used, 5 no controller answered.
"""

BrokerId = Annotated[int, typer.Option("--id", min=0, max=2**31 - 1, help="The broker's node.id.")]
Bootstrap = Annotated[
    str, typer.Option("--bootstrap-controller", help="host:port of a controller; several separated by commas.")
]
ClusterId = Annotated[
    str | None,
    typer.Option(help="The cluster's id. Default: that of the log directories, else the controller is asked."),
]
Rack = Annotated[str | None, typer.Option(help="broker.rack")]
LogDirPaths = Annotated[
    list[str] | None, typer.Option("--log-dir", help="Path of a log directory; may be repeated. Default: in memory.")
]
MetadataLogDir = Annotated[
    str | None, typer.Option(help="metadata.log.dir: a broker whose metadata log dir fails stops. Default: the first.")
]
Format = Annotated[
    bool, typer.Option("--format", help="Format the log directories that are not, as `mockraft format` does.")
]
ListenerText = Annotated[
    str | None,
    typer.Option("--listener", help="host:port where clients find it. Default: any free port of 127.0.0.1."),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        help="Client properties, as Kafka's tools take them: security.protocol, PEM files in ssl.truststore.location "
        "and ssl.keystore.location, sasl.mechanism, username and password in sasl.jaas.config."
    ),
]
For = Annotated[float | None, typer.Option("--for", min=0, help="Stop after so many seconds.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random, for runs that repeat.")]


class BrokerCommand(GroupedCommand):
    """`broker`, whose help has a list of options for each of `GROUPS`."""

    groups = GROUPS


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        "broker", help=BROKER_ABOUT, short_help="Run one simulated broker on any controller.", cls=BrokerCommand
    )(broker)


def broker(
    broker_id: BrokerId,
    bootstrap_controller: Bootstrap,
    cluster_id: ClusterId = None,
    rack: Rack = None,
    log_dir: LogDirPaths = None,
    metadata_log_dir: MetadataLogDir = None,
    format_missing: Format = False,
    listener: ListenerText = None,
    command_config: CommandConfig = None,
    profile: Profile = None,
    schemas: Schemas = None,
    for_s: For = None,
    seed: Seed = None,
) -> None:
    """Run one simulated broker."""
    from mockraft.server.running import event_loop
    from mockraft.wire import messages

    bootstrap = tuple(host_and_port(part, "--bootstrap-controller") for part in bootstrap_controller.split(","))
    host, port = host_and_port(listener, "--listener") if listener else ("127.0.0.1", None)
    security = client_security(command_config)
    options: dict[str, Any] = {
        "rack": rack,
        "host": host,
        "port": port,
        "serve_clients": True,
        "security": security,
        "messages": overlay(profile, schemas) or messages,
    }
    if log_dir:
        options |= {"paths": log_dir, "metadata_log_dir": metadata_log_dir, "format_missing": format_missing}
    elif metadata_log_dir or format_missing:
        raise typer.BadParameter("which directories? name them with --log-dir", param_hint="--log-dir")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    with asyncio.Runner(loop_factory=event_loop) as runner:
        code = runner.run(_broker(broker_id, bootstrap, cluster_id, options, for_s, random.Random(seed)))
    if code:
        raise typer.Exit(code)


async def _broker(
    broker_id: int,
    bootstrap: tuple[tuple[str, int], ...],
    cluster_id: str | None,
    options: dict[str, Any],
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
        return _fail(LOG_DIRS_UNUSABLE, str(error) + _how_to_format(error, broker_id, cluster_id, options))
    except DisconnectedError as error:
        return _fail(NO_CONTROLLER, f"{error}{'' if options['security'] else IN_THE_CLEAR}")
    except (OSError, LookupError, ValueError) as error:
        return _fail(NO_CONTROLLER, f"{error} (or give --cluster-id)")
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
        await _live(simulated, stopped, for_s)
    print(f"broker {broker_id} stopped: {simulated.epitaph}", flush=True)
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
    """The broker's config; a controller is asked for the cluster id where nothing else says it."""
    from mockraft.brokers.config import draw_config
    from mockraft.brokers.config_on_disk import draw_config_on_disk
    from mockraft.brokers.fleet import ask_cluster_id

    in_memory = "paths" not in options
    if cluster_id is None and (in_memory or options["format_missing"]):
        cluster_id = await ask_cluster_id(bootstrap[0], security=options["security"])
    if in_memory:
        assert cluster_id is not None
        return draw_config(broker_id, cluster_id, bootstrap, chance, **options)
    return draw_config_on_disk(broker_id, cluster_id, bootstrap, chance, **options)


def _how_to_format(error: LogDirsError, broker_id: int, cluster_id: str | None, options: dict[str, Any]) -> str:
    """What to type where directories are not formatted."""
    from mockraft.brokers.log_dirs.ensemble import Refusal

    if error.refusal not in (Refusal.NOT_FORMATTED, Refusal.NONE_READABLE):
        return ""
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
    """What --command-config says, read; a bad option when it cannot be used."""
    from mockraft.wire.client_security import read_properties

    try:
        return None if path is None else read_properties(path)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--command-config") from None


def host_and_port(text: str, option: str) -> tuple[str, int]:
    """What an option says; a bad option when it is not host:port."""
    from mockraft.brokers.config import endpoint_of

    try:
        return endpoint_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None

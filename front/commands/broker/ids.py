"""`mockraft broker-id`: which id the broker of a host has, kept beside the controller (ids by hostname)."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from mockraft.brokers.ids.observed_cluster import ObservedCluster
    from mockraft.wire.json_form import Json

REFUSED = 1
NO_CONTROLLER = 5
ANSWER_S = 10

Found = TypeVar("Found")

ABOUT = """Give brokers ids by their hosts' names, so that a machine that lost its disks gets its id back.

hosts.json in the controller's data dir remembers which host had which id. For real brokers as for simulated ones.
Exit codes: 1 a person has to decide or a file cannot be used, 2 a bad option, 5 no controller answered.
"""
RESOLVE_ABOUT = """Print the node.id line of this host's broker for its server.properties; stderr says why that one.

\b
  mockraft broker-id resolve --data-dir data --bootstrap-controller 127.0.0.1:9093 --log-dir /var/kafka/d0
  node.id=1001

The first of these that there is: --id; the node.id in a meta.properties of the --log-dir; the id that the host had
before, unless another broker has it by now. Then a person decides, unless --reuse-missing or --generate is given. An id
counts as taken while a broker that has it is alive; a broker that just died is waited for.
"""
LIST_ABOUT = """List the hosts and their ids; with a controller also which ids are alive, and where."""
COLLECT_ABOUT = """Show the entries whose id is that of a live broker on another host; --yes removes them."""

DataDir = Annotated[Path, typer.Option(help="The controller's data dir; hosts.json is kept there.", metavar="DIR")]
Bootstrap = Annotated[
    str, typer.Option("--bootstrap-controller", help="host:port of a controller; several separated by commas.")
]
MaybeBootstrap = Annotated[
    str | None, typer.Option("--bootstrap-controller", help="host:port of a controller; several separated by commas.")
]
CommandConfig = Annotated[
    Path | None, typer.Option(help="Client properties for a controller with TLS or SASL, as Kafka's tools take them.")
]
Host = Annotated[str | None, typer.Option(help="The broker's host. Default: the name of this machine.")]
GivenId = Annotated[int | None, typer.Option("--id", min=0, max=2**31 - 1, help="The id, when it is known.")]
LogDirs = Annotated[
    list[str] | None, typer.Option("--log-dir", metavar="DIR", help="A log directory of the broker; may be repeated.")
]
ReuseMissing = Annotated[
    bool, typer.Option("--reuse-missing", help="Take the id that has replicas and no broker, when there is one only.")
]
GenerateNew = Annotated[bool, typer.Option("--generate", help="Make a new id when none is missing.")]
DespiteMissing = Annotated[
    bool, typer.Option("--despite-missing", help="With --generate: also while ids are missing (a growing cluster).")
]
Reserve = Annotated[
    int, typer.Option("--reserve", min=0, max=2**31 - 2, help="Ids up to this one are for people and not generated.")
]
WaitMs = Annotated[int, typer.Option(min=0, max=600_000, help="How long a taken id may still be a dead broker's.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Remove them.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    ids = typer.Typer(help=ABOUT, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
    ids.command("resolve", help=RESOLVE_ABOUT, short_help="Print the node.id line of a host's broker.")(resolve_command)
    ids.command("list", help=LIST_ABOUT, short_help="List hosts and their ids.")(list_command)
    ids.command("collect-garbage", help=COLLECT_ABOUT, short_help="Remove entries that are out of date.")(
        collect_garbage_command
    )
    app.add_typer(ids, name="broker-id", short_help="Give brokers ids by their hosts' names.")


def resolve_command(
    data_dir: DataDir,
    bootstrap_controller: Bootstrap,
    host: Host = None,
    broker_id: GivenId = None,
    log_dir: LogDirs = None,
    reuse_missing: ReuseMissing = False,
    generate: GenerateNew = False,
    despite_missing: DespiteMissing = False,
    reserve: Reserve = 1000,
    wait_ms: WaitMs = 12_000,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
) -> None:
    """Resolve; see RESOLVE_ABOUT."""
    from mockraft.brokers.ids.broker_ids import Resolved, resolve
    from mockraft.brokers.ids.host_map import HostFile
    from mockraft.brokers.ids.identity import Steps

    name = socket.gethostname() if host is None else host
    stored = _stored_id(log_dir or [])
    steps = Steps(reuse_missing, not despite_missing, generate)

    async def ask(cluster: ObservedCluster) -> Resolved:
        return await resolve(
            HostFile(data_dir),
            name,
            cluster,
            explicit=broker_id,
            stored=stored,
            steps=steps,
            reserved_max=reserve,
            wait_ms=wait_ms,
        )

    found = _with_cluster(bootstrap_controller, command_config, ask)
    typer.echo(f"mockraft broker-id: {found.host} is broker {found.broker_id}: {found.source.value}", err=True)
    if as_json:
        typer.echo(
            json.dumps({"host": found.host, "node.id": found.broker_id, "source": found.source.name.lower()}, indent=1)
        )
    else:
        typer.echo(f"node.id={found.broker_id}")


def list_command(
    data_dir: DataDir,
    bootstrap_controller: MaybeBootstrap = None,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
) -> None:
    """List; see LIST_ABOUT."""
    from mockraft.brokers.ids.host_map import HostFile

    hosts = _refusing(lambda: HostFile(data_dir).read())
    alive: dict[int, frozenset[str]] | None = None
    if bootstrap_controller is not None:

        async def ask(cluster: ObservedCluster) -> dict[int, frozenset[str]]:
            return cluster.alive

        alive = _with_cluster(bootstrap_controller, command_config, ask)
    if as_json:
        tree: dict[str, Json] = {
            host: {**hosts.entry(host), **({} if alive is None else {"alive.at": sorted(alive.get(broker_id, ()))})}
            for host, broker_id in hosts.ids.items()
        }
        typer.echo(json.dumps(tree, indent=1))
        return
    width = max(map(len, hosts.ids), default=0)
    for host, broker_id in sorted(hosts.ids.items(), key=lambda each: (each[1], each[0])):
        where = ""
        if alive is not None:
            where = f"  alive at {', '.join(sorted(alive[broker_id]))}" if broker_id in alive else "  not alive"
        typer.echo(f"{host:{width}}  {broker_id}{where}")


def collect_garbage_command(
    data_dir: DataDir,
    bootstrap_controller: Bootstrap,
    yes: Yes = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
) -> None:
    """Collect; see COLLECT_ABOUT."""
    from mockraft.brokers.ids.broker_ids import collect_garbage
    from mockraft.brokers.ids.host_map import HostFile

    async def ask(cluster: ObservedCluster) -> dict[str, int]:
        return collect_garbage(HostFile(data_dir), cluster, remove=yes)

    found = _with_cluster(bootstrap_controller, command_config, ask)
    if as_json:
        typer.echo(json.dumps({"removed": yes, "hosts": found}, indent=1))
        return
    for host, broker_id in found.items():
        typer.echo(f"{'removed' if yes else 'garbage'}  {host}  {broker_id}")
    if found and not yes:
        typer.echo("mockraft broker-id: nothing was removed; --yes removes them", err=True)


def _with_cluster(
    bootstrap: str, command_config: Path | None, ask: Callable[[ObservedCluster], Coroutine[object, object, Found]]
) -> Found:
    """Return the result of a query while the metadata is at hand; every refusal ends the command with its exit code."""
    from mockraft.brokers.config import endpoint_of
    from mockraft.brokers.fleet import fetch_cluster_id
    from mockraft.brokers.ids.observed_cluster import ObservedCluster
    from mockraft.wire.client_security import read_properties
    from mockraft.wire.errors import WireError

    try:
        addresses = [endpoint_of(each) for each in bootstrap.split(",")]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap-controller") from None
    try:
        security = None if command_config is None else read_properties(command_config)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--command-config") from None

    async def run() -> Found:
        messages = ""
        for address in addresses:
            try:
                async with asyncio.timeout(ANSWER_S):
                    cluster_id = await fetch_cluster_id(address, security=security)
                async with ObservedCluster(addresses, cluster_id, security=security) as cluster:
                    return await ask(cluster)
            except (OSError, LookupError, WireError) as error:
                why = f"no answer within {ANSWER_S} s" if isinstance(error, TimeoutError) else error
                messages = f"{messages}mockraft broker-id: {address[0]}:{address[1]}: {why}\n"
        typer.echo(messages, err=True, nl=False)
        raise typer.Exit(NO_CONTROLLER)

    return _refusing(lambda: asyncio.run(run()))


def _refusing(work: Callable[[], Found]) -> Found:
    from mockraft.brokers.ids.host_map import HostMapError
    from mockraft.brokers.ids.identity import IdentityError

    try:
        return work()
    except (HostMapError, IdentityError) as error:
        _refuse(str(error))


def _stored_id(log_dirs: list[str]) -> int | None:
    """Return the node.id in the meta.properties of these directories; unreadable ones are reported and skipped."""
    from mockraft.brokers.log_dirs.ensemble import LogDirsError, look, verify

    found = look(log_dirs)
    for each in found:
        if each.error is not None:
            typer.echo(f"mockraft broker-id: {each.path} cannot be read and says nothing: {each.error}", err=True)
    try:
        verify(found, None, None)
    except LogDirsError as error:
        _refuse(str(error))
    return next((each.meta.node_id for each in found if each.meta and each.meta.node_id is not None), None)


def _refuse(text: str) -> NoReturn:
    typer.echo(f"mockraft broker-id: {text}", err=True)
    raise typer.Exit(REFUSED)

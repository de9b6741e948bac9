"""`mockraft broker-id`: which id the broker of a host has, kept beside the controller (ids by hostname)."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mockraft.brokers.ids.broker_ids import Resolved, collect_garbage, resolve
from mockraft.brokers.ids.host_map import HostFile, HostMapError
from mockraft.brokers.ids.identity import IdentityError, Steps
from mockraft.brokers.log_dirs.ensemble import LogDirsError, look, verify
from mockraft.cli.broker.options import ControllerOptions
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import client_security, end
from mockraft.kafka_api.options import option, required
from mockraft.wire.errors import WireError

if TYPE_CHECKING:
    from mockraft.brokers.ids.observed_cluster import ObservedCluster
    from mockraft.brokers.log_dirs.ensemble import DirFound
    from mockraft.wire.json_form import Json

ANSWER_S = 10

Found = TypeVar("Found")

ABOUT = """Give brokers ids by their hosts' names, so that a machine that lost its disks gets its id back.

hosts.json in the controller's data dir remembers which host had which id. For real brokers as for simulated ones.

""" + exit_codes(ExitCode.UNUSABLE_DIRECTORY, ExitCode.NO_ANSWER, failed="a person has to decide")
RESOLVE_ABOUT = """Print the node.id line of this host's broker for its server.properties; stderr says why that one.

  mockraft broker-id resolve --data-dir data --bootstrap-controller 127.0.0.1:9093 --log-dir /var/kafka/d0
  node.id=1001

The first of these that there is: --id; the node.id in a meta.properties of the --log-dir; the id that the host had
before, unless another broker has it by now. Then a person decides, unless --reuse-missing or --generate is given. An id
counts as taken while a broker that has it is alive; a broker that just died is waited for.
"""
LIST_ABOUT = """List the hosts and their ids; with a controller also which ids are alive, and where."""
COLLECT_ABOUT = """Show the entries whose id is that of a live broker on another host; --yes removes them."""


@dataclass(frozen=True, kw_only=True)
class IdOptions(ControllerOptions):
    """Options of each command."""

    data_dir: Path = required(help="The controller's data dir; hosts.json is kept there.", metavar="DIR")
    as_json: bool = option(False, "--json", help="As JSON.")


@dataclass(frozen=True, kw_only=True)
class GarbageOptions(IdOptions):
    """Options of `collect-garbage`."""

    yes: bool = option(False, help="Remove them.")


@dataclass(frozen=True, kw_only=True)
class ListOptions(IdOptions):
    """Options of `list`, which does without a controller too."""

    bootstrap_controller: str = option(
        "", help="host:port of a controller; several separated by commas.", shown_default=""
    )


@dataclass(frozen=True, kw_only=True)
class ResolveOptions(IdOptions):
    """Options of `resolve`: what is known of the broker, and which ids it may take."""

    host: str | None = option(None, help="The broker's host. Default: the name of this machine.")
    broker_id: int | None = option(None, "--id", lowest=0, highest=2**31 - 1, help="The id, when it is known.")
    log_dir: list[str] | None = option(None, metavar="DIR", help="A log directory of the broker; may be repeated.")
    reuse_missing: bool = option(False, help="Take the id that has replicas and no broker, when there is one only.")
    generate: bool = option(False, help="Make a new id when none is missing.")
    despite_missing: bool = option(False, help="With --generate: also while ids are missing (a growing cluster).")
    reserve: int = option(
        1000, lowest=0, highest=2**31 - 2, help="Ids up to this one are for people and not generated."
    )
    wait_ms: int = option(12_000, lowest=0, highest=600_000, help="How long a taken id may still be a dead broker's.")


def resolve_command(options: ResolveOptions) -> None:
    """Resolve; see RESOLVE_ABOUT."""
    name = socket.gethostname() if options.host is None else options.host
    found_dirs = _log_dirs(options.log_dir or [])
    stored = next((each.meta.node_id for each in found_dirs if each.meta and each.meta.node_id is not None), None)
    steps = Steps(
        options.reuse_missing, not options.despite_missing, options.generate, options.reserve, options.wait_ms
    )

    async def ask(cluster: ObservedCluster) -> Resolved:
        verify(found_dirs, cluster.cluster_id, stored)
        return await resolve(
            HostFile(options.data_dir), name, cluster, explicit=options.broker_id, stored=stored, steps=steps
        )

    found = _with_cluster(options, ask)
    print(f"mockraft broker-id: {found.host} is broker {found.broker_id}: {found.source.value}", file=sys.stderr)
    if options.as_json:
        print(
            json.dumps({"host": found.host, "node.id": found.broker_id, "source": found.source.name.lower()}, indent=1)
        )
    else:
        print(f"node.id={found.broker_id}")


def list_command(options: ListOptions) -> None:
    """List; see LIST_ABOUT."""
    hosts = _refusing(lambda: HostFile(options.data_dir).read())
    alive: dict[int, frozenset[str]] | None = None
    if options.bootstrap_controller:

        async def ask(cluster: ObservedCluster) -> dict[int, frozenset[str]]:
            return cluster.alive

        alive = _with_cluster(options, ask)
    if options.as_json:
        tree: dict[str, Json] = {
            host: {**hosts.entry(host), **({} if alive is None else {"alive.at": sorted(alive.get(broker_id, ()))})}
            for host, broker_id in hosts.ids.items()
        }
        print(json.dumps(tree, indent=1))
        return
    width = max(map(len, hosts.ids), default=0)
    for host, broker_id in sorted(hosts.ids.items(), key=lambda each: (each[1], each[0])):
        where = ""
        if alive is not None:
            where = f"  alive at {', '.join(sorted(alive[broker_id]))}" if broker_id in alive else "  not alive"
        print(f"{host:{width}}  {broker_id}{where}")


def collect_garbage_command(options: GarbageOptions) -> None:
    """Collect; see COLLECT_ABOUT."""

    async def ask(cluster: ObservedCluster) -> dict[str, int]:
        return collect_garbage(HostFile(options.data_dir), cluster, remove=options.yes)

    found = _with_cluster(options, ask)
    if options.as_json:
        print(json.dumps({"removed": options.yes, "hosts": found}, indent=1))
        return
    for host, broker_id in found.items():
        print(f"{'removed' if options.yes else 'garbage'}  {host}  {broker_id}")
    if found and not options.yes:
        print("mockraft broker-id: nothing was removed; --yes removes them", file=sys.stderr)


def _with_cluster(
    options: ControllerOptions, ask: Callable[[ObservedCluster], Coroutine[object, object, Found]]
) -> Found:
    """Return the result of a query while the metadata is at hand; every refusal ends the command with its exit code."""
    from mockraft.brokers.fleet.fleet import fetch_cluster_id
    from mockraft.brokers.ids.observed_cluster import ObservedCluster

    addresses, security = options.addresses, client_security(options.command_config)

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
        print(messages, file=sys.stderr, end="")
        raise SystemExit(ExitCode.NO_ANSWER)

    return _refusing(lambda: asyncio.run(run()))


def _refusing(work: Callable[[], Found]) -> Found:
    try:
        return work()
    except IdentityError as error:
        end("broker-id", error, ExitCode.FAILED)
    except (HostMapError, LogDirsError) as error:
        end("broker-id", error, ExitCode.UNUSABLE_DIRECTORY)


def _log_dirs(paths: list[str]) -> list[DirFound]:
    """Return the state of these directories, which must agree; unreadable ones are reported and skipped."""
    found = look(paths)
    for each in found:
        if each.error is not None:
            print(f"mockraft broker-id: {each.path} cannot be read and says nothing: {each.error}", file=sys.stderr)
    _refusing(lambda: verify(found, None, None))
    return found


COMMANDS = {
    "broker-id": Command(
        "broker-id",
        about=ABOUT,
        subcommands={
            "resolve": Command("resolve", resolve_command, RESOLVE_ABOUT),
            "list": Command("list", list_command, LIST_ABOUT),
            "collect-garbage": Command("collect-garbage", collect_garbage_command, COLLECT_ABOUT),
        },
    )
}

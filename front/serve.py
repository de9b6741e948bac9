"""`mockraft serve`: one controller as a process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import random
import re
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from mockraft import serve_admin as admin
from mockraft import serve_quorum as quorum
from mockraft import serve_release as release
from mockraft import serve_security as security
from mockraft.proposal_options import Profile, Schemas, overlay
from mockraft.proposals import rules_of
from mockraft.serve_help import GROUPS
from mockraft.serve_stubs import InitialState, Stubs, cluster_id_in, load, stub_file, tell_unused

if TYPE_CHECKING:
    from mockraft.server.config import ControllerConfig
    from mockraft.server.journal import Entry
    from mockraft.server.running import RunningController

DESCRIPTORS_KEPT = 64
"""File descriptors that are not for connections: the log's files, the loop, standard streams."""

GC_THRESHOLDS = (20_000, 5, 100)
PORT_TAKEN = 3
DATA_DIR_UNUSABLE = 4

_log = logging.getLogger("mockraft.serve")

_FIELDS_FROM_FILES = {
    "plain_users": "plain_users_file",
    "scram_users": "scram_users_file",
    "client_security": "client_config_file",
}

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")]
AdvertisedHost = Annotated[str | None, typer.Option(help="Host that brokers connect to, if not the one listened on.")]
AdvertisedPort = Annotated[int | None, typer.Option(min=1, max=65535, help="Port that brokers connect to, likewise.")]
NodeId = Annotated[int, typer.Option(min=0, help="The controller's node id.")]
ClusterId = Annotated[str | None, typer.Option(help="The cluster's id. Default: the data directory's, else a new one.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Where the metadata log is kept, in Kafka's own format. Default: in memory.")
]
MetadataVersion = Annotated[
    str | None,
    typer.Option(
        show_default="the newest",
        help="metadata.version of a new log: a name (4.3-IV0), a release (4.1) or a level (7 to 30).",
    ),
]
ListenerName = Annotated[str, typer.Option(help="The brokers' controller.listener.names.")]
SessionTimeoutMs = Annotated[
    int, typer.Option(min=1, help="A broker not heard of for so long is fenced (broker.session.timeout.ms).")
]
NumPartitions = Annotated[int, typer.Option(min=1, help="Default partitions of a topic.")]
DefaultReplicationFactor = Annotated[int, typer.Option(min=1, help="Default replicas of a partition.")]
MinInsyncReplicas = Annotated[int, typer.Option(min=1, help="min.insync.replicas that a new log begins with.")]
MaxIdleIntervalMs = Annotated[
    int, typer.Option(min=1, help="A record that says nothing is written after so long without one.")
]
BytesBetweenSnapshots = Annotated[int, typer.Option(min=1, help="A snapshot is written after so many bytes of log.")]
SnapshotIntervalMs = Annotated[int, typer.Option(min=0, help="A snapshot is written after so long; 0 is never.")]
RetentionBytes = Annotated[int, typer.Option(min=0, help="Log that a snapshot covers is dropped above so many bytes.")]
SegmentBytes = Annotated[int, typer.Option(min=1, help="Size of a segment file of the log.")]
Fsync = Annotated[
    bool, typer.Option("--metadata-log-fsync", help="Force every append to the disk: survives a power cut too.")
]
TokenSecretKey = Annotated[
    str | None, typer.Option(help="Key of delegation tokens, the same as the brokers'. Default: there are none.")
]
TokenMaxLifetimeMs = Annotated[int, typer.Option(min=1, help="A delegation token cannot be renewed after so long.")]
TokenExpiryTimeMs = Annotated[int, typer.Option(min=1, help="A delegation token must be renewed after so long.")]
TokenExpiryCheckIntervalMs = Annotated[int, typer.Option(min=1, help="Delegation tokens that are over go so often.")]
Authorize = Annotated[
    bool, typer.Option("--authorizer", help="Check every request against ACLs, as Kafka's StandardAuthorizer does.")
]
SuperUsers = Annotated[
    str, typer.Option(help='Who may do everything: "User:admin;User:broker". Naming any turns --authorizer on.')
]
AllowEveryone = Annotated[
    bool, typer.Option("--allow-everyone-if-no-acl-found", help="A resource without any ACL is everybody's.")
]
Brokers = Annotated[
    int, typer.Option(min=0, help="Also run so many simulated brokers in this process, which serve clients.")
]
BrokersPort = Annotated[
    int,
    typer.Option(min=0, max=65535, help="Port of the first of them, the others on the next ones; 0 takes free ones."),
]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random, for runs that repeat.")]
FrameBytesMax = Annotated[
    int, typer.Option(min=64, help="A longer request closes its connection (socket.request.max.bytes).")
]
ConnectionsMax = Annotated[int, typer.Option(min=1, help="Further connections are refused.")]
ConnectionsMaxIdleMs = Annotated[
    int, typer.Option(min=1, help="A connection on which nothing happens for so long is closed.")
]
WriteBytesMax = Annotated[int, typer.Option(min=1, help="A connection with more bytes unread by its peer is closed.")]
WriteStuckMs = Annotated[int, typer.Option(min=1, help="A connection whose peer reads nothing for so long is closed.")]
JournalEntriesMax = Annotated[int, typer.Option(min=0, help="Exchanges that are remembered; 0 keeps no journal.")]
LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Logs on stderr as JSON lines.")]


def _cluster_id(text: str) -> str:
    if not text or any(character.isspace() for character in text):
        about = "a cluster id is a text without spaces (kafka-storage random-uuid)"
        raise typer.BadParameter(about, param_hint="--cluster-id")
    return text


def _cluster_id_of(data_dir: Path | None) -> str | None:
    if data_dir is None:
        return None
    from mockraft.server.controller.data_dir import DataDirError, cluster_id_of

    try:
        return cluster_id_of(data_dir)
    except DataDirError as error:
        raise typer.Exit(_fail(DATA_DIR_UNUSABLE, str(error))) from error


def serve(
    host: Host = "127.0.0.1",
    port: Port = 9093,
    advertised_host: AdvertisedHost = None,
    advertised_port: AdvertisedPort = None,
    node_id: NodeId = 3000,
    cluster_id: ClusterId = None,
    data_dir: DataDir = None,
    metadata_version: MetadataVersion = None,
    as_version: release.AsVersion = None,
    api_versions: release.ApiVersions = None,
    controller_listener_name: ListenerName = "CONTROLLER",
    session_timeout_ms: SessionTimeoutMs = 9_000,
    num_partitions: NumPartitions = 1,
    default_replication_factor: DefaultReplicationFactor = 1,
    min_insync_replicas: MinInsyncReplicas = 1,
    metadata_max_idle_interval_ms: MaxIdleIntervalMs = 500,
    metadata_log_max_record_bytes_between_snapshots: BytesBetweenSnapshots = 20_971_520,
    metadata_log_max_snapshot_interval_ms: SnapshotIntervalMs = 3_600_000,
    metadata_max_retention_bytes: RetentionBytes = 104_857_600,
    metadata_log_segment_bytes: SegmentBytes = 1_073_741_824,
    metadata_log_fsync: Fsync = False,
    delegation_token_secret_key: TokenSecretKey = None,
    delegation_token_max_lifetime_ms: TokenMaxLifetimeMs = 604_800_000,
    delegation_token_expiry_time_ms: TokenExpiryTimeMs = 86_400_000,
    delegation_token_expiry_check_interval_ms: TokenExpiryCheckIntervalMs = 3_600_000,
    authorizer: Authorize = False,
    super_users: SuperUsers = "",
    allow_everyone_if_no_acl_found: AllowEveryone = False,
    security_protocol: security.SecurityProtocol = "PLAINTEXT",
    ssl_certificate_file: security.SslCertificateFile = None,
    ssl_key_file: security.SslKeyFile = None,
    ssl_truststore_file: security.SslTruststoreFile = None,
    ssl_client_auth: security.SslClientAuth = "none",
    ssl_principal_mapping_rules: security.SslPrincipalMappingRules = "DEFAULT",
    sasl_enabled_mechanisms: security.SaslEnabledMechanisms = None,
    plain_users_file: security.PlainUsersFile = None,
    scram_users_file: security.ScramUsersFile = None,
    client_config_file: security.ClientConfigFile = None,
    connections_max_reauth_ms: security.ConnectionsMaxReauthMs = 0,
    authentication_timeout_ms: security.AuthenticationTimeoutMs = 30_000,
    unauthenticated_connections_max: security.UnauthenticatedConnectionsMax = 4_096,
    profile: Profile = None,
    schemas: Schemas = None,
    controllers: quorum.Controllers = 1,
    initial_controllers: quorum.InitialControllers = None,
    controller_quorum_voters: quorum.QuorumVoters = None,
    controller_quorum_bootstrap_servers: quorum.QuorumBootstrapServers = None,
    brokers: Brokers = 0,
    brokers_port: BrokersPort = 0,
    stubs: Stubs = None,
    initial_state: InitialState = None,
    admin_port: admin.AdminPort = admin.OFF,
    admin_host: admin.AdminHost = "127.0.0.1",
    admin_token_file: admin.AdminTokenFile = None,
    admin_insecure: admin.AdminInsecure = False,
    virtual_clock: admin.VirtualClock = False,
    seed: Seed = None,
    frame_bytes_max: FrameBytesMax = 104_857_600,
    connections_max: ConnectionsMax = 50_000,
    connections_max_idle_ms: ConnectionsMaxIdleMs = 600_000,
    write_bytes_max: WriteBytesMax = 67_108_864,
    write_stuck_ms: WriteStuckMs = 60_000,
    journal_entries_max: JournalEntriesMax = 20_000,
    log_level: LogLevel = "info",
    log_json: LogJson = False,
) -> None:
    """Run a controller."""
    if code := run(locals()):
        raise typer.Exit(code)


def run(options: dict[str, Any]) -> int:
    """Run a controller with these options of `serve` until a signal; gives the exit code. BadParameter, Exit."""
    from mockraft.logs import configure
    from mockraft.server.running import event_loop, random_cluster_id

    if options["log_level"].upper() not in logging.getLevelNamesMapping():
        raise typer.BadParameter(f"{options['log_level']} is not a log level", param_hint="--log-level")
    configure(options["log_level"], options["log_json"])
    chance = random.Random(options["seed"])
    descriptors = _raise_descriptor_limit()
    first_data_dir = quorum.first_data_dir(options)
    known = _cluster_id_of(first_data_dir) or cluster_id_in(options["initial_state"])
    cluster_id = options["cluster_id"] or known or random_cluster_id(chance)
    options |= (
        quorum.checked(options)
        | release.checked(options)
        | {
            "cluster_id": _cluster_id(cluster_id),
            "overlay": overlay(options["profile"], options["schemas"]),
            "rules": rules_of(options["profile"] or ()),
            "connections_max": max(1, min(options["connections_max"], descriptors - DESCRIPTORS_KEPT)),
        }
    )
    config = _config(options)
    if options["brokers"] and config.security_protocol != "PLAINTEXT" and config.own_client_security is None:
        about = "the simulated brokers must log in: say as whom with --client-config-file"
        raise typer.BadParameter(about, param_hint="--brokers")
    options["admin"] = admin.checked(options)
    options["stub_file"] = stub_file(options["stubs"])
    with asyncio.Runner(loop_factory=event_loop) as runner:
        return runner.run(_run(config, chance, options))


def _config(options: Mapping[str, Any]) -> ControllerConfig:
    """What is called as a field of ControllerConfig is that field; users come out of their files."""
    from mockraft.server.config import ControllerConfig
    from mockraft.server.security_options import uses_tls
    from mockraft.server.tls import server_context

    try:
        options = {**options, **security.users_of(options)}
        config = ControllerConfig(**{f.name: options[f.name] for f in fields(ControllerConfig) if f.name in options})
        if uses_tls(config.security_protocol):
            server_context(config)
    except ValueError as error:
        raise typer.BadParameter(_in_options(str(error))) from error
    except OSError as error:
        raise typer.BadParameter(f"{error.filename}: {error.strerror}") from error
    return config


def _in_options(text: str) -> str:
    """An error about fields of ControllerConfig in the names of options."""
    options = {name: name for names in GROUPS.values() for name in names} | _FIELDS_FROM_FILES

    def option(found: re.Match[str]) -> str:
        name = options.get(found[0])
        return found[0] if name is None else f"--{name.replace('_', '-')}"

    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", option, text)


async def _run(config: ControllerConfig, chance: random.Random, options: Mapping[str, Any]) -> int:
    """Serve until a signal; gives the exit code."""
    from mockraft.server.clock import VirtualClock
    from mockraft.server.controller.data_dir import DataDirError
    from mockraft.server.double import Double
    from mockraft.server.stubs.script import Script

    controllers: int = options["controllers"]
    script = Script()
    try:
        running, nodes = await quorum.start(
            config, controllers, chance, script, VirtualClock() if options["virtual_clock"] else None
        )
    except DataDirError as error:
        return _fail(DATA_DIR_UNUSABLE, str(error))
    except OSError as error:
        if _is_about_address(error):
            return _fail(PORT_TAKEN, _cannot_listen(config, controllers, error))
        raise
    double = Double(lambda: nodes, script)
    if options["stub_file"] is not None:
        try:
            load(script, options["stub_file"], options["stubs"])
        except typer.BadParameter:
            await running.stop()
            raise
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    for each in nodes.values():
        each.node.journal.subscribe(_log_entry, every_exchange=_log.isEnabledFor(logging.DEBUG))
    async with contextlib.AsyncExitStack() as undo:
        undo.push_async_callback(running.stop)
        admin_url = admin.OFF
        if (settings := options["admin"]) is not None:
            try:
                server = await admin.start(double, settings)
            except OSError as error:
                if _is_about_address(error):
                    return _fail(PORT_TAKEN, f"cannot listen on {settings.host}:{settings.port}: {error.strerror}")
                raise
            undo.push_async_callback(server.stop)
            admin_url = server.url
        print(
            f"mockraft ready bootstrap={running.bootstrap} cluster_id={config.cluster_id} "
            f"node_id={','.join(map(str, nodes))} admin={admin_url}",
            flush=True,
        )
        if options["brokers"] and (code := await _start_brokers(nodes, config, chance, options, undo)):
            return code
        gc.freeze()
        # A full collection of ten thousand brokers' objects, all of which stay, takes half a second.
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()
        await stopped.wait()
        _log.info("stopping")
        tell_unused(script)
    return 0


async def _start_brokers(
    nodes: Mapping[int, RunningController],
    config: ControllerConfig,
    chance: random.Random,
    options: Mapping[str, Any],
    undo: contextlib.AsyncExitStack,
) -> int:
    """Run simulated brokers too, until `undo`; gives the exit code, 0 while they run."""
    from mockraft.brokers.fleet import start_brokers
    from mockraft.brokers.listener.client_listener import ListenerError

    addresses = [(each.config.voter_host, each.config.voter_port) for each in nodes.values()]
    own = {"security": config.own_client_security, "messages": next(iter(nodes.values())).node.messages}
    count, port = options["brokers"], options["brokers_port"]
    try:
        fleet = await start_brokers(addresses, config.cluster_id, count, chance=chance, client_port=port, **own)
    except ListenerError as error:
        return _fail(PORT_TAKEN, str(error))
    undo.push_async_callback(fleet.shut_down)
    print(f"mockraft brokers bootstrap_servers={fleet.bootstrap_servers}", flush=True)
    for broker in fleet.brokers:
        _log.info("broker %d serves clients at %s", broker.config.broker_id, broker.bootstrap_servers)
    return 0


def _is_about_address(error: OSError) -> bool:
    return error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES) or isinstance(error, socket.gaierror)


def _cannot_listen(config: ControllerConfig, controllers: int, error: OSError) -> str:
    where = f"{config.host}:{config.port}"
    if controllers > 1 and config.port:
        where = f"{where} to {config.port + controllers - 1}, a port for each controller"
    hint = "; --port 0 takes any that is free" if error.errno == errno.EADDRINUSE else ""
    return f"cannot listen on {where}: {error.strerror}{hint}"


def _log_entry(entry: Entry) -> None:
    """Say in the log what a person wants to know of the journal: refused connections and what broke."""
    from mockraft.server.journal import ClosedConnection

    if isinstance(entry, ClosedConnection):
        level = logging.WARNING if entry.refused else logging.DEBUG
        _log.log(level, "connection %d of %s: %s", entry.connection_id, entry.peer_address, entry.reason)
    elif entry.failure is not None:
        _log.error("%r broke:\n%s", entry, entry.failure)
    else:
        _log.debug("%r", entry)


def _raise_descriptor_limit() -> int:
    """Let the process have as many sockets as it may; gives how many descriptors that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 20 if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return 1 << 20 if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):
        return soft
    return wanted


def _fail(code: int, message: str) -> int:
    print(f"mockraft serve: {message}", file=sys.stderr)
    return code

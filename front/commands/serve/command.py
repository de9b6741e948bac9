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
import socket
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.commands.exit_codes import ExitCode
from mockraft.commands.serve import admin, quorum, release, security
from mockraft.commands.serve.options import (
    ADMIN_OFF,
    OPTIONS,
    MissingPackageError,
    OptionError,
    blaming,
    misspelled_variables,
    variables,
)
from mockraft.commands.serve.stubs import cluster_id_in, load, log_unused, stub_file
from mockraft.commands.signals import stop_after_stdin, stop_on_signals
from mockraft.double.proposals import overlay_of, rules_of

if TYPE_CHECKING:
    from mockraft.server.config import ControllerConfig
    from mockraft.server.double import Double
    from mockraft.server.journal import Entry
    from mockraft.server.running import RunningController

DESCRIPTORS_KEPT = 64
"""File descriptors that are not for connections: the log's files, the loop, standard streams."""

GC_THRESHOLDS = (10_000, 2, 500)
"""A young collection of more objects takes longer, and no less altogether: 33 ms with (20_000, 5, 100), now 5."""

FAILURE_CHECK_S = 0.25
FAILURE_CHECKS = 4
"""Checks in a row that find the controller failed before the process ends; an idle controller writes twice a second."""

SHUTDOWN_MS = 500
"""Time for the controlled shutdown of simulated brokers: three take 0.1 s, and a thousand shall not keep it."""

_log = logging.getLogger("mockraft.serve")

_FIELDS_FROM_FILES = {
    "plain_users": "plain_users_file",
    "scram_users": "scram_users_file",
    "client_security": "client_config_file",
}


def _cluster_id(text: str) -> str:
    if not text or any(character.isspace() for character in text):
        about = "a cluster id is a text without spaces (kafka-storage random-uuid)"
        raise OptionError(about, "--cluster-id")
    return text


def _cluster_id_of(data_dir: Path | None) -> str | None:
    if data_dir is None:
        return None
    from mockraft.server.controller.log.data_dir import DataDirError, cluster_id_of

    try:
        return cluster_id_of(data_dir)
    except DataDirError as error:
        raise SystemExit(_fail(ExitCode.UNUSABLE_DIRECTORY, str(error))) from error


def run(options: dict[str, Any]) -> int:
    """Run a controller until a signal and return the exit code. OptionError for options that cannot be."""
    from mockraft.commands.logs import configure
    from mockraft.server.running import event_loop, random_cluster_id

    if options["log_level"].upper() not in logging.getLevelNamesMapping():
        raise OptionError(f"{options['log_level']} is not a log level", "--log-level")
    configure(options["log_level"], options["log_json"])
    for name, hint in misspelled_variables():
        _log.warning("%s: mockraft serve has no such option; %s", name, hint)
    options |= release.checked(options)
    rng = random.Random(options["seed"])
    descriptors = _raise_descriptor_limit()
    first_data_dir = quorum.first_data_dir(options)
    known = _cluster_id_of(first_data_dir) or cluster_id_in(options["initial_state"])
    cluster_id = options["cluster_id"] or known or random_cluster_id(rng)
    quorum.check(options)
    options |= _proposals(options) | {
        "cluster_id": _cluster_id(cluster_id),
        "connections_max": max(1, min(options["connections_max"], descriptors - DESCRIPTORS_KEPT)),
    }
    config = _config(options)
    if security.lacks_users(config):
        _log.warning("PLAIN is enabled without users, so that nobody can log in with it: add --plain-users-file")
    if options["brokers"] and config.security_protocol != "PLAINTEXT" and config.own_client_security is None:
        about = "the simulated brokers must log in: give their credentials with --client-config-file"
        raise OptionError(about, "--brokers")
    try:
        options["admin"] = admin.checked(options)
        options["stub_file"] = stub_file(options["stubs"])
    except MissingPackageError as error:
        return _fail(ExitCode.MISSING, str(error))
    with asyncio.Runner(loop_factory=event_loop) as runner:
        return runner.run(_run(config, rng, options))


def _proposals(options: Mapping[str, Any]) -> dict[str, Any]:
    profiles = options["profile"] or ()
    with blaming("--profile"):
        rules = rules_of(profiles)
    with blaming("--schemas"):
        return {"rules": rules, "overlay": overlay_of(profiles, options["schemas"] or ())}


def _config(options: Mapping[str, Any]) -> ControllerConfig:
    """Return the config: options by the names of its fields, and users from their files. OptionError."""
    from mockraft.server.config import ControllerConfig
    from mockraft.server.security_options import uses_tls
    from mockraft.server.tls import server_context

    try:
        options = {**options, **security.users_of(options), **security.secrets_of(options)}
        config = ControllerConfig(**{f.name: options[f.name] for f in fields(ControllerConfig) if f.name in options})
        if uses_tls(config.security_protocol):
            server_context(config)
    except ValueError as error:
        raise OptionError(_in_options(str(error))) from error
    except OSError as error:
        raise OptionError(f"{error.filename}: {error.strerror}") from error
    return config


def _in_options(text: str) -> str:
    """Return an error about fields of ControllerConfig with the options, or the properties, in place of the fields."""
    from mockraft.server.config import ROWS
    from mockraft.server.server_properties import property_of

    names = {row.name for row in ROWS}

    def option(found: re.Match[str]) -> str:
        row = OPTIONS.get(_FIELDS_FROM_FILES.get(found[0], found[0]))
        if row is None:
            return property_of(found[0]) if found[0] in names else found[0]
        return f"{row.flag} (env var: '{row.variable}')" if row.name in variables() else row.flag

    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", option, text)


async def _run(config: ControllerConfig, rng: random.Random, options: Mapping[str, Any]) -> int:
    """Serve until a signal, or the end of standard input if asked; return the exit code."""
    from mockraft.server.clock import VirtualClock
    from mockraft.server.controller.log.data_dir import DataDirError
    from mockraft.server.controller.settings.features import METADATA_VERSION
    from mockraft.server.double import Double
    from mockraft.server.stubs.script import Script

    controllers: int = options["controllers"]
    script = Script()
    try:
        running, nodes = await quorum.start(
            config, controllers, rng, script, VirtualClock() if options["virtual_clock"] else None
        )
    except DataDirError as error:
        return _fail(ExitCode.UNUSABLE_DIRECTORY, str(error))
    except OSError as error:
        if _is_about_address(error):
            return _fail(ExitCode.CANNOT_LISTEN, _cannot_listen(config, controllers, error))
        raise
    double = Double(lambda: nodes, script)
    if options["stub_file"] is not None:
        try:
            load(script, options["stub_file"], options["stubs"])
        except OptionError:
            await running.stop()
            raise
    for each in nodes.values():
        each.node.journal.subscribe(_log_entry, every_exchange=_log.isEnabledFor(logging.DEBUG))
    async with contextlib.AsyncExitStack() as undo:
        stopped = undo.enter_context(stop_on_signals())
        if options["until_stdin_ends"]:
            stop_after_stdin(stopped)
        undo.push_async_callback(running.stop)
        admin_url = ADMIN_OFF
        if (settings := options["admin"]) is not None:
            try:
                server = await admin.start(double, settings)
            except OSError as error:
                if _is_about_address(error):
                    return _fail(
                        ExitCode.CANNOT_LISTEN, f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"
                    )
                raise
            undo.push_async_callback(server.stop)
            admin_url = server.url
        level = double.state.features().get(METADATA_VERSION)
        release.log_lower_level(level, config)
        print(
            f"mockraft ready bootstrap={running.bootstrap} cluster_id={config.cluster_id} "
            f"node_id={','.join(map(str, nodes))} admin={admin_url} "
            f"release={config.release} metadata_version={'unknown' if level is None else level}",
            flush=True,
        )
        if options["brokers"] and (code := await _start_brokers(nodes, config, rng, options, undo)):
            return code
        gc.freeze()
        # A full collection of ten thousand brokers' objects, all of which stay, takes half a second.
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()
        if (failure := await _until_failed(double, stopped, stays=options["stay_after_failure"])) is not None:
            return _fail(ExitCode.CANNOT_CONTINUE, failure)
        about = f"; the brokers have {SHUTDOWN_MS} ms for a controlled shutdown" if options["brokers"] else ""
        _log.info("stopping%s", about)
        log_unused(script)
    return 0


async def _until_failed(double: Double, stopped: asyncio.Event, *, stays: bool) -> str | None:
    """Wait for a signal, or until a controller has failed for a while; return the failure. It is logged once."""
    checks = 0
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAILURE_CHECK_S):
                await stopped.wait()
        failure = double.quorum_failure
        checks = checks + 1 if failure is not None else 0
        if checks == FAILURE_CHECKS:
            if not stays:
                _log.error("the controller cannot continue: %s", failure)
                return failure
            _log.error("writes are refused until one succeeds (--stay-after-failure): %s", failure)
    return None


async def _start_brokers(
    nodes: Mapping[int, RunningController],
    config: ControllerConfig,
    rng: random.Random,
    options: Mapping[str, Any],
    undo: contextlib.AsyncExitStack,
) -> int:
    """Start simulated brokers that `undo` shuts down without closing them; return the exit code, 0 while they run."""
    from mockraft.brokers.fleet import start_brokers
    from mockraft.brokers.listener.client_listener import ListenerError

    addresses = [(each.config.voter_host, each.config.voter_port) for each in nodes.values()]
    messages = next(iter(nodes.values())).node.messages
    security = config.own_client_security
    count, port = options["brokers"], options["brokers_port"]
    try:
        fleet = await start_brokers(
            addresses, config.cluster_id, count, rng=rng, client_port=port, security=security, messages=messages
        )
    except ListenerError as error:
        return _fail(ExitCode.CANNOT_LISTEN, str(error))
    undo.push_async_callback(fleet.leave, SHUTDOWN_MS)
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
    """Log what matters of the journal: refused connections and failures."""
    from mockraft.server.journal import ClosedConnection

    if isinstance(entry, ClosedConnection):
        level = logging.WARNING if entry.refused else logging.DEBUG
        _log.log(level, "connection %d of %s: %s", entry.connection_id, entry.peer_address, entry.reason)
    elif entry.failure is not None:
        _log.error("%r failed:\n%s", entry, entry.failure)
    else:
        _log.debug("%r", entry)


def _raise_descriptor_limit() -> int:
    """Raise the limit of open files as far as allowed; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 20 if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return 1 << 20 if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):
        return soft
    return wanted


def _fail(code: ExitCode, message: str) -> int:
    from mockraft.commands.logs import print_error

    print_error(f"mockraft serve: {message}")
    return code

"""The process of `mockraft serve` from the start of its controllers to its end; imported once it listens."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mockraft.cli.exit_codes import ExitCode
from mockraft.cli.serve import admin, quorum, release
from mockraft.cli.serve.failures import cannot_listen, fail, is_about_address
from mockraft.cli.serve.options import ADMIN_OFF
from mockraft.cli.serve.stubs import load, log_unused
from mockraft.cli.signals import stop_after_stdin, stop_on_signals
from mockraft.kafka_api.clock import VIRTUAL_START_MS, VirtualClock
from mockraft.kafka_api.journal import ClosedConnection
from mockraft.kafka_api.listening import listen
from mockraft.kafka_api.options import OptionError
from mockraft.kafka_api.shell import event_loop
from mockraft.kafka_api.turns import turns_of
from mockraft.releases import METADATA_VERSION
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.server.running import quorum_failure
from mockraft.server.stubs.script import Script

if TYPE_CHECKING:
    import random
    import socket

    from mockraft.kafka_api.journal import Entry
    from mockraft.server.admin.settings import AdminSettings
    from mockraft.server.config import ControllerConfig
    from mockraft.server.double import Double
    from mockraft.server.running import RunningController

GC_THRESHOLDS = (10_000, 2, 500)
"""A young collection of more objects takes longer, and no less altogether: 33 ms with (20_000, 5, 100), now 5."""

BROKERS = "mockraft.brokers.fleet.fleet"

FAILURE_CHECK_S = 0.25
FAILURE_CHECKS = 4
"""Checks in a row that find the controller failed before the process ends; an idle controller writes twice a second."""

SHUTDOWN_MS = 500
"""Time for the controlled shutdown of simulated brokers: three take 0.1 s, and a thousand shall not keep it."""

_log = logging.getLogger("mockraft.serve")


def serve(
    config: ControllerConfig, rng: random.Random, options: Mapping[str, Any], listening: socket.socket | None
) -> int:
    """Serve until a signal, or the end of standard input if asked; return the exit code.

    `listening` is the socket of a single controller; the controllers of a quorum bind their own.
    """
    if options["brokers"] and listening is None:
        import_module(BROKERS)  # takes 0.2 s of CPU, in which no leader of a quorum would be heard
    with asyncio.Runner(loop_factory=event_loop) as runner:
        runner.get_loop().set_default_executor(_Readers())
        return runner.run(_serve(config, rng, options, listening))


class _Readers(ThreadPoolExecutor):
    """Threads that read for the admin API; the end of the process, which loses nothing, waits for none of them."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Start nothing more."""
        super().shutdown(wait=False, cancel_futures=True)


async def _serve(
    config: ControllerConfig, rng: random.Random, options: Mapping[str, Any], listening: socket.socket | None
) -> int:
    turns_of(asyncio.get_running_loop()).connections_max = options["sockets_max"]
    script = Script()
    clock = VirtualClock(options.get("virtual_start_ms", VIRTUAL_START_MS)) if options["virtual_clock"] else None
    try:
        running, nodes = await quorum.start(config, options, rng, script, clock, listening)
    except DataDirError as error:
        return fail(ExitCode.UNUSABLE_DIRECTORY, str(error))
    except OSError as error:
        if is_about_address(error):
            return fail(ExitCode.CANNOT_LISTEN, cannot_listen(config, quorum.count(options), error))
        raise
    double: Double | None = None
    if options["stub_file"] is not None or options["admin"] is not None:
        # Faults and the HTTP API need it; its import takes as long as that of the controller.
        from mockraft.server.double import Double

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
        admin_url, admin_socket = ADMIN_OFF, None
        if (settings := options["admin"]) is not None:
            try:
                admin_socket = listen(settings.host, settings.port)
            except OSError as error:
                if is_about_address(error):
                    return fail(
                        ExitCode.CANNOT_LISTEN, f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"
                    )
                raise
            admin_url = settings.url(admin_socket.getsockname()[1])
        await quorum.until_it_commits(running)
        newest = max((each.controller for each in nodes.values()), key=lambda each: each.epoch)
        level = newest.image.features.get(METADATA_VERSION)
        release.log_oddities(level, config)
        print(
            f"mockraft ready bootstrap={running.bootstrap} cluster_id={config.cluster_id} "
            f"node_id={','.join(map(str, nodes))} admin={admin_url} "
            f"release={config.release} metadata_version={'unknown' if level is None else level}"
        )
        if double is not None and admin_socket is not None:
            await _start_admin(double, settings, admin_socket, undo)
        if options["brokers"] and (code := await _start_brokers(nodes, double, rng, options, undo)):
            return code
        gc.freeze()
        # A full collection of ten thousand brokers' objects, all of which stay, takes half a second.
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()
        if (failure := await _until_failed(nodes, stopped, stays=options["stay_after_failure"])) is not None:
            return fail(ExitCode.CANNOT_CONTINUE, failure)
        about = f"; the brokers have {SHUTDOWN_MS} ms for a controlled shutdown" if options["brokers"] else ""
        _log.info("stopping%s", about)
        log_unused(script)
    return 0


async def _until_failed(nodes: Mapping[int, RunningController], stopped: asyncio.Event, *, stays: bool) -> str | None:
    """Wait for a signal, or until a controller has failed for a while; return the failure. It is logged once."""
    checks = 0
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAILURE_CHECK_S):
                await stopped.wait()
        failure = quorum_failure(nodes)
        checks = checks + 1 if failure is not None else 0
        if checks == FAILURE_CHECKS:
            if not stays:
                _log.error("the controller cannot continue: %s", failure)
                return failure
            _log.error("writes are refused until one succeeds (--stay-after-failure): %s", failure)
    return None


async def _start_admin(
    double: Double, settings: AdminSettings, bound: socket.socket, undo: contextlib.AsyncExitStack
) -> None:
    """Serve the admin API at a listening socket. The controller answers during its import."""
    server_class, recorder_class = await asyncio.to_thread(admin.server_classes)
    recorder = recorder_class(show_secrets=double.state.show_secrets)
    server = await server_class.start(double, settings, recorder, bound)
    undo.push_async_callback(server.stop)


async def _start_brokers(
    nodes: Mapping[int, RunningController],
    double: Double | None,
    rng: random.Random,
    options: Mapping[str, Any],
    undo: contextlib.AsyncExitStack,
) -> int:
    """Start simulated brokers that `undo` shuts down without closing them; return the exit code, 0 while they run."""
    await asyncio.to_thread(import_module, BROKERS)  # clients are answered meanwhile
    from mockraft.brokers.fleet.fleet import start_brokers
    from mockraft.brokers.listener.client_listener import ListenerError

    addresses = [(each.config.voter_host, each.config.voter_port) for each in nodes.values()]
    first = next(iter(nodes.values()))
    config, messages = first.config, first.node.messages
    security = config.listener_security
    racks, port = dict.fromkeys(range(1, options["brokers"] + 1)), options["brokers_port"]
    try:
        if "registered_brokers" in options:
            fleet = options["registered_brokers"](config.cluster_id, tuple(addresses), rng)
            await fleet.start()
        else:
            fleet = await start_brokers(
                addresses,
                config.cluster_id,
                racks,
                rng=rng,
                client_port=port,
                security=security.client_security,
                listener_security=security,
                authorizer=config.authorizer_of(),
                messages=messages,
                heartbeat_interval_ms=options["broker_heartbeat_interval_ms"],
            )
    except ListenerError as error:
        return fail(ExitCode.CANNOT_LISTEN, str(error))
    if double is not None:
        for broker in fleet.brokers:
            broker.observe(double.observe_broker(broker.config.broker_id))
    undo.push_async_callback(fleet.leave, SHUTDOWN_MS)
    print(f"mockraft brokers bootstrap_servers={fleet.bootstrap_servers}")
    for broker in fleet.brokers:
        _log.info("broker %d serves clients at %s", broker.config.broker_id, broker.bootstrap_servers)
    return 0


def _log_entry(entry: Entry) -> None:
    """Log what matters of the journal; the listener logs refused connections itself."""
    if isinstance(entry, ClosedConnection):
        _log.debug("connection %d of %s: %s", entry.connection_id, entry.peer_address, entry.reason)
    elif entry.failure is not None:
        _log.error("%r failed:\n%s", entry, entry.failure)
    else:
        _log.debug("%r", entry)

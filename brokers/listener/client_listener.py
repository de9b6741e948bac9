"""The component that accepts clients (Kafka's SocketServer, PLAINTEXT only).

The ports are bound before the broker registers, so that it advertises the real ones; port 0 means any. Clients are
accepted once the broker has caught up with the metadata, which is when Kafka enables request processing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import random
import socket
from typing import TYPE_CHECKING

from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.listener.limits import Limits
from mockraft.brokers.listener.tcp import ClientConnection

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker

BACKLOG = 50
"""Kafka's default of socket.listen.backlog.size."""
PLAINTEXT = 0
CLOSINGS_KEPT = 63
ACCEPT_ITERATIONS = 4
IDLE_SWEEPS = 4
"""Number of searches for idle connections within `connections_max_idle_ms`."""

_log = logging.getLogger(__name__)


class ListenerError(Exception):
    """A listener is not available; the text names it and the reason."""


class ClientListener:
    """Accepts clients on every listener of the config. `connections` are the open ones, `closings` the last close
    reasons.
    """

    loop: asyncio.AbstractEventLoop

    def __init__(self, broker: SimulatedBroker) -> None:
        self.broker = broker
        self.limits = Limits.of(broker.config.properties)
        self.chance = random.Random(broker.config.incarnation_id)
        self.connections: set[ClientConnection] = set()
        self.closings: list[str] = []
        self._bound: list[tuple[str, socket.socket]] = []
        self._servers: list[asyncio.Server] = []
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._is_open = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients, host:port of the first listener; the port is 0 until it is bound."""
        first = self.broker.config.listeners[0]
        return f"{first.host}:{first.port}"

    def start(self) -> None:
        """Bind every listener and put the bound ports into the config. Raises ListenerError."""
        self.loop = asyncio.get_running_loop()
        config = self.broker.config
        advertised = []
        for listener in config.listeners:
            if listener.security_protocol != PLAINTEXT:
                raise ListenerError(f"listener {listener.name}: simulated brokers support only PLAINTEXT for clients")
            bound = _bind(listener.name, listener.host, listener.port)
            self._bound.append((listener.name, bound))
            advertised.append(listener._replace(port=bound.getsockname()[1]))
        self.broker.config = dataclasses.replace(config, listeners=tuple(advertised))

    def metadata_advanced(self) -> None:
        """Nothing to do: responses are built from the current image."""

    def state_changed(self, state: BrokerState) -> None:
        """Accept clients once the broker has caught up, and disconnect them when it stops or shuts down."""
        if state is BrokerState.SHUTTING_DOWN and self._is_open:
            self._ending = self.loop.create_task(self._end())
        if state in (BrokerState.RECOVERY, BrokerState.RUNNING) and not self._is_open:
            self._is_open = True
            self.broker.start_task(self._listen)
            self._sweep_idle()

    async def close(self) -> None:
        """Stop listening and close every connection; all are gone on return."""
        if self._ending is not None:
            await self._ending
        await self._end()

    async def _end(self) -> None:
        self._is_open = False
        if self._idle_sweep is not None:
            self._idle_sweep.cancel()
        if self._servers:
            # asyncio leaks a socket that it is accepting while its server is closed: let it become a connection first.
            for server in self._servers:
                for listening in server.sockets:
                    self.loop.remove_reader(listening.fileno())
            for _ in range(ACCEPT_ITERATIONS):
                await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        for _, bound in self._bound:
            bound.close()
        connections = list(self.connections)
        for connection in connections:
            connection.transport.abort()
        for connection in connections:
            await connection.wait_gone()

    def connected(self, connection: ClientConnection) -> None:
        """Add a connection, or abort it when there are too many."""
        self.connections.add(connection)
        if not self._is_open:
            connection.transport.abort()
        elif len(self.connections) > self.limits.max_connections:
            connection.close(f"more than max.connections={self.limits.max_connections} connections")

    def disconnected(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        self.connections.discard(connection)

    def closed(self, connection: ClientConnection, reason: str) -> None:
        """Record that this side closes a connection."""
        _log.info("broker %d: closed %s: %s", self.broker.config.broker_id, connection.client_address, reason)
        self.closings = [*self.closings[-CLOSINGS_KEPT:], reason]

    async def _listen(self) -> None:
        for name, bound in self._bound:
            make = functools.partial(ClientConnection, self, name)
            self._servers.append(await self.loop.create_server(make, sock=bound, backlog=BACKLOG))

    def _sweep_idle(self) -> None:
        idle_ms = self.limits.connections_max_idle_ms
        if idle_ms < 0:
            return
        idle_since = self.loop.time() - idle_ms / 1000
        for connection in list(self.connections):
            if connection.active_at < idle_since:
                connection.close(f"idle for connections.max.idle.ms={idle_ms}")
        self._idle_sweep = self.loop.call_later(idle_ms / 1000 / IDLE_SWEEPS, self._sweep_idle)


def _bind(name: str, host: str, port: int) -> socket.socket:
    bound: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise ListenerError(
            f"listener {name} cannot be bound to {host}:{port}: {error}; give it another port"
        ) from error
    return bound

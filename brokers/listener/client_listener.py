"""The component that accepts clients (Kafka's SocketServer, PLAINTEXT only): the asyncio side of `Clients`.

The ports are bound before the broker registers, so that it advertises the real ones; port 0 means any. Clients are
accepted once the broker has caught up with the metadata, which is when Kafka enables request processing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import itertools
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from mockraft.brokers.apis.api import BrokerView
from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.listener.clients import Clients
from mockraft.brokers.listener.connection import Effect
from mockraft.brokers.listener.limits import Limits
from mockraft.brokers.listener.tcp import ClientSocket
from mockraft.serving.parked import NEVER_MS

BACKLOG = 50
"""Kafka's default of socket.listen.backlog.size."""
PLAINTEXT = 0
ACCEPT_ITERATIONS = 4


class ListenerError(Exception):
    """A listener is not available; the text names it and the reason."""


class ListeningBroker(Protocol):
    """The broker as its listener sees it; the bound ports are put into `config`."""

    config: BrokerConfig

    def start_task(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task of this broker until it finishes or the broker stops."""


class ClientListener:
    """Accepts clients on every listener of the config. `connections` are the open ones by id.

    `view` is called when clients are first accepted.
    """

    loop: asyncio.AbstractEventLoop

    def __init__(self, broker: ListeningBroker, view: Callable[[], BrokerView]) -> None:
        self.broker = broker
        self._view = view
        self.connections: dict[int, ClientSocket] = {}
        self._limits = Limits.of(broker.config.properties)
        self._clients: Clients | None = None
        self._connection_ids = itertools.count(1)
        self._bound: list[tuple[str, socket.socket]] = []
        self._servers: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients, host:port of the first listener; the port is 0 until it is bound."""
        first = self.broker.config.listeners[0]
        return f"{first.host}:{first.port}"

    @property
    def clients(self) -> Clients:
        """The sans-IO part; there is one since clients were first accepted."""
        assert self._clients is not None
        return self._clients

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
            self._clients = Clients(self._view(), self._limits, self._arm)
            self.broker.start_task(self._listen)
            self._arm()

    def changed(self) -> None:
        """Let parked requests be retried soon."""
        if self._clients is not None:
            self._clients.changed()

    async def close(self) -> None:
        """Stop listening and close every connection; all are gone on return."""
        if self._ending is not None:
            await self._ending
        await self._end()

    async def _end(self) -> None:
        self._is_open = False
        if self._timer is not None:
            self._timer.cancel()
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
        connections = list(self.connections.values())
        for connection in connections:
            connection.transport.abort()
        for connection in connections:
            await connection.wait_gone()

    def connected(self, connection: ClientSocket) -> None:
        """Add a connection, or abort it when no clients are accepted any more."""
        self.connections[connection.connection_id] = connection
        if not self._is_open:
            connection.transport.abort()
            return
        name, address = connection.listener_name, connection.client_address
        self._carry_out(self.clients.connected(connection.connection_id, name, address, self._now_ms()))

    def received(self, connection: ClientSocket, data: bytes) -> None:
        """Process bytes that a connection received."""
        self._carry_out(self.clients.received(connection.connection_id, data, self._now_ms()))

    def sent(self, connection: ClientSocket) -> None:
        """Go on with a connection whose client has read."""
        self._carry_out(self.clients.sent(connection.connection_id, self._now_ms()))

    def disconnected(self, connection: ClientSocket) -> None:
        """Remove a closed connection."""
        del self.connections[connection.connection_id]
        self.clients.disconnected(connection.connection_id)

    def _now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if (connection := self.connections.get(effect.connection_id)) is not None:
                connection.carry_out(effect)
        self._arm()

    def _arm(self) -> None:
        """Set the timer for the next tick, unless an earlier one is set."""
        next_ms = self.clients.next_tick_ms()
        if not self._is_open or next_ms >= NEVER_MS:
            return
        if self._timer is not None and not self._timer.cancelled():
            if self._timer.when() <= next_ms / 1000:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(next_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._carry_out(self.clients.tick(self._now_ms()))

    async def _listen(self) -> None:
        for name, bound in self._bound:
            make = functools.partial(self._accept, name)
            self._servers.append(await self.loop.create_server(make, sock=bound, backlog=BACKLOG))

    def _accept(self, listener_name: str) -> ClientSocket:
        return ClientSocket(self, listener_name, next(self._connection_ids))


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

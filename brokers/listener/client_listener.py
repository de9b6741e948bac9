"""The component that accepts clients (Kafka's SocketServer, PLAINTEXT only): the asyncio side of `Clients`.

The ports are bound before the broker registers, so that it advertises the real ones; port 0 means any. Clients are
accepted once the broker has caught up with the metadata, which is when Kafka enables request processing.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import socket
from collections.abc import Callable, Sequence

from mockraft.brokers.config import PLAINTEXT, Listener
from mockraft.brokers.effects import ClientConnected, ClientEvent, ClientGone, ClientRead, ClientSent
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.listener.tcp import ClientSocket
from mockraft.kafka_api.effects import ConnectionEffect

BACKLOG = 50
"""Kafka's default of socket.listen.backlog.size."""
ACCEPT_ITERATIONS = 4


class ListenerError(Exception):
    """A listener is not available; the text names it and the reason."""


class ClientListener:
    """Accepts clients on every listener of the config. `connections` are the open ones by id.

    `feed` gives their events to the broker.
    """

    def __init__(self, listeners: Sequence[Listener], feed: Callable[[ClientEvent], None]) -> None:
        self.listeners = tuple(listeners)
        self.connections: dict[int, ClientSocket] = {}
        self._feed = feed
        self._connection_ids = itertools.count(1)
        self._bound: list[tuple[str, socket.socket]] = []
        self._servers: list[asyncio.Server] = []
        self._is_open = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def bootstrap(self) -> str:
        """The address for clients, host:port of the first listener; the port is 0 until it is bound."""
        return f"{self.listeners[0].host}:{self.listeners[0].port}"

    def bind(self) -> None:
        """Bind every listener; `listeners` have the real ports then. Raises ListenerError."""
        advertised = []
        for listener in self.listeners:
            if listener.security_protocol != PLAINTEXT:
                raise ListenerError(f"listener {listener.name}: simulated brokers support only PLAINTEXT for clients")
            bound = _bind(listener.name, listener.host, listener.port)
            self._bound.append((listener.name, bound))
            advertised.append(listener._replace(port=bound.getsockname()[1]))
        self.listeners = tuple(advertised)

    def state_changed(self, state: BrokerState) -> None:
        """Accept clients once the broker has caught up, and disconnect them when it stops or shuts down."""
        loop = asyncio.get_running_loop()
        if state is BrokerState.SHUTTING_DOWN and self._is_open:
            self._tasks.append(loop.create_task(self._end()))
        if state is BrokerState.RECOVERY and not self._is_open:
            self._is_open = True
            self._tasks.append(loop.create_task(self._listen()))

    def carry_out(self, effect: ConnectionEffect) -> None:
        """Carry out an effect on one of the connections, if it is still there."""
        if (connection := self.connections.get(effect.connection_id)) is not None:
            connection.carry_out(effect)

    async def close(self) -> None:
        """Stop listening and close every connection; all are gone on return."""
        await asyncio.gather(*self._tasks)
        await self._end()

    async def _end(self) -> None:
        self._is_open = False
        if self._servers:
            # asyncio leaks a socket that it is accepting while its server is closed: let it become a connection first.
            loop = asyncio.get_running_loop()
            for server in self._servers:
                for listening in server.sockets:
                    loop.remove_reader(listening.fileno())
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
        self._feed(ClientConnected(connection.connection_id, connection.listener_name, connection.client_address))

    def received(self, connection: ClientSocket, data: bytes) -> None:
        """Process bytes that a connection received."""
        self._feed(ClientSent(connection.connection_id, data))

    def sent(self, connection: ClientSocket) -> None:
        """Go on with a connection whose client has read."""
        self._feed(ClientRead(connection.connection_id))

    def disconnected(self, connection: ClientSocket) -> None:
        """Remove a closed connection."""
        del self.connections[connection.connection_id]
        self._feed(ClientGone(connection.connection_id))

    async def _listen(self) -> None:
        for name, bound in self._bound:
            make = functools.partial(self.accept, name)
            listening = asyncio.get_running_loop().create_server(make, sock=bound, backlog=BACKLOG)
            self._servers.append(await listening)

    def accept(self, listener_name: str) -> ClientSocket:
        """Return the protocol of a new connection on the listener of this name."""
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

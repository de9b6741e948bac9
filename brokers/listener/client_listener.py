"""The ports on which a broker accepts clients.

They are bound before the broker registers, so that it advertises the real ones; port 0 means any. Clients are accepted
once the broker has caught up with the metadata, which is when Kafka enables request processing. What the shell of
`mockraft.kafka_api` receives goes to the broker as events.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence

from mockraft.brokers.config import Listener
from mockraft.brokers.effects import (
    ClientClosed,
    ClientConnected,
    ClientEvent,
    ClientGone,
    ClientRead,
    ClientSecured,
    ClientSent,
)
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.listener.clients import Clients, Limits
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.clock import REAL_CLOCK, Clock
from mockraft.kafka_api.effects import Effect
from mockraft.kafka_api.listening import bind
from mockraft.kafka_api.security import ServerSecurity, uses_tls
from mockraft.kafka_api.shell import Links, Shell, SocketConnection
from mockraft.kafka_api.tls import server_context


class ListenerError(Exception):
    """A listener is not available; the text names it and the reason."""


class _Fed:
    """The broker as its shell sees it: whatever happens is an event, and effects come later, by `carry_out`."""

    def __init__(self, feed: Callable[[ClientEvent], None], clients: Callable[[], Clients | None]) -> None:
        self._feed = feed
        self._clients = clients
        self.now_us = REAL_CLOCK.now_us

    def connected(self, connection_id: int, peer_address: str, now_ms: int, listener: str) -> tuple[Effect, ...]:
        self._feed(ClientConnected(connection_id, listener, peer_address.rpartition(":")[0]))
        if (clients := self._clients()) is not None:
            clients.now_us = self.now_us
        return ()

    def secured(self, connection_id: int, certificate: bytes | None, now_ms: int) -> tuple[Effect, ...]:
        self._feed(ClientSecured(connection_id, certificate))
        return ()

    def step(self, connection_id: int, data: bytes, now_ms: int, is_late: bool = False) -> tuple[Effect, ...]:
        self._feed(ClientSent(connection_id, data, is_late))
        return ()

    def sent(self, connection_id: int, now_ms: int) -> tuple[Effect, ...]:
        self._feed(ClientRead(connection_id))
        return ()

    def disconnected(self, connection_id: int, reason: str, now_ms: int) -> None:
        self._feed(ClientGone(connection_id, reason))

    def close(self, connection_id: int, kind: str, reason: str, now_ms: int) -> tuple[Effect, ...]:
        self._feed(ClientClosed(connection_id, kind, reason))
        return ()

    def broke(self, error: BaseException, now_ms: int) -> None:
        if (clients := self._clients()) is not None:
            clients.broke(error, now_ms)

    def client_of(self, connection_id: int) -> tuple[str | None, int]:
        clients = self._clients()
        return (None, -1) if clients is None else clients.client_of(connection_id)

    def tick(self, now_ms: int) -> tuple[Effect, ...]:
        return ()

    def next_tick_ms(self, now_ms: int) -> int:
        return NEVER_MS


class ClientListener:
    """Accepts clients on the listeners of a broker, all with this security.

    `feed` gives their events to the broker, `clients` returns its side of their connections, once it has one.
    """

    def __init__(
        self,
        listeners: Sequence[Listener],
        feed: Callable[[ClientEvent], None],
        limits: Limits,
        security: ServerSecurity,
        clients: Callable[[], Clients | None],
    ) -> None:
        self.listeners = tuple(listeners)
        self._fed = _Fed(feed, clients)
        tls = server_context(security) if uses_tls(security.security_protocol) else None
        self._shell = Shell(self._fed, limits, REAL_CLOCK, tls)
        self._bound: list[tuple[str, socket.socket]] = []
        self._is_open = False
        self._tasks: list[asyncio.Task[None]] = []

    def move(self, clock: Clock) -> None:
        """Run by a clock from now on; not once it has begun."""
        self._shell.move(clock)
        self._fed.now_us = clock.now_us

    @property
    def connections(self) -> Mapping[int, SocketConnection]:
        """The open connections by id."""
        return {each.connection_id: each for each in self._shell.connections()}

    @property
    def bootstrap(self) -> str:
        """The address for clients, host:port of the first listener; the port is 0 until it is bound."""
        return f"{self.listeners[0].host}:{self.listeners[0].port}"

    def bind(self) -> None:
        """Bind every listener; `listeners` have the real ports then. Raises ListenerError."""
        advertised = []
        for listener in self.listeners:
            try:
                bound = bind(listener.host, listener.port)
            except OSError as error:
                raise ListenerError(
                    f"listener {listener.name} cannot be bound to {listener.host}:{listener.port}: {error.strerror};"
                    " give it another port"
                ) from error
            self._bound.append((listener.name, bound))
            advertised.append(listener._replace(port=bound.getsockname()[1]))
        self.listeners = tuple(advertised)

    def disturb(self, links: Callable[[Shell], Links]) -> None:
        """Let faults work on the bytes of connections."""
        self._shell.links = links(self._shell)

    def state_changed(self, state: BrokerState) -> None:
        """Accept clients once the broker has caught up, and disconnect them when it stops or shuts down."""
        loop = asyncio.get_running_loop()
        if state is BrokerState.SHUTTING_DOWN and self._is_open:
            self._tasks.append(loop.create_task(self._end()))
        if state is BrokerState.RECOVERY and not self._is_open:
            self._is_open = True
            self._shell.begin()
            self._tasks.append(loop.create_task(self._listen()))

    def carry_out(self, effect: Effect) -> None:
        """Carry out an effect on one of the connections, if it is still there."""
        self._shell.perform((effect,), self._shell.clock.now_ms())

    async def close(self) -> None:
        """Stop listening and close every connection; all are gone on return."""
        await asyncio.gather(*self._tasks)
        await self._end()

    def accept(self, listener: str) -> SocketConnection:
        """Return the protocol of a new connection on the listener of this name."""
        return self._shell.accept(listener)

    async def _listen(self) -> None:
        for name, bound in self._bound:
            await self._shell.listen(bound, name)

    async def _end(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._shell.stop("the broker stops")
        for _, bound in self._bound:
            bound.close()

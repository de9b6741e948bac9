"""Sockets and timer of the controller listener; carries out the node's effects in order."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockraft.kafka_api.clock import Clock, Timer
from mockraft.kafka_api.parked import NEVER_MS
from mockraft.server.effects import AwaitSent, Close, Effect, PauseReading, Reset, ResumeReading, Send, SendToNode
from mockraft.server.listening import BACKLOG
from mockraft.server.node import Node
from mockraft.server.tcp_connections import TcpConnection, TlsConnection
from mockraft.server.toxic_links import ToxicLinks
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.server.quorum_connections import QuorumConnections

ACCEPT_ITERATIONS = 4
IDLE_SWEEPS = 4
"""Checks for idle connections per `connections_max_idle_ms`."""


class TcpListener:
    """A node's listener on one bound socket.

    Use `start` and `stop` from a running event loop. `clock` provides the node's time and ticks; with `tls` every
    connection begins with a handshake.
    """

    def __init__(self, node: Node, clock: Clock, tls: ssl.SSLContext | None = None) -> None:
        self.node = node
        self.clock = clock
        self.tls = tls
        self._connections: dict[int, TcpConnection] = {}
        self._connections_made = 0
        self._server: asyncio.Server | None = None
        self._timer: Timer | None = None
        self._timer_ms = NEVER_MS
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._quorum_connections: QuorumConnections | None = None
        self._is_shut = False
        self._is_performing = False
        self._turns: deque[TcpConnection] = deque()
        self._deferred_effects: deque[Iterable[Effect]] = deque()
        self.faults = node.script.faults
        self._links = ToxicLinks(self, self.faults)
        node.responses.now_us = clock.now_us

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket and start ticking."""
        self.loop = asyncio.get_running_loop()
        self._server = await self.loop.create_server(self.accept, sock=bound, backlog=BACKLOG)
        self._arm(self.clock.now_ms())
        self._sweep_idle()
        self.faults.attach(self._links)
        self.node.script.stubs.on_release.append(self._answer_released)
        self.loop.call_soon(self.faults.begin, self.clock.now_ms())

    async def stop(self) -> None:
        """Stop listening and close every connection; responses in progress are still written."""
        self._is_shut = True
        self.faults.detach(self._links)
        if self._answer_released in (callbacks := self.node.script.stubs.on_release):
            callbacks.remove(self._answer_released)
        if self._server is not None:
            # asyncio keeps a connection open that it accepts while its server is closed: let it complete first.
            for listening in self._server.sockets:
                self.loop.remove_reader(listening.fileno())
            for _ in range(ACCEPT_ITERATIONS):
                await asyncio.sleep(0)
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Prevent rearming while connections close.
        self._timer_ms = 0
        if self._idle_sweep is not None:
            self._idle_sweep.cancel()
        if self._quorum_connections is not None:
            await self._quorum_connections.close()
        now_ms = self.clock.now_ms()
        for connection in self.connections():
            self.node.disconnected(connection.connection_id, "the controller stops", now_ms)
            connection.close()
        # A transport with an empty buffer closes within one iteration of the event loop; others get a moment.
        deadline = self.loop.time() + 0.25
        while self._connections and self.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for connection in self.connections():
            connection.transport.abort()
        await asyncio.sleep(0)

    def shut(self, is_shut: bool) -> None:
        """Reset all connections and refuse new ones, or accept connections again."""
        self._is_shut = is_shut
        if is_shut:
            for connection in self.connections():
                connection.transport.abort()

    def serve(self, node: Node) -> None:
        """Serve another node on the same port; every connection is reset, as when a process ends."""
        now_ms = self.clock.now_ms()
        for connection in self.connections():
            self.node.disconnected(connection.connection_id, "the controller restarts", now_ms)
            connection.transport.abort()
        self._connections.clear()
        self.node = node
        node.responses.now_us = self.clock.now_us
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms = NEVER_MS
        self._arm(now_ms)

    def accept(self) -> TcpConnection:
        """Return the protocol of a new connection."""
        return TcpConnection(self) if self.tls is None else TlsConnection(self, self.tls)

    def connections(self) -> list[TcpConnection]:
        """Open connections, oldest first."""
        return list(self._connections.values())

    def connection(self, connection_id: int) -> TcpConnection | None:
        """Return the connection with this id if its socket is open."""
        return self._connections.get(connection_id)

    def quorum_connections(self) -> QuorumConnections:
        """Connections to the other nodes of the quorum, created on first use."""
        if self._quorum_connections is None:
            from mockraft.server.quorum_connections import QuorumConnections

            config = self.node.config
            client_id = f"raft-client-{config.node_id}"
            self._quorum_connections = QuorumConnections(client_id, self._answered, config.own_client_security)
        return self._quorum_connections

    def received(self, connection: TcpConnection, data: bytes) -> None:
        """Pass received bytes to the node, and carry out its effects."""
        now_ms = self.clock.now_ms()
        self.perform(self.node.step(connection.connection_id, data, now_ms), now_ms)

    def perform(self, effects: Iterable[Effect], now_ms: int) -> None:
        """Carry out effects in order, then schedule the node's next tick.

        Effects that arise meanwhile (a toxic delivers bytes, a write ends a connection) are carried out afterwards.
        """
        if self._is_performing:
            self._deferred_effects.append(effects)
            return
        self._is_performing = True
        try:
            self._perform(effects, now_ms)
            while self._deferred_effects:
                self._perform(self._deferred_effects.popleft(), now_ms)
        finally:
            self._is_performing = False
        self._arm(now_ms)

    def _perform(self, effects: Iterable[Effect], now_ms: int) -> None:
        connections = self._connections
        if self.faults.depends_on_requests:
            self._links.match_answered(effects, now_ms)
        for effect in effects:
            connection = connections.get(effect.connection_id)
            if connection is None:
                if isinstance(effect, SendToNode):
                    self.quorum_connections().send(effect.outgoing)
                continue
            if effect.__class__ is Send:
                connection.send(effect.data)
                continue
            match effect:
                case Close():
                    connection.close()
                case Reset():
                    connection.reset()
                case PauseReading():
                    connection.set_held_back(True)
                case ResumeReading():
                    connection.set_held_back(False)
                case AwaitSent():
                    connection.await_sent()

    def connection_accepted(self, connection: TcpConnection, address: str) -> int:
        """Register an accepted connection; return its id."""
        self._connections_made += 1
        connection_id = self._connections_made
        connection.connection_id = connection_id
        self._connections[connection_id] = connection
        now_ms = self.clock.now_ms()
        self.perform(self.node.connected(connection_id, address, now_ms), now_ms)
        if self.faults.toxics:
            self._links.look(connection, now_ms)
        if self._is_shut:
            connection.transport.abort()
        return connection_id

    def connection_ended(self, connection_id: int, reason: str) -> None:
        """Remove a closed connection."""
        self._connections.pop(connection_id, None)
        self.node.disconnected(connection_id, reason, self.clock.now_ms())

    def queue_turn(self, connection: TcpConnection) -> None:
        """Let a connection go on after those that wait already, one in each iteration of the event loop."""
        self._turns.append(connection)
        if len(self._turns) == 1:
            # A timer runs after the sockets that are ready in the same iteration; `call_soon` would run before them.
            self.loop.call_later(0, self._take_turn)

    def _take_turn(self) -> None:
        connection = self._turns.popleft()
        if self._turns:
            self.loop.call_later(0, self._take_turn)
        connection.take_turn()

    def close_connection(self, connection_id: int, kind: str, reason: str) -> None:
        """Close a connection for a reason of its socket; `kind` is the journal's category."""
        now_ms = self.clock.now_ms()
        self.perform(self.node.close(connection_id, kind, reason, now_ms), now_ms)

    def _answered(self, outgoing_id: int, response: Message | None) -> None:
        now_ms = self.clock.now_ms()
        self.perform(self.node.answered(outgoing_id, response, now_ms), now_ms)

    def _sweep_idle(self) -> None:
        """Close idle connections (Kafka's Selector), by the event loop's time, as idleness is a matter of sockets."""
        idle_ms = self.node.config.connections_max_idle_ms
        idle_since = self.loop.time() - idle_ms / 1000
        for connection in self.connections():
            if connection.active_at < idle_since:
                self.close_connection(connection.connection_id, "connections_max_idle_ms", f"idle for {idle_ms} ms")
        self._idle_sweep = self.loop.call_later(idle_ms / 1000 / IDLE_SWEEPS, self._sweep_idle)

    def _arm(self, now_ms: int) -> None:
        """Schedule `tick` for the node's next deadline; a timer that is early enough stays."""
        when_ms = min(self.node.next_tick_ms(now_ms), self.faults.next_ms)
        if when_ms >= self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = when_ms
        self._timer = self.clock.call_at(self.loop, when_ms, self._tick)

    def _answer_released(self) -> None:
        self.loop.call_soon(self._tick_now)

    def _tick_now(self) -> None:
        now_ms = self.clock.now_ms()
        self.perform(self.node.tick(now_ms), now_ms)

    def _tick(self) -> None:
        self._timer = None
        self._timer_ms = NEVER_MS
        now_ms = self.clock.now_ms()
        if now_ms >= self.faults.next_ms:
            self.faults.tick(now_ms)
        self.perform(self.node.tick(now_ms), now_ms)

"""The controller listener's sockets and its timer: what the node says is done here, in order."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mockraft.server.clock import Clock, Timer
from mockraft.server.controller.periodic import NEVER_MS
from mockraft.server.effects import Ask, AwaitSent, Close, Effect, PauseReading, Reset, ResumeReading, Send
from mockraft.server.node import Node
from mockraft.server.tcp_peers import Peer, TlsPeer
from mockraft.server.toxic_links import ToxicLinks

if TYPE_CHECKING:
    from mockraft.server.peers import Peers

BACKLOG = 1024
ACCEPT_TURNS = 4
IDLE_SWEEPS = 4
"""How often in `connections_max_idle_ms` idle connections are looked for."""


class TcpListener:
    """A node's listener on one bound socket.

    Use `start` and `stop` from a running event loop. `clock` gives the node its time and its ticks; with `tls` every
    connection begins with a handshake.
    """

    def __init__(self, node: Node, clock: Clock, tls: ssl.SSLContext | None = None) -> None:
        self.node = node
        self.clock = clock
        self.tls = tls
        self._peers: dict[int, Peer] = {}
        self._connections_made = 0
        self._server: asyncio.Server | None = None
        self._timer: Timer | None = None
        self._timer_ms = NEVER_MS
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._quorum_peers: Peers | None = None
        self._is_shut = False
        self._is_performing = False
        self._said_meanwhile: deque[Iterable[Effect]] = deque()
        self._faults = node.script.faults
        self._links = ToxicLinks(self, self._faults)

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket and begin to tick."""
        self.loop = asyncio.get_running_loop()
        self._server = await self.loop.create_server(self._new_peer, sock=bound, backlog=BACKLOG)
        self._arm(self.clock.now_ms())
        self._sweep_idle()
        self._faults.attach(self._links)
        self.node.script.rack.on_release.append(self._answer_released)
        self.loop.call_soon(self._faults.begin, self.clock.now_ms())

    async def stop(self) -> None:
        """Stop listening and close every connection; what was answered is still written."""
        self._is_shut = True
        self._faults.detach(self._links)
        if self._answer_released in (told := self.node.script.rack.on_release):
            told.remove(self._answer_released)
        if self._server is not None:
            # asyncio leaves open what it is accepting while its server is closed: let it become a peer first.
            for listening in self._server.sockets:
                self.loop.remove_reader(listening.fileno())
            for _ in range(ACCEPT_TURNS):
                await asyncio.sleep(0)
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # What is said while the connections close arms no timer: none is earlier than this.
        self._timer_ms = 0
        if self._idle_sweep is not None:
            self._idle_sweep.cancel()
        if self._quorum_peers is not None:
            await self._quorum_peers.close()
        now_ms = self.clock.now_ms()
        for peer in self.peers():
            self.node.disconnected(peer.connection_id, "the controller stops", now_ms)
            peer.close()
        # A transport that has nothing left to write is gone after one turn of the loop; others get a moment.
        deadline = self.loop.time() + 0.25
        while self._peers and self.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for peer in self.peers():
            peer.transport.abort()
        await asyncio.sleep(0)

    def shut(self, is_shut: bool) -> None:
        """Cut everybody off, or take connections again: a new one is broken at once, as those there are are now."""
        self._is_shut = is_shut
        if is_shut:
            for peer in self.peers():
                peer.transport.abort()

    def serve(self, node: Node) -> None:
        """Serve another node on the same port from now on: every connection is broken, as when a process ends."""
        now_ms = self.clock.now_ms()
        for peer in self.peers():
            self.node.disconnected(peer.connection_id, "the controller restarts", now_ms)
            peer.transport.abort()
        self._peers.clear()
        self.node = node
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms = NEVER_MS
        self._arm(now_ms)

    def _new_peer(self) -> Peer:
        return Peer(self) if self.tls is None else TlsPeer(self, self.tls)

    def peers(self) -> list[Peer]:
        """The connections whose sockets are open, oldest first."""
        return list(self._peers.values())

    def peer(self, connection_id: int) -> Peer | None:
        """The connection of this id, if its socket is open."""
        return self._peers.get(connection_id)

    def quorum_peers(self) -> Peers:
        """The connections to the other nodes of the quorum, made when they are first needed."""
        if self._quorum_peers is None:
            from mockraft.server.peers import Peers

            config = self.node.config
            client_id = f"raft-client-{config.node_id}"
            self._quorum_peers = Peers(client_id, self._answered, config.own_client_security)
        return self._quorum_peers

    def perform(self, effects: Iterable[Effect], now_ms: int) -> None:
        """Do what the node said at this time, in order, and look when it wants to be called next.

        What it says while that goes on (a toxic lets bytes in, a write ends a connection) is done afterwards.
        """
        if self._is_performing:
            self._said_meanwhile.append(effects)
            return
        self._is_performing = True
        try:
            self._perform(effects, now_ms)
            while self._said_meanwhile:
                self._perform(self._said_meanwhile.popleft(), now_ms)
        finally:
            self._is_performing = False
        self._arm(now_ms)

    def _perform(self, effects: Iterable[Effect], now_ms: int) -> None:
        peers = self._peers
        if self._faults.heeds_speech:
            self._links.look_at_speakers(effects, now_ms)
        for effect in effects:
            peer = peers.get(effect.connection_id)
            if peer is None:
                if isinstance(effect, Ask):
                    self.quorum_peers().ask(effect.outgoing)
                continue
            if effect.__class__ is Send:
                peer.send(effect.data)
                continue
            match effect:
                case Close():
                    peer.close()
                case Reset():
                    peer.reset()
                case PauseReading():
                    peer.set_held_back(True)
                case ResumeReading():
                    peer.set_held_back(False)
                case AwaitSent():
                    peer.await_sent()

    def peer_made(self, peer: Peer, address: str) -> int:
        """A connection was accepted; gives its id."""
        self._connections_made += 1
        connection_id = self._connections_made
        peer.connection_id = connection_id
        self._peers[connection_id] = peer
        now_ms = self.clock.now_ms()
        self.perform(self.node.connected(connection_id, address, now_ms), now_ms)
        if self._faults.toxics:
            self._links.look(peer, now_ms)
        if self._is_shut:
            peer.transport.abort()
        return connection_id

    def peer_lost(self, connection_id: int, reason: str) -> None:
        """A connection is gone."""
        self._peers.pop(connection_id, None)
        self.node.disconnected(connection_id, reason, self.clock.now_ms())

    def close_peer(self, connection_id: int, kind: str, reason: str) -> None:
        """Close a connection for a reason that only its socket shows; `kind` is what the journal counts it by."""
        now_ms = self.clock.now_ms()
        self.perform(self.node.close(connection_id, kind, reason, now_ms), now_ms)

    def _answered(self, outgoing_id: int, response: Any) -> None:
        now_ms = self.clock.now_ms()
        self.perform(self.node.answered(outgoing_id, response, now_ms), now_ms)

    def _sweep_idle(self) -> None:
        """Close what was idle for too long (Kafka's Selector), by the loop's own time: idle is a matter of sockets."""
        idle_ms = self.node.config.connections_max_idle_ms
        idle_since = self.loop.time() - idle_ms / 1000
        for peer in self.peers():
            if peer.active_at < idle_since:
                self.close_peer(peer.connection_id, "connections_max_idle_ms", f"idle for {idle_ms} ms")
        self._idle_sweep = self.loop.call_later(idle_ms / 1000 / IDLE_SWEEPS, self._sweep_idle)

    def _arm(self, now_ms: int) -> None:
        """Have `tick` called when the node wants it; a timer that is early enough stays."""
        when_ms = min(self.node.next_tick_ms(now_ms), self._faults.next_ms)
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
        if now_ms >= self._faults.next_ms:
            self._faults.tick(now_ms)
        self.perform(self.node.tick(now_ms), now_ms)


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the first address of `host`; OSError when the port is taken. Port 0 gives any free one."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound

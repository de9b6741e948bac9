"""The controller listener's sockets: the only file of the server that knows asyncio's transports.

Each connection is one small protocol object; what it receives goes to the node at once and what the node says is
written at once. A peer that does not read is not read from either, so its unread answers stay bounded, and it is
closed when it stays stuck.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from mockraft.server.clock import Clock, Timer
from mockraft.server.controller.periodic import NEVER_MS
from mockraft.server.effects import Ask, AwaitSent, Close, Effect, PauseReading, Reset, ResumeReading, Send
from mockraft.server.node import Node
from mockraft.server.tls import TlsError, TlsSession

if TYPE_CHECKING:
    from mockraft.server.peers import Peers

BACKLOG = 1024
_LINGER_0 = struct.pack("ii", 1, 0)
UNREAD_BYTES_HIGH = 65_536
CLOSE_LINGER_S = 5.0
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
        self._peers: dict[int, _Peer] = {}
        self._connections_made = 0
        self._server: asyncio.Server | None = None
        self._timer: Timer | None = None
        self._timer_ms = NEVER_MS
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._quorum_peers: Peers | None = None
        self._is_shut = False

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket and begin to tick."""
        self.loop = asyncio.get_running_loop()
        self._server = await self.loop.create_server(self._new_peer, sock=bound, backlog=BACKLOG)
        self._arm(self.clock.now_ms())
        self._sweep_idle()

    async def stop(self) -> None:
        """Stop listening and close every connection; what was answered is still written."""
        self._is_shut = True
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

    def _new_peer(self) -> _Peer:
        return _Peer(self) if self.tls is None else _TlsPeer(self, self.tls)

    def peers(self) -> list[_Peer]:
        """The connections whose sockets are open, oldest first."""
        return list(self._peers.values())

    def quorum_peers(self) -> Peers:
        """The connections to the other nodes of the quorum, made when they are first needed."""
        if self._quorum_peers is None:
            from mockraft.server.peers import Peers

            config = self.node.config
            client_id = f"raft-client-{config.node_id}"
            self._quorum_peers = Peers(client_id, self._answered, config.own_client_security)
        return self._quorum_peers

    def perform(self, effects: Iterable[Effect], now_ms: int) -> None:
        """Do what the node said at this time, in order, and look when it wants to be called next."""
        peers = self._peers
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
        self._arm(now_ms)

    def peer_made(self, peer: _Peer, address: str) -> int:
        """A connection was accepted; gives its id."""
        self._connections_made += 1
        connection_id = self._connections_made
        peer.connection_id = connection_id
        self._peers[connection_id] = peer
        now_ms = self.clock.now_ms()
        self.perform(self.node.connected(connection_id, address, now_ms), now_ms)
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
        when_ms = self.node.next_tick_ms(now_ms)
        if when_ms >= self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = when_ms
        self._timer = self.clock.call_at(self.loop, when_ms, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._timer_ms = NEVER_MS
        now_ms = self.clock.now_ms()
        self.perform(self.node.tick(now_ms), now_ms)


class _Peer(asyncio.Protocol):
    """One accepted connection."""

    __slots__ = (
        "_awaits_sent",
        "_held_back",
        "_listener",
        "_unread_before",
        "_watch",
        "_writing_paused",
        "active_at",
        "connection_id",
        "transport",
    )

    transport: asyncio.Transport

    def __init__(self, listener: TcpListener) -> None:
        self._listener = listener
        self.connection_id = 0
        self._held_back = False
        self._writing_paused = False
        self._awaits_sent = False
        self._unread_before = 0
        self._watch: asyncio.TimerHandle | None = None
        self.active_at = listener.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=UNREAD_BYTES_HIGH, low=0)
        # As Kafka's Selector does: a peer that vanished without a word is noticed some day.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        name = transport.get_extra_info("peername")
        self._listener.peer_made(self, f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "unknown")

    def data_received(self, data: bytes) -> None:
        listener = self._listener
        self.active_at = listener.loop.time()
        now_ms = listener.clock.now_ms()
        listener.perform(listener.node.step(self.connection_id, data, now_ms), now_ms)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._listener.peer_lost(
            self.connection_id, "the peer closed" if exc is None else f"the connection broke: {exc}"
        )

    @property
    def unread_bytes(self) -> int:
        """Bytes written that the socket has not taken yet."""
        return self.transport.get_write_buffer_size()

    def send(self, data: bytes) -> None:
        """Write; a peer with too much unread is closed."""
        self.active_at = self._listener.loop.time()
        self.transport.write(data)
        if self._writing_paused:
            unread, limit = self.unread_bytes, self._listener.node.config.write_bytes_max
            if unread > limit:
                self._give_up("write_bytes_max", f"the peer left {unread} bytes unread, write_bytes_max={limit}")

    def close(self) -> None:
        """Close once everything is written; a peer that does not take it is cut off."""
        self.transport.close()
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self._listener.loop.call_later(CLOSE_LINGER_S, self.transport.abort)

    def reset(self) -> None:
        """Break the connection off so that the peer gets a TCP reset."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
        self.transport.abort()

    def set_held_back(self, held_back: bool) -> None:
        """The node has enough of this connection for now, or wants more."""
        self._held_back = held_back
        self._read_or_not()

    def await_sent(self) -> None:
        """Tell the node when what was written is out."""
        self._awaits_sent = True
        if not self._writing_paused:
            self._listener.loop.call_soon(self._tell_sent)

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._read_or_not()
        self._unread_before = 1 << 62
        self._look_whether_stuck()

    def resume_writing(self) -> None:
        self._writing_paused = False
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._tell_sent()
        self._read_or_not()

    def _tell_sent(self) -> None:
        if self._awaits_sent and not self._writing_paused:
            self._awaits_sent = False
            listener = self._listener
            now_ms = listener.clock.now_ms()
            listener.perform(listener.node.sent(self.connection_id, now_ms), now_ms)

    def _read_or_not(self) -> None:
        if self.transport.is_closing():
            return
        if self._held_back or self._writing_paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _look_whether_stuck(self) -> None:
        unread = self.unread_bytes
        stuck_ms = self._listener.node.config.write_stuck_ms
        if unread >= self._unread_before:
            self._watch = None
            self._give_up("write_stuck_ms", f"the peer read nothing for {stuck_ms} ms, {unread} bytes wait for it")
            return
        self._unread_before = unread
        self._watch = self._listener.loop.call_later(stuck_ms / 1000, self._look_whether_stuck)

    def _give_up(self, kind: str, reason: str) -> None:
        self._listener.close_peer(self.connection_id, kind, reason)
        self.transport.abort()


class _TlsPeer(_Peer):
    """One accepted connection with TLS on it."""

    __slots__ = ("_secured", "_tls")

    def __init__(self, listener: TcpListener, context: ssl.SSLContext) -> None:
        super().__init__(listener)
        self._tls = TlsSession(context)
        self._secured = False

    def data_received(self, data: bytes) -> None:
        listener, tls = self._listener, self._tls
        self.active_at = listener.loop.time()
        try:
            received = tls.receive(data)
        except TlsError as failure:
            self._write_tls()
            listener.close_peer(self.connection_id, "tls", f"refused: TLS failed: {failure}")
            return
        self._write_tls()
        now_ms = listener.clock.now_ms()
        if tls.established and not self._secured:
            self._secured = True
            listener.perform(listener.node.secured(self.connection_id, tls.peer_certificate, now_ms), now_ms)
        if received:
            listener.perform(listener.node.step(self.connection_id, received, now_ms), now_ms)
        if tls.ended:
            self.close()

    def send(self, data: bytes) -> None:
        """Encrypt and write, unless the peer has said its end: TLS takes nothing after that."""
        if self.transport.is_closing():
            return
        self._tls.send(data)
        super().send(self._tls.outgoing())

    def close(self) -> None:
        """Say in TLS that this is the end, too."""
        self._tls.end()
        self._write_tls()
        super().close()

    def _write_tls(self) -> None:
        if (data := self._tls.outgoing()) and not self.transport.is_closing():
            self.transport.write(data)


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

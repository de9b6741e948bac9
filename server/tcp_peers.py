"""The accepted connections of a listener, with and without TLS.

Each is one small protocol object; what it receives goes to the node at once and what the node says is written at once.
A peer that does not read is not read from either, so its unread answers stay bounded, and it is closed when it stays
stuck.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, cast

from mockraft.server.tls import TlsError, TlsSession
from mockraft.server.toxic_links import ToxicLink, break_off

if TYPE_CHECKING:
    from mockraft.server.tcp import TcpListener

UNREAD_BYTES_HIGH = 65_536
CLOSE_LINGER_S = 5.0


class Peer(asyncio.Protocol):
    """One accepted connection."""

    __slots__ = (
        "_awaits_sent",
        "_held_back",
        "_listener",
        "_unread_before",
        "_watch",
        "active_at",
        "address",
        "connection_id",
        "transport",
        "writing_paused",
    )

    transport: asyncio.Transport

    def __init__(self, listener: TcpListener) -> None:
        self._listener = listener
        self.connection_id = 0
        self.address = "unknown"
        self._held_back = False
        self.writing_paused = False
        self._awaits_sent = False
        self._unread_before = 0
        self._watch: asyncio.TimerHandle | None = None
        self.active_at = listener.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=UNREAD_BYTES_HIGH, low=0)
        # As Kafka's Selector does: a peer that vanished without a word is noticed some day.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        name = transport.get_extra_info("peername")
        self.address = str(name[0]) if isinstance(name, tuple) else "unknown"
        self._listener.peer_made(self, f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "unknown")

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        listener = self._listener
        self.active_at = listener.loop.time()
        now_ms = listener.clock.now_ms()
        listener.perform(listener.node.step(self.connection_id, data, now_ms), now_ms)

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
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
        if self.writing_paused:
            unread, limit = self.unread_bytes, self._listener.node.config.write_bytes_max
            if unread > limit:
                self._give_up("write_bytes_max", f"the peer left {unread} bytes unread, write_bytes_max={limit}")

    def close(self) -> None:
        """Close once everything is written; a peer that does not take it is cut off."""
        self.transport.close()
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self._listener.loop.call_later(CLOSE_LINGER_S, self._cut_off)

    def _cut_off(self) -> None:
        transport = self.transport
        if isinstance(transport, ToxicLink) and transport.holds:
            self._watch = self._listener.loop.call_later(CLOSE_LINGER_S, self._cut_off)
        else:
            transport.abort()

    def reset(self) -> None:
        """Break the connection off so that the client gets a TCP RST."""
        break_off(self.transport)

    def set_held_back(self, held_back: bool) -> None:
        """The node has enough of this connection for now, or wants more."""
        self._held_back = held_back
        self._read_or_not()

    def await_sent(self) -> None:
        """Tell the node when what was written is out."""
        self._awaits_sent = True
        if not self.writing_paused:
            self._listener.loop.call_soon(self._tell_sent)

    def pause_writing(self) -> None:
        """The socket has enough."""
        self.writing_paused = True
        self._read_or_not()
        self._unread_before = 1 << 62
        self._look_whether_stuck()

    def resume_writing(self) -> None:
        """The socket takes more."""
        self.writing_paused = False
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._tell_sent()
        self._read_or_not()

    def _tell_sent(self) -> None:
        if self._awaits_sent and not self.writing_paused:
            self._awaits_sent = False
            listener = self._listener
            now_ms = listener.clock.now_ms()
            listener.perform(listener.node.sent(self.connection_id, now_ms), now_ms)

    @property
    def wants_more(self) -> bool:
        """Whether it is to be read from."""
        return not (self._held_back or self.writing_paused)

    def _read_or_not(self) -> None:
        if self.transport.is_closing():
            return
        if self.wants_more:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

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


class TlsPeer(Peer):
    """One accepted connection with TLS on it."""

    __slots__ = ("_secured", "_tls")

    def __init__(self, listener: TcpListener, context: ssl.SSLContext) -> None:
        super().__init__(listener)
        self._tls = TlsSession(context)
        self._secured = False

    def data_received(self, data: bytes) -> None:
        """Bytes in TLS came."""
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

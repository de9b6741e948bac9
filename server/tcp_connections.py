"""Accepted connections of a listener, with and without TLS.

Each is one small protocol object; received bytes go to the node at once and its responses are written at once. A
client that does not read is not read from either, so its unread responses stay bounded, and it is closed when it stays
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


class TcpConnection(asyncio.Protocol):
    """One accepted connection."""

    __slots__ = (
        "_awaits_sent",
        "_held_back",
        "_is_queued",
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
        self._awaits_sent = self._is_queued = False
        self._unread_before = 0
        self._watch: asyncio.TimerHandle | None = None
        self.active_at = listener.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=UNREAD_BYTES_HIGH, low=0)
        # As Kafka's Selector does: TCP keepalive detects a client that vanished.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        name = transport.get_extra_info("peername")
        self.address = str(name[0]) if isinstance(name, tuple) else "unknown"
        self._listener.connection_accepted(self, f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "unknown")

    def data_received(self, data: bytes) -> None:
        """Pass received bytes to the node."""
        listener = self._listener
        self.active_at = listener.loop.time()
        listener.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the closed socket."""
        if self._watch is not None:
            self._watch.cancel()
        self._listener.connection_ended(
            self.connection_id, "the peer closed" if exc is None else f"the connection broke: {exc}"
        )

    @property
    def unread_bytes(self) -> int:
        """Number of written bytes that the socket has not taken yet."""
        return self.transport.get_write_buffer_size()

    def send(self, data: bytes) -> None:
        """Write; close the connection if too many bytes are unread."""
        self.active_at = self._listener.loop.time()
        self.transport.write(data)
        if self.writing_paused:
            self.check_unread()

    def check_unread(self) -> None:
        """Close the connection if too many bytes are unread."""
        unread, limit = self.unread_bytes, self._listener.node.config.write_bytes_max
        if unread > limit:
            self._give_up("write_bytes_max", f"the peer left {unread} bytes unread, write_bytes_max={limit}")

    def close(self) -> None:
        """Close once everything is written; reset the connection if the client does not read."""
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
        """Abort the connection so that the client receives a TCP RST."""
        break_off(self.transport)

    def set_held_back(self, held_back: bool) -> None:
        """Pause or resume reading at the node's request."""
        self._held_back = held_back
        self._read_or_not()

    def await_sent(self) -> None:
        """Notify the node in this connection's turn, when all bytes so far are written."""
        self._awaits_sent = True
        self._queue_turn()

    def pause_writing(self) -> None:
        """Pause: the socket's buffer is full."""
        self.writing_paused = True
        self._read_or_not()
        self._unread_before = 1 << 62
        self._look_whether_stuck()

    def resume_writing(self) -> None:
        """Resume: the socket's buffer has drained."""
        self.writing_paused = False
        if self._watch is not None and not self.transport.is_closing():
            self._watch.cancel()
            self._watch = None
        self._queue_turn()
        self._read_or_not()

    def _queue_turn(self) -> None:
        if self._awaits_sent and not self.writing_paused and not self._is_queued:
            self._is_queued = True
            self._listener.queue_turn(self)

    def take_turn(self) -> None:
        """Notify the node, unless the socket's buffer is full again."""
        self._is_queued = False
        if self._awaits_sent and not self.writing_paused:
            self._awaits_sent = False
            listener = self._listener
            now_ms = listener.clock.now_ms()
            listener.perform(listener.node.sent(self.connection_id, now_ms), now_ms)

    @property
    def wants_more(self) -> bool:
        """True if nothing forbids to read from it."""
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
        self._listener.close_connection(self.connection_id, kind, reason)
        self.transport.abort()


class TlsConnection(TcpConnection):
    """One accepted connection with TLS."""

    __slots__ = ("_secured", "_tls")

    def __init__(self, listener: TcpListener, context: ssl.SSLContext) -> None:
        super().__init__(listener)
        self._tls = TlsSession(context)
        self._secured = False

    def data_received(self, data: bytes) -> None:
        """Decrypt received bytes and pass them to the node."""
        listener, tls = self._listener, self._tls
        self.active_at = listener.loop.time()
        try:
            received = tls.receive(data)
        except TlsError as failure:
            self._write_tls()
            listener.close_connection(self.connection_id, "tls", f"refused: TLS failed: {failure}")
            return
        self._write_tls()
        if tls.established and not self._secured:
            self._secured = True
            now_ms = listener.clock.now_ms()
            listener.perform(listener.node.secured(self.connection_id, tls.peer_certificate, now_ms), now_ms)
        if received:
            listener.received(self, received)
        if tls.ended:
            self.close()

    def send(self, data: bytes) -> None:
        """Encrypt and write, unless the client sent close_notify: TLS takes nothing after that."""
        if self.transport.is_closing():
            return
        self._tls.send(data)
        super().send(self._tls.outgoing())

    def close(self) -> None:
        """Send close_notify and close."""
        self._tls.end()
        self._write_tls()
        super().close()

    def _write_tls(self) -> None:
        if (data := self._tls.outgoing()) and not self.transport.is_closing():
            self.transport.write(data)

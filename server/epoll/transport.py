"""The transport of a socket: what asyncio's transport is to its protocol."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from itertools import islice
from select import EPOLLIN, EPOLLOUT, epoll
from typing import Any, ClassVar, cast

SENT_AT_ONCE = 64
"""Writes that one system call sends when a socket has become writable again."""


class EpollTransport(asyncio.Transport):
    """The transport of one accepted socket.

    `events` are those that epoll looks for, `unsent_bytes` how many written bytes the socket has not taken; `ended` is
    called with the file descriptor once it is closed.
    """

    __slots__ = (
        "_ended",
        "_epoll",
        "_fd",
        "_high",
        "_is_closing",
        "_is_ended",
        "_is_full",
        "_loop",
        "_low",
        "_reads",
        "_unsent",
        "events",
        "protocol",
        "socket",
        "unsent_bytes",
    )

    READ_BYTES: ClassVar = 65_536

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        poll: epoll,
        sock: socket.socket,
        address: Any,
        protocol: asyncio.Protocol,
        ended: Callable[[int], None],
    ) -> None:
        super().__init__({"socket": sock, "peername": address})
        self.protocol = protocol
        self._loop = loop
        self._epoll = poll
        self._ended = ended
        self.socket = sock
        self._fd = sock.fileno()
        self.set_write_buffer_limits()
        self._unsent: deque[bytes | memoryview] = deque()
        self.unsent_bytes = 0
        self.events = 0
        self._reads = True
        self._is_closing = self._is_ended = self._is_full = False

    def watch(self) -> None:
        """Have epoll look for what the transport waits for; nothing, not even a reset, if it waits for nothing."""
        events = EPOLLIN if self._reads and not self._is_closing else 0
        if self._unsent:
            events |= EPOLLOUT
        before, self.events = self.events, events
        if events != before:
            if not before:
                self._epoll.register(self._fd, events)
            elif events:
                self._epoll.modify(self._fd, events)
            else:
                self._epoll.unregister(self._fd)

    def go_last(self) -> None:
        """Move this socket behind those that are ready now.

        epoll keeps a socket that it has reported where it was in the queue, before those that became ready later.
        """
        if self.events:
            self._epoll.unregister(self._fd)
            self._epoll.register(self._fd, self.events)

    def ready(self, events: int) -> None:
        """Write and read what can be; an error or a hang-up is met by whichever of both it waits for."""
        if events != EPOLLIN and self._unsent:
            self._write_unsent()
        if events != EPOLLOUT and self.events & EPOLLIN:
            try:
                data = self.socket.recv(self.READ_BYTES)
            except OSError as error:
                self.receive_failed(error)
                return
            if data:
                self.protocol.data_received(data)
            else:
                self.received_end()

    def receive_more(self) -> bytes:
        """Return further bytes that have arrived; an end or an error is reported with the next ones."""
        try:
            return self.socket.recv(self.READ_BYTES)
        except OSError:
            return b""

    def receive_failed(self, error: OSError) -> None:
        """Close at once, unless there was just nothing to receive."""
        if not isinstance(error, BlockingIOError | InterruptedError):
            self.broke(error)

    def received_end(self) -> None:
        """Report the peer's end; close, unless the protocol wants to send more."""
        self._reads = False
        if self.protocol.eof_received():
            self.watch()
        else:
            self.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes, or keep them until the socket takes them."""
        if self._is_closing:
            return
        sent = 0
        if not self._unsent:
            try:
                sent = self.socket.send(data)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self.broke(error)
                return
            if sent == len(data):
                return
        self._unsent.append(memoryview(bytes(data))[sent:])
        self.unsent_bytes += len(data) - sent
        self.watch()
        if self.unsent_bytes > self._high and not self._is_full:
            self._is_full = True
            self.protocol.pause_writing()

    def _write_unsent(self) -> None:
        unsent = self._unsent
        try:
            sent = self.socket.sendmsg([*islice(unsent, SENT_AT_ONCE)])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.broke(error)
            return
        self.unsent_bytes -= sent
        while unsent and len(unsent[0]) <= sent:
            sent -= len(unsent.popleft())
        if sent:
            unsent[0] = unsent[0][sent:]
        if self._is_full and self.unsent_bytes <= self._low:
            self._is_full = False
            self.protocol.resume_writing()
        if not unsent:
            self.watch()
            if self._is_closing:
                self._end(None)

    def close(self) -> None:
        """Close once everything is written."""
        if not self._is_closing:
            self._is_closing = True
            self.watch()
            if not self._unsent:
                self._end(None)

    def abort(self) -> None:
        """Close at once; unsent bytes are lost."""
        self.broke(None)

    def broke(self, error: OSError | None) -> None:
        """Close at once, for an error of the socket."""
        self._is_closing = True
        self._unsent.clear()
        self.unsent_bytes = 0
        self.watch()
        self._end(error)

    def crash(self, error: Exception) -> None:
        """Close at once, because the protocol raised."""
        what = {"message": "a protocol's callback failed", "exception": error, "transport": self}
        self._loop.call_exception_handler(what)
        self.abort()

    def _end(self, error: OSError | None) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._loop.call_soon(self._report_end, error)

    def _report_end(self, error: OSError | None) -> None:
        try:
            self.protocol.connection_lost(error)
        finally:
            self.socket.close()
            self._ended(self._fd)

    def is_closing(self) -> bool:
        """Return True if it is closed, or will be when everything is written."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Receive nothing for now."""
        self._reads = False
        self.watch()

    def resume_reading(self) -> None:
        """Receive again."""
        self._reads = True
        self.watch()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set how many unsent bytes pause the protocol, and how few resume it."""
        self._high = self.READ_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        """Return the number of unsent bytes."""
        return self.unsent_bytes

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Give what is received to another protocol from now on."""
        self.protocol = cast(asyncio.Protocol, protocol)

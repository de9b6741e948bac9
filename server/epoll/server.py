"""The server: accepts connections on a bound socket, and serves those that are ready."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from select import epoll
from typing import Any, cast

from mockraft.server.epoll.transport import EpollTransport
from mockraft.server.listening import BACKLOG

ACCEPTED_AT_ONCE = 256
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
EXHAUSTED_PAUSE_S = 1.0


class EpollServer:
    """Accepts connections on a bound socket, and serves those that are ready; use `start` and `close`.

    `transports` has the open ones by file descriptor.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bound: socket.socket, accept: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        self.loop = loop
        self.epoll = epoll()
        self.transports: list[EpollTransport | None] = []
        self._bound = bound
        self._accept = accept
        self._open = 0
        self._is_closed = False

    def start(self, serve: Callable[[], None]) -> None:
        """Listen; `serve` is called when a socket is ready."""
        self._bound.setblocking(False)
        self._bound.listen(BACKLOG)
        self.loop.add_reader(self._bound.fileno(), self._accept_ready)
        self.loop.add_reader(self.epoll.fileno(), serve)

    def close(self) -> None:
        """Stop listening; connections stay open."""
        if not self._is_closed:
            self._is_closed = True
            self.loop.remove_reader(self._bound.fileno())
            self._bound.close()
            self._end_if_empty()

    def _ended(self, fd: int) -> None:
        """Forget a transport."""
        self.transports[fd] = None
        self._open -= 1
        self._end_if_empty()

    def _end_if_empty(self) -> None:
        if self._is_closed and not self._open:
            self.loop.remove_reader(self.epoll.fileno())
            self.epoll.close()

    def _accept_ready(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            if self._is_closed:
                return
            try:
                sock, address = self._bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                self.loop.call_exception_handler({"message": "a connection waits to be accepted", "exception": error})
                self.loop.remove_reader(self._bound.fileno())
                self.loop.call_later(EXHAUSTED_PAUSE_S, self._accept_again)
                return
            self._connect(sock, address)

    def _accept_again(self) -> None:
        if not self._is_closed:
            self.loop.add_reader(self._bound.fileno(), self._accept_ready)

    def _connect(self, sock: socket.socket, address: Any) -> None:
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            protocol = cast(asyncio.Protocol, self._accept())
        except BaseException:
            sock.close()
            raise
        fd = sock.fileno()
        self.transports += [None] * (fd + 1 - len(self.transports))
        self.transports[fd] = transport = EpollTransport(self.loop, self.epoll, sock, address, protocol, self._ended)
        self._open += 1
        try:
            protocol.connection_made(transport)
            transport.watch()
        except Exception as error:
            transport.crash(error)

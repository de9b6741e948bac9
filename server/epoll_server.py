"""All connections of a listener behind one epoll file descriptor, which the event loop watches as a single reader.

An event loop calls back for each event of each socket, and its transports queue each write; with short requests that
costs as much as answering them. Here one callback receives from every socket that is ready. `EpollTransport` is to its
protocol what asyncio's transport is, so that protocols, TLS and toxics notice nothing. The callback is a
`PureReceiver`, or with mockraft-speed a `Receiver` in C. The event loop's other work waits no longer than with
asyncio's transports: a callback serves what is ready, and looks for more only while less than `TURN_US` has passed.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable
from itertools import islice
from select import EPOLLIN, EPOLLOUT, epoll
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, cast

from mockraft.server.listening import BACKLOG
from mockraft.server.repeats import LONG_RESPONSE_BYTES, SENT_TOGETHER, Compared, Found
from mockraft.server.tcp_connections import TcpConnection

if TYPE_CHECKING:
    from mockraft.server.tcp import TcpListener

ACCEPTED_AT_ONCE = 256
SENT_AT_ONCE = 64
"""Writes that one system call sends when a socket has become writable again."""
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
EXHAUSTED_PAUSE_S = 1.0


class EpollServer:
    """Accepts connections on a bound socket, and serves those that are ready; use `start` and `close`.

    `transports` has the open ones by file descriptor.
    """

    TURN_US: ClassVar = 1_000
    """Time after which a callback does not look for more sockets that are ready."""
    READ_BYTES: ClassVar = 65_536

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

    def ended(self, fd: int) -> None:
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
        self.transports[fd] = transport = EpollTransport(self, sock, address, protocol)
        self._open += 1
        try:
            protocol.connection_made(transport)
            transport.watch()
        except Exception as error:
            transport.crash(error)


class EpollTransport(asyncio.Transport):
    """The transport of one accepted socket.

    `events` are those that epoll looks for, `unsent_bytes` how many written bytes the socket has not taken.
    """

    __slots__ = (
        "_fd",
        "_high",
        "_is_closing",
        "_is_ended",
        "_is_full",
        "_low",
        "_reads",
        "_server",
        "_unsent",
        "events",
        "protocol",
        "socket",
        "unsent_bytes",
    )

    def __init__(self, server: EpollServer, sock: socket.socket, address: Any, protocol: asyncio.Protocol) -> None:
        super().__init__({"socket": sock, "peername": address})
        self.protocol = protocol
        self._server = server
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
                self._server.epoll.register(self._fd, events)
            elif events:
                self._server.epoll.modify(self._fd, events)
            else:
                self._server.epoll.unregister(self._fd)

    def go_last(self) -> None:
        """Move this socket behind those that are ready now.

        epoll keeps a socket that it has reported where it was in the queue, before those that became ready later.
        """
        if self.events:
            self._server.epoll.unregister(self._fd)
            self._server.epoll.register(self._fd, self.events)

    def ready(self, events: int) -> None:
        """Write and read what can be; an error or a hang-up is met by whichever of both it waits for."""
        if events != EPOLLIN and self._unsent:
            self._write_unsent()
        if events != EPOLLOUT and self.events & EPOLLIN:
            try:
                data = self.socket.recv(EpollServer.READ_BYTES)
            except OSError as error:
                self.receive_failed(error)
                return
            if data:
                self.protocol.data_received(data)
            else:
                self.received_end()

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
        self._server.loop.call_exception_handler(what)
        self.abort()

    def _end(self, error: OSError | None) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._server.loop.call_soon(self._report_end, error)

    def _report_end(self, error: OSError | None) -> None:
        try:
            self.protocol.connection_lost(error)
        finally:
            self.socket.close()
            self._server.ended(self._fd)

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
        self._high = EpollServer.READ_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        """Return the number of unsent bytes."""
        return self.unsent_bytes

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Give what is received to another protocol from now on."""
        self.protocol = cast(asyncio.Protocol, protocol)


class PureReceiver:
    """The callback of an `EpollServer` for sockets that are ready: `Receiver` of mockraft-speed in Python.

    A request that repeats needs one call, and one together with others: calls from layer to layer would take longer.
    """

    def __init__(self, server: EpollServer, listener: TcpListener) -> None:
        self._server = server
        self._listener = listener

    def __call__(self) -> None:
        """Serve every socket that is ready."""
        listener, transports, poll = self._listener, self._server.transports, self._server.epoll.poll
        now_us, active_at, until = listener.clock.now_us, listener.loop.time(), monotonic() + EpollServer.TURN_US / 1e6
        read_bytes, repeats = EpollServer.READ_BYTES, listener.node.repeats
        compared: Compared | None = None
        found, senders, received_us, now_ms = list[Found](), list[EpollTransport](), 0, 0
        while ready := poll(0, len(transports) + 1):
            for fd, events in ready:
                if (transport := transports[fd]) is None:
                    continue
                client = transport.protocol
                try:
                    if type(client) is not TcpConnection or not events == EPOLLIN == transport.events:
                        compared = None
                        self._respond(senders, found, received_us)
                        transport.ready(events)
                        continue
                    try:
                        data = transport.socket.recv(read_bytes)
                    except OSError as error:
                        transport.receive_failed(error)
                        continue
                    if not data:
                        transport.received_end()
                        continue
                    client.active_at = active_at
                    if not found:
                        received_us = now_us()
                        now_ms = received_us // 1_000
                    if compared is None and listener.has_short_way:
                        repeats = listener.node.repeats
                        compared = repeats.begin()
                    request = None if compared is None else repeats.find(client.connection_id, data, now_ms, compared)
                    if request is None:
                        compared = None
                        self._respond(senders, found, received_us)  # they need not wait for a long request
                        listener.step_in_turn(client, data, now_us())
                        continue
                    found.append(request)
                    senders.append(transport)
                    if len(found) == SENT_TOGETHER or len(request[1].response_tail) >= LONG_RESPONSE_BYTES:
                        self._respond(senders, found, received_us)
                except Exception as error:
                    transport.crash(error)
            self._respond(senders, found, received_us)
            listener.end_turn()
            if monotonic() >= until:
                break

    def _respond(self, senders: list[EpollTransport], found: list[Found], received_us: int) -> None:
        """Send the responses to repeated requests, and forget these."""
        if not found:
            return
        try:
            responses = self._listener.node.repeats.respond(found, received_us)
        except Exception as error:
            for transport in senders:
                transport.crash(error)
            responses = []
        for transport, response in zip(senders, responses, strict=False):
            try:
                try:
                    sent = transport.socket.send(response)
                except OSError:
                    sent = 0
                if sent != len(response):
                    cast(TcpConnection, transport.protocol).send(response[sent:])
            except Exception as error:
                transport.crash(error)
        found.clear()
        senders.clear()

"""The connections between a controller with a virtual clock and its simulated brokers: in memory, without delay.

Nothing waits for the event loop, so that time that a test advances at once passes for all of them in order. Both ends
are the classes that otherwise have sockets: the controller's and the brokers' listeners get a transport of this module.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Callable
from typing import Any

from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.effects import Closed, Event, Failed, Link, NotOpened, Opened, SendRequest
from mockraft.brokers.framed_link import FramedLink
from mockraft.wire.errors import DisconnectedError, UnsupportedVersionError

Accept = Callable[[], asyncio.Protocol]
ADDRESS = "127.0.0.1"


class MemoryNetwork:
    """The listeners by (host, port); `accept` makes the protocol of an accepted connection."""

    def __init__(self) -> None:
        self.listeners: dict[tuple[str, int], Accept] = {}
        self.connections_made = 0

    def listen(self, broker: SimulatedBroker) -> None:
        """Let others connect to a broker that has bound its ports."""
        if broker.listener is not None:
            for listener in broker.listener.listeners:
                accept = functools.partial(broker.listener.accept, listener.name)
                self.listeners[listener.host, listener.port] = accept

    def links(self, feed: Callable[[Event], None]) -> MemoryLinks:
        """Return the outgoing connections of one broker."""
        return MemoryLinks(self, feed)


class MemoryLinks:
    """The outgoing connections of one broker; see `mockraft.brokers.shell.shell.Links`."""

    def __init__(self, network: MemoryNetwork, feed: Callable[[Event], None]) -> None:
        self._network = network
        self._feed = feed
        self._transports: dict[Link, MemoryTransport] = {}

    def connect(self, link: Link) -> None:
        """Open a connection; Opened or NotOpened follows."""
        accept = self._network.listeners.get((link.host, link.port))
        if accept is None:
            self._feed(NotOpened(link, DisconnectedError(f"nothing listens on {link.host}:{link.port}")))
            return
        self._network.connections_made += 1
        framed = FramedLink(link)
        transport = MemoryTransport(accept(), self._network.connections_made, self._receive, self._lost, framed)
        self._transports[link] = transport
        transport.begin()
        if link.handshake:
            transport.deliver(framed.open())
        else:
            self._feed(Opened(link, {}))

    def send(self, effect: SendRequest) -> None:
        """Send a request over an open connection; Answered or Failed follows."""
        transport = self._transports.get(effect.link)
        try:
            if transport is None:
                raise DisconnectedError("the connection is closed")
            transport.deliver(transport.framed.write(effect))
        except (DisconnectedError, UnsupportedVersionError) as error:
            self._feed(Failed(effect.request_id, error))

    def disconnect(self, link: Link) -> None:
        """Close a connection; nothing follows."""
        transport = self._transports.pop(link, None)
        if transport is not None:
            transport.end()

    def break_off(self, link: Link) -> None:
        """Cut a connection; Failed and Closed follow."""
        transport = self._transports.get(link)
        if transport is not None:
            self._lost(transport.framed)
            transport.end()

    async def close(self) -> None:
        """Close every connection."""
        for link in list(self._transports):
            self.disconnect(link)

    def _receive(self, framed: FramedLink, data: bytes) -> None:
        for event in framed.receive(data):
            self._feed(event)
        transport = self._transports.get(framed.link)
        if transport is not None and (more := framed.data_to_send()):
            transport.deliver(more)

    def _lost(self, framed: FramedLink) -> None:
        transport = self._transports.get(framed.link)
        if transport is not None and transport.framed is framed:
            del self._transports[framed.link]
            for event in (*framed.lost(), Closed(framed.link)):
                self._feed(event)


class MemoryTransport(asyncio.Transport):
    """The accepting side's transport; what it writes is received by the broker at once."""

    def __init__(
        self,
        protocol: asyncio.Protocol,
        number: int,
        receive: Callable[[FramedLink, bytes], None],
        lost: Callable[[FramedLink], None],
        framed: FramedLink,
    ) -> None:
        super().__init__()
        self.framed = framed
        self._protocol = protocol
        self._number = number
        self._receive = receive
        self._lost = lost
        self._is_paused = False
        self._is_closing = False
        self._held: deque[bytes] = deque()

    def begin(self) -> None:
        """Report the connection to the accepting side."""
        self._protocol.connection_made(self)

    def deliver(self, data: bytes) -> None:
        """Give bytes of the broker to the accepting side, once it reads."""
        self._held.append(data)
        self._drain()

    def _drain(self) -> None:
        while self._held and not self._is_paused and not self._is_closing:
            self._protocol.data_received(self._held.popleft())

    def end(self) -> None:
        """Close the connection from the broker's side."""
        if not self._is_closing:
            self._is_closing = True
            self._protocol.connection_lost(None)

    # asyncio's interface, for the accepting side.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the peer's name, or something that takes the options of a socket."""
        return {"peername": (ADDRESS, self._number), "socket": _NoSocket()}.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Let another protocol receive, as a fault of the connection does."""
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol that receives."""
        return self._protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Give bytes to the broker."""
        if not self._is_closing:
            self._receive(self.framed, bytes(data))

    def close(self) -> None:
        """Close the connection from the accepting side."""
        if not self._is_closing:
            self._is_closing = True
            self._lost(self.framed)
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        """Return True once it is closed."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Hold back what the broker sends."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Deliver what was held back."""
        self._is_paused = False
        self._drain()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered."""

    def get_write_buffer_size(self) -> int:
        """Return 0: nothing is buffered."""
        return 0


class _NoSocket:
    def setsockopt(self, *_: int) -> None:
        """Nothing to set."""

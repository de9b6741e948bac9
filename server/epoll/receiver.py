"""The callback for sockets that are ready."""

from __future__ import annotations

from select import EPOLLIN
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, cast

from mockraft.server.epoll.transport import EpollTransport
from mockraft.server.repeats import LONG_RESPONSE_BYTES, SENT_TOGETHER, Compared, Found
from mockraft.server.tcp_connections import TcpConnection

if TYPE_CHECKING:
    from mockraft.server.epoll.server import EpollServer
    from mockraft.server.tcp import TcpListener

SHORT_BYTES = 450
"""Bytes that are received at first: larger objects are not in the interpreter's own memory, and take longer to make."""


class PureReceiver:
    """The callback of an `EpollServer` for sockets that are ready: `Receiver` of mockraft-speed in Python.

    A request that repeats needs one call, and one together with others: calls from layer to layer would take longer.
    """

    TURN_US: ClassVar = 1_000
    """Time after which it does not look for more sockets that are ready."""

    def __init__(self, server: EpollServer, listener: TcpListener) -> None:
        self._server = server
        self._listener = listener

    def __call__(self) -> None:
        """Serve every socket that is ready."""
        listener, transports, poll = self._listener, self._server.transports, self._server.epoll.poll
        now_us, active_at, until = listener.clock.now_us, listener.loop.time(), monotonic() + self.TURN_US / 1e6
        repeats = listener.node.repeats
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
                        data = transport.socket.recv(SHORT_BYTES)
                        if len(data) == SHORT_BYTES:
                            data += transport.receive_more()
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

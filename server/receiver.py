"""Serve the connections of an `EpollServer`: `Receiver` of mockraft-speed in Python."""

from __future__ import annotations

from select import EPOLLIN
from time import monotonic
from typing import TYPE_CHECKING

from mockraft.server.epoll_server import EpollServer
from mockraft.server.tcp_connections import TcpConnection

if TYPE_CHECKING:
    from mockraft.server.repeats import Compared
    from mockraft.server.tcp import TcpListener


class PureReceiver:
    """A callback for sockets that are ready.

    What a request that repeats needs is in one function: calls from layer to layer, as for all other bytes, would be a
    third of its time.
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
        while found := poll(0, len(transports) + 1):
            for fd, events in found:
                if (transport := transports[fd]) is None:
                    continue
                connection = transport.protocol
                try:
                    if type(connection) is not TcpConnection or not events == EPOLLIN == transport.events:
                        compared = None
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
                    connection.active_at, received_us = active_at, now_us()
                    if compared is None and listener.has_short_way:
                        repeats = listener.node.repeats
                        compared = repeats.begin()
                    response = None
                    if compared is not None:
                        response = repeats.answer_in_turn(connection.connection_id, data, received_us, compared)
                    if response is None:
                        compared = None
                        listener.step(connection, data, received_us)
                        continue
                    try:
                        sent = transport.socket.send(response)
                    except OSError:
                        sent = 0
                    if sent != len(response):
                        connection.send(response[sent:])
                except Exception as error:
                    transport.crash(error)
            if monotonic() >= until:
                break

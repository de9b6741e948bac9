"""A small blocking connection to a controller, for the tools, the tests and the benchmarks."""

from __future__ import annotations

import itertools
import socket
from typing import TYPE_CHECKING, TypeVar

from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

R = TypeVar("R")
_READ_BYTES = 1 << 20


class BlockingConnection:
    """One connection, on which requests may be sent ahead of their responses."""

    def __init__(self, address: tuple[str, int], client_id: str, timeout_s: float | None = None) -> None:
        self.socket = socket.create_connection(address, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self._correlation_ids = itertools.count(1)
        self._frames = FrameReader()
        self._waiting: list[bytes] = []

    def encode(self, message: Message, version: int) -> bytes:
        """Return the request's frame with the next correlation id."""
        return write_request(message, version, next(self._correlation_ids), self.client_id)

    def exchange(self, message: RequestMessage[R], version: int) -> R:
        """Send a request and return its response. Raises ConnectionError or TimeoutError if none comes."""
        assert isinstance(message, Message)
        self.socket.sendall(self.encode(message, version))
        response: R = read_response(self.receive_frame(), message.api_key, version)
        return response

    def receive_frame(self) -> bytes:
        """Return the next response frame without its length. Raises ConnectionError or TimeoutError if none comes."""
        while not self._waiting:
            data = self.socket.recv(_READ_BYTES)
            if not data:
                raise ConnectionError("the other side closed the connection")
            self._waiting += self._frames.receive_data(data)
        return self._waiting.pop(0)

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

"""A blocking client of a controller in another process, without retries."""

import socket
from typing import Any

from mockraft.wire.connection import FrameReader, read_response, write_request

DEADLINE_S = 60


class LiveClient:
    """A connection to the controller; another one after the controller closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = self._connect()

    def send(self, message: Any, version: int, *, waits: bool = True) -> Any:
        """Return the response, None if the connection was closed, or if it is not waited for."""
        frames: list[bytes] = []
        reader = FrameReader()
        self._socket.sendall(write_request(message, version, 1, "live"))
        while waits and not frames:
            data = self._socket.recv(1 << 16)
            frames = reader.receive_data(data)
            if not data:
                break
        if frames:
            return read_response(frames[0], message.api_key, version)
        self.close()
        self._socket = self._connect()
        return None

    def close(self) -> None:
        self._socket.close()

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=DEADLINE_S)

"""A blocking client of a controller in another process, without retries."""

from contextlib import suppress
from typing import Any

from tools.blocking_connection import BlockingConnection

DEADLINE_S = 60


class LiveClient:
    """A connection to the controller; another one after the controller closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = self._connect()

    def send(self, message: Any, version: int, *, waits: bool = True) -> Any:
        """Return the response, None if the connection was closed, or if it is not waited for."""
        with suppress(ConnectionError):
            if waits:
                return self._connection.exchange(message, version)
            self._connection.socket.sendall(self._connection.encode(message, version))
        self.close()
        self._connection = self._connect()
        return None

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> BlockingConnection:
        return BlockingConnection(("127.0.0.1", self._port), "live", DEADLINE_S)

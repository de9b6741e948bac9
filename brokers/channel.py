"""A broker's connection to the active controller: reconnects after every failure, one request at a time.

Mirrors Kafka's `NodeToControllerChannelManager` and its request thread: a request waits until a controller is known, is
sent again after a disconnect or NOT_CONTROLLER, and is given up after `retry_timeout_ms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mockraft.brokers.metadata.observer import Endpoint
from mockraft.brokers.outage import Outage
from mockraft.wire import client, error_codes, messages
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.errors import WireError

RECONNECT_BACKOFF_MS = 50
POLL_MS = 100

Request = TypeVar("Request")


class NotSentError(Exception):
    """The retry timeout expired: no controller was known, or none answered."""


class ControllerChannel:
    """One channel of one broker (Kafka has "heartbeat", "directory-assignments", "forwarding", …).

    `find_controller` returns the active controller's endpoint, None while there is none; `client_id` is the broker id
    as text, as on a real broker. Channels that share an `outage` take turns connecting to an unreachable controller.
    """

    def __init__(
        self,
        client_id: str,
        find_controller: Callable[[], Endpoint | None],
        retry_timeout_ms: int,
        security: ClientSecurity | None = None,
        messages: Any = messages,
        outage: Outage | None = None,
    ) -> None:
        self.client_id = client_id
        self.retry_timeout_ms = retry_timeout_ms
        self._find_controller = find_controller
        self._security = security
        self._messages = messages
        self._outage = outage
        self._connection: client.KafkaConnection | None = None
        self._moved = asyncio.Event()

    @property
    def api_versions(self) -> dict[int, tuple[int, int]] | None:
        """The API versions of the controller, (min, max) by API key; None without a connection."""
        connection = self._connection
        return connection.api_versions if connection is not None and connection.is_open else None

    def controller_moved(self) -> None:
        """Wake a request that waits for a controller."""
        self._moved.set()

    async def send(self, make: Callable[[client.KafkaConnection], Any]) -> Any:
        """Send the request that `make` builds for the connection (it may depend on versions) and return the response.

        Raises NotSentError, UnsupportedVersionError and WireError; NOT_CONTROLLER and disconnects are retried here.
        """
        try:
            async with asyncio.timeout(self.retry_timeout_ms / 1000):
                while True:
                    response = await self._try(make)
                    if response is not None and response.error_code != error_codes.NOT_CONTROLLER:
                        return response
                    await self.close()
                    await asyncio.sleep(RECONNECT_BACKOFF_MS / 1000)
        except TimeoutError:
            await self.close()
            raise NotSentError(f"no response from a controller within {self.retry_timeout_ms} ms") from None

    def send_soon(self, request: Any, answered: Callable[[Any], None]) -> bool:
        """Send over the existing connection without a task; return False when there is none, or it is a TLS or SASL
        one.

        `answered` gets the response, or an error after which :meth:`send` should be tried while time is left:
        RequestTimedOutError means that no time is left.
        """
        connection = self._connection
        return connection is not None and connection.send_soon(request, answered, self.retry_timeout_ms)

    def break_off(self) -> None:
        """Cut the connection, as a network failure does."""
        if self._connection is not None:
            self._connection.break_off()

    async def close(self) -> None:
        """Drop the connection; the next send opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _try(self, make: Callable[[client.KafkaConnection], Any]) -> Any | None:
        try:
            connection = await self._connected()
            return await connection.send(make(connection))
        except client.DisconnectedError:
            return None
        except WireError:
            await self.close()
            raise

    async def _connected(self) -> client.KafkaConnection:
        if self._connection is None or not self._connection.is_open:
            host, port = await self._controller()

            def connect() -> Awaitable[client.KafkaConnection]:
                return client.connect(
                    host,
                    port,
                    client_id=self.client_id,
                    request_timeout_ms=self.retry_timeout_ms,
                    security=self._security,
                    messages=self._messages,
                )

            self._connection = await (connect() if self._outage is None else self._outage.connect(connect))
        return self._connection

    async def _controller(self) -> Endpoint:
        while (endpoint := self._find_controller()) is None:
            self._moved.clear()
            try:
                async with asyncio.timeout(POLL_MS / 1000):
                    await self._moved.wait()
            except TimeoutError:
                continue
        return endpoint

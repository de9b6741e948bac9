"""Coordination of reconnects: while a controller is unreachable one of a process's brokers tries, the others wait.

Kafka's brokers each retry every 50 ms. Thousands of them in one process would use all of its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mockraft.wire.client import DisconnectedError

RETRY_BACKOFF_MS = 50

Connection = TypeVar("Connection")


class Outage:
    """Shared by brokers that connect to the same controllers."""

    def __init__(self) -> None:
        self._is_on = False
        self._trying = asyncio.Lock()

    async def connect(self, connect: Callable[[], Awaitable[Connection]]) -> Connection:
        """Call `connect`, at once normally, one caller at a time while it fails. Raises what `connect` raises."""
        while self._is_on:
            async with self._trying:
                if not self._is_on:
                    break
                try:
                    connection = await connect()
                except DisconnectedError:
                    await asyncio.sleep(RETRY_BACKOFF_MS / 1000)
                    raise
                self._is_on = False
                return connection
        try:
            return await connect()
        except DisconnectedError as error:
            # A slow controller is reachable: late responses and lost connections are no reason to queue.
            self._is_on = isinstance(error.__cause__, ConnectionRefusedError)
            raise

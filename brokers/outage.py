"""While a controller is gone, one of a process's brokers tries to reach it and the others wait for what it finds.

Kafka's brokers each try every 50 ms. Thousands in one process that did would leave it no time for anything else.
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
        """Call `connect`, at once while all is well and in turn while it fails. Raises what that raises."""
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
            # One that is only slow is there: late answers and lost connections are no reason to queue up.
            self._is_on = isinstance(error.__cause__, ConnectionRefusedError)
            raise

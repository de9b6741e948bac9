"""Connections of a node to the other nodes of its quorum (Kafka's KafkaNetworkChannel).

One connection per node and purpose, opened on demand and kept; each begins with ApiVersions, as any client's does. A
new request to a node replaces the previous one if that is still unanswered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from mockraft.kafka_api.refusals import SHOWN_MAX
from mockraft.server.raft.outgoing import Outgoing
from mockraft.wire import client, error_codes, messages
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.message import Message
from mockraft.wire.printable import printable_line

_LOGGER = logging.getLogger("mockraft.quorum")

Address = tuple[str, int]
Answered = Callable[[int, Message | None], None]


class QuorumConnections:
    """Sends requests and calls `answered(outgoing_id, response)`, with None if no response came in time.

    `client_id` is sent in request headers, `security` secures the connections. Use it from a running event loop.
    """

    def __init__(self, client_id: str, answered: Answered, security: ClientSecurity | None = None) -> None:
        self._client_id = client_id
        self._security = security
        self._answered = answered
        self._links: dict[tuple[Address, bool], _Link] = {}
        self._cut: frozenset[Address] = frozenset()
        self._is_closed = False

    def send(self, outgoing: Outgoing) -> None:
        """Send a request; no effect after `close`."""
        if self._is_closed:
            return
        address = (outgoing.host, outgoing.port)
        # A registration is answered once it is committed, which takes fetches: it must not delay them.
        key = (address, outgoing.id < 0)
        link = self._links.get(key)
        if link is None:
            link = self._links[key] = _Link(self._client_id, self._answered, self._security)
        link.send(outgoing, is_cut=address in self._cut)

    def cut(self, addresses: frozenset[Address]) -> None:
        """Block exactly these nodes: requests to them are dropped, including those in flight."""
        changed, self._cut = self._cut ^ addresses, addresses
        for (address, _), link in self._links.items():
            if address in changed:
                link.drop()

    def reset(self) -> None:
        """Close every connection; a request in flight is forgotten, as its node is."""
        for link in self._links.values():
            link.reset()

    async def until_quiet(self, timeout_s: float) -> None:
        """Return when no request is in flight, or after the timeout."""
        in_flight = [link.in_flight for link in self._links.values() if link.in_flight is not None]
        if in_flight:
            await asyncio.wait(in_flight, timeout=timeout_s)

    async def close(self) -> None:
        """Close every connection; no further callbacks are made."""
        self._is_closed = True
        links, self._links = self._links, {}
        for link in links.values():
            await link.close()


class _Link:
    """One connection and its request in flight."""

    def __init__(self, client_id: str, answered: Answered, security: ClientSecurity | None) -> None:
        self._client_id = client_id
        self._security = security
        self._answered = answered
        self._connection: client.KafkaConnection | None = None
        self.in_flight: asyncio.Task[None] | None = None
        self._outgoing_id = 0
        self._last_failure = ""
        self._closing: set[asyncio.Task[None]] = set()

    def send(self, outgoing: Outgoing, *, is_cut: bool) -> None:
        self._forget()
        self._outgoing_id = outgoing.id
        self.in_flight = asyncio.get_running_loop().create_task(self._exchange(outgoing, is_cut))

    def drop(self) -> None:
        """Close the connection; a request in flight gets no response."""
        if self._forget():
            asyncio.get_running_loop().call_soon(self._answered, self._outgoing_id, None)
        self._disconnect()

    def reset(self) -> None:
        self._forget()
        self._disconnect()

    async def close(self) -> None:
        self.reset()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _forget(self) -> bool:
        """Cancel the request in flight; return True if there was one."""
        task, self.in_flight = self.in_flight, None
        if task is None:
            return False
        task.cancel()
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        # Its response may still arrive, and would be taken for that of the next request.
        self._disconnect()
        return True

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            task = asyncio.get_running_loop().create_task(connection.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _exchange(self, outgoing: Outgoing, is_cut: bool) -> None:
        response = None
        try:
            async with asyncio.timeout(outgoing.timeout_ms / 1000):
                if is_cut:
                    await asyncio.get_running_loop().create_future()
                response = await self._send(outgoing)
        except client.UnsupportedVersionError:
            response_class: Any = messages.response(outgoing.message.api_key)
            response = response_class(error_code=error_codes.UNSUPPORTED_VERSION)
        except (OSError, ValueError) as error:
            # A node that is down is retried again and again: log it once.
            failure = f"{outgoing.host}:{outgoing.port} does not answer: {error or 'timed out'}"
            failure = printable_line(failure, SHOWN_MAX)
            if failure != self._last_failure:
                _LOGGER.warning("%s", failure)
            self._last_failure = failure
            self._disconnect()
        else:
            self._last_failure = ""
        self.in_flight = None
        self._answered(outgoing.id, response)

    async def _send(self, outgoing: Outgoing) -> Message:
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = client.KafkaConnection(self._client_id, outgoing.timeout_ms)
            await connection.open(outgoing.host, outgoing.port, security=self._security)
            self._connection = connection
        version = min(connection.version_for(outgoing.message), outgoing.version_max)
        if version < outgoing.version_min:
            raise client.UnsupportedVersionError(f"version {version} is below {outgoing.version_min}")
        return await connection.send(outgoing.message, version=version)

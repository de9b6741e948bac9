"""The outgoing connections of a broker over sockets: one `KafkaConnection` for each link.

While a controller is unreachable one of a process's brokers tries, the others wait: Kafka's brokers each retry every
50 ms, and thousands of them in one process would use all of its time.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from mockraft.brokers.effects import Answered, Closed, Event, Failed, Link, NotOpened, Opened, SendRequest
from mockraft.wire import client, messages
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.errors import DisconnectedError, UnsupportedVersionError, WireError

if TYPE_CHECKING:
    from mockraft.wire.message import MessageLookup


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


class SocketLinks:
    """The connections of one broker, to controllers with `security` and to other brokers with `peer_security`.

    Those that share an `outage` take turns connecting to an unreachable node.
    """

    def __init__(
        self,
        feed: Callable[[Event], None],
        security: ClientSecurity | None = None,
        messages: MessageLookup = messages,
        outage: Outage | None = None,
        peer_security: ClientSecurity | None = None,
    ) -> None:
        self._feed = feed
        self._security = security
        self._peer_security = peer_security
        self._messages = messages
        self._outage = outage
        self._connections: dict[Link, client.KafkaConnection] = {}
        self._opening: dict[Link, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._correlation_ids: dict[str, Iterator[int]] = {}

    def connect(self, link: Link) -> None:
        """Open a connection; Opened or NotOpened follows."""
        self._opening[link] = asyncio.get_running_loop().create_task(self._connect(link))

    def send(self, effect: SendRequest) -> None:
        """Send a request; Answered or Failed follows. A task is needed only where a log-in may come in between."""
        connection = self._connections.get(effect.link)
        if connection is None:
            self._answered(effect.request_id, DisconnectedError("the connection is closed"))
            return
        try:
            answered = functools.partial(self._answered, effect.request_id)
            if not connection.send_soon(effect.request, answered, effect.version):
                self._start(self._send(connection, effect))
        except (UnsupportedVersionError, WireError) as error:
            self._answered(effect.request_id, error)

    def disconnect(self, link: Link) -> None:
        """Close a connection, or stop opening it."""
        opening = self._opening.pop(link, None)
        if opening is not None:
            opening.cancel()
            self._keep(opening)
        connection = self._connections.pop(link, None)
        if connection is not None:
            connection.on_lost = None
            self._start(connection.close())

    def break_off(self, link: Link) -> None:
        """Cut a connection; Failed and Closed follow."""
        connection = self._connections.get(link)
        if connection is not None:
            connection.break_off()

    async def close(self) -> None:
        """Close every connection; all sockets are closed on return."""
        for link in [*self._opening, *self._connections]:
            self.disconnect(link)
        while self._others:
            await asyncio.gather(*self._others, return_exceptions=True)

    async def _connect(self, link: Link) -> None:
        dial = functools.partial(self._dial, link)
        try:
            connection = await (dial() if self._outage is None else self._outage.connect(dial))
        except Exception as error:
            self._opening.pop(link, None)
            self._feed(NotOpened(link, error))
            return
        self._opening.pop(link, None)
        self._connections[link] = connection
        connection.on_lost = functools.partial(self._lost, link, connection)
        self._feed(Opened(link, connection.api_versions))

    async def _dial(self, link: Link) -> client.KafkaConnection:
        ids = self._correlation_ids.setdefault(link.client_id, itertools.count()) if link.shares_ids else None
        connection = client.KafkaConnection(link.client_id, link.timeout_ms, ids, self._messages)
        security = self._peer_security if link.to_broker else self._security
        await connection.open(link.host, link.port, handshake=link.handshake, security=security)
        return connection

    async def _send(self, connection: client.KafkaConnection, effect: SendRequest) -> None:
        outcome: Any
        try:
            outcome = await connection.send(effect.request, version=effect.version)
        except Exception as error:
            outcome = error
        self._answered(effect.request_id, outcome)

    def _answered(self, request_id: int, outcome: Any) -> None:
        is_failure = isinstance(outcome, Exception)
        self._feed(Failed(request_id, outcome) if is_failure else Answered(request_id, outcome))

    def _lost(self, link: Link, connection: client.KafkaConnection) -> None:
        if self._connections.get(link) is connection:
            del self._connections[link]
        self._feed(Closed(link))

    def _start(self, work: Any) -> None:
        self._keep(asyncio.get_running_loop().create_task(work))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._others.add(task)
        task.add_done_callback(self._others.discard)

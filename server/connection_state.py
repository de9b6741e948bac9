"""What the node remembers of a connection: what came in, what is parked, who is on the other side."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from mockraft.server.apis.api import ANONYMOUS, Api, Parked, RequestContext
from mockraft.server.authentication.sasl_exchange import SaslExchange
from mockraft.server.controller.periodic import NEVER_MS
from mockraft.server.journal import ClosedConnection
from mockraft.server.stubs.senders import names_sender, sender, sender_by_client_id
from mockraft.wire.connection import FrameReader, Request

DEADLINES_KEPT = 1024
"""Deadlines of requests that wait no more are looked for when there are so many."""


class ParkedRequest:
    """A request whose handler said: not yet; `scripted` is what stubs make of it, if they have a hand in it."""

    __slots__ = ("api", "body", "ctx", "deadline_ms", "request", "retry", "scripted")

    def __init__(
        self, api: Api, request: Request, body: Any, ctx: RequestContext, parked: Parked, scripted: Any = None
    ) -> None:
        self.api = api
        self.request = request
        self.body = body
        self.ctx = ctx
        self.deadline_ms = parked.deadline_ms
        self.retry = parked.retry
        self.scripted = scripted


class Connection:
    """What the node knows of one connection; `authentication` is its log-in, None where none is to come any more.

    `client_id` is how the client calls itself, None before it did; `broker_id` which broker it said it is, or its
    client id says, else -1.
    """

    __slots__ = (
        "authentication",
        "awaits_sent",
        "broker_id",
        "client_id",
        "connection_id",
        "opened_ms",
        "parked",
        "paused",
        "peer_address",
        "principal",
        "reader",
        "token_authenticated",
        "waiting",
    )

    def __init__(self, connection_id: int, peer_address: str, opened_ms: int, frame_bytes_max: int) -> None:
        self.connection_id = connection_id
        self.peer_address = peer_address
        self.client_id: str | None = None
        self.broker_id = -1
        self.principal = ANONYMOUS
        self.token_authenticated = False
        self.authentication: SaslExchange | None = None
        self.opened_ms = opened_ms
        self.reader = FrameReader(frame_bytes_max)
        self.waiting: deque[bytes] = deque()
        self.parked: ParkedRequest | None = None
        self.paused = False
        self.awaits_sent = False

    def hear(self, request: Request, body: Any) -> None:
        """Note who a request says it comes from."""
        self.client_id = request.client_id
        self.broker_id = self.sender_of(body) if names_sender(body) else sender_by_client_id(self.client_id)

    def sender_of(self, body: Any) -> int:
        """The id of the broker that a request is of (of UnregisterBroker's, whom it is about), -1 if of none."""
        said = sender(body)
        return said if said >= 0 else self.broker_id if self.broker_id >= 0 else sender_by_client_id(self.client_id)

    def context(self, request: Request, listener: str, apis: Mapping[int, Api], now_ms: int) -> RequestContext:
        """Who asks, how and when, of a request on this connection."""
        return RequestContext(
            request.api_key,
            request.api_version,
            request.correlation_id,
            request.client_id or "",
            self.connection_id,
            listener,
            self.principal,
            self.peer_address,
            False,
            now_ms,
            apis,
            None,
            self.token_authenticated,
        )

    def closed(self, now_ms: int, reason: str, refused: bool, frame: bytes = b"") -> ClosedConnection:
        """The journal's line on the end of this connection."""
        return ClosedConnection(self.connection_id, self.peer_address, self.opened_ms, now_ms, reason, refused, frame)


class Deadlines:
    """When parked requests must be answered, in milliseconds; `parked` has the connections that have one, by id."""

    def __init__(self, parked: Mapping[int, Connection]) -> None:
        self._parked = parked
        self._entries: list[tuple[int, int, ParkedRequest]] = []
        self._added = 0

    def add(self, request: ParkedRequest) -> None:
        """A request was parked."""
        if request.deadline_ms >= NEVER_MS:
            return
        entries = self._entries
        if len(entries) >= DEADLINES_KEPT + 2 * len(self._parked):
            # Most were answered before their time, which clients choose: it may be weeks away.
            entries[:] = [entry for entry in entries if self._connection_of(entry[2]) is not None]
            heapq.heapify(entries)
        self._added += 1
        heapq.heappush(entries, (request.deadline_ms, self._added, request))

    def due(self, now_ms: int) -> Iterator[tuple[Connection, ParkedRequest]]:
        """Those whose time has come and that still wait, each once."""
        entries = self._entries
        while entries and entries[0][0] <= now_ms:
            request = heapq.heappop(entries)[2]
            connection = self._connection_of(request)
            if connection is not None:
                yield connection, request

    def next_ms(self) -> int:
        """When to look at `due` again."""
        return self._entries[0][0] if self._entries else NEVER_MS

    def _connection_of(self, request: ParkedRequest) -> Connection | None:
        connection = self._parked.get(request.ctx.connection_id)
        return connection if connection is not None and connection.parked is request else None

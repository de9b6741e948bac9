"""State of a connection in the node: received bytes, parked requests and the authenticated client."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Final

from mockraft.kafka_api.api import ANONYMOUS
from mockraft.kafka_api.journal import ClosedConnection
from mockraft.kafka_api.parked import NEVER_MS, Parked
from mockraft.kafka_api.senders import first_sender, sender, sender_by_client_id
from mockraft.server.apis.api import AnyApi, RequestContext, Result
from mockraft.wire.connection import FrameReader, Request

if TYPE_CHECKING:
    from mockraft.server.authentication.sasl_exchange import SaslExchange
    from mockraft.server.scripted import ScriptedRequest
    from mockraft.wire.message import Message

FRAME_LIMIT: Final = "socket.request.max.bytes"
DEADLINES_KEPT = 1024
"""Number of finished entries after which the deadline queue is compacted."""


@dataclass(slots=True, eq=False)
class ParkedRequest:
    """A request whose handler returned `Parked`; `scripted` is set if a stub handles it."""

    api: AnyApi
    request: Request
    body: Message
    ctx: RequestContext
    parked: Parked[Result]
    scripted: ScriptedRequest | None = None

    @property
    def deadline_ms(self) -> int:
        """Time at which it must be answered."""
        return self.parked.deadline_ms


@dataclass(slots=True, eq=False)
class Connection:
    """State of one connection; `authentication` is its SASL exchange, None once no login is expected.

    `client_id` is the last client id in a request header, None before the first; `broker_id` comes from a request or
    from the client id, else -1. `held_bytes` are those of the waiting requests and of the unfinished one.
    """

    connection_id: int
    peer_address: str
    opened_ms: int
    frame_bytes_max: InitVar[int]
    reader: FrameReader = field(init=False)
    client_id: str | None = None
    broker_id: int = -1
    principal: str = ANONYMOUS
    token_authenticated: bool = False
    authentication: SaslExchange | None = None
    waiting: deque[bytes] = field(default_factory=deque)
    held_bytes: int = 0
    parked: ParkedRequest | None = None
    paused: bool = False
    awaits_sent: bool = False

    def __post_init__(self, frame_bytes_max: int) -> None:
        self.reader = FrameReader(frame_bytes_max, FRAME_LIMIT)

    def record_sender(self, request: Request, body: Message) -> None:
        """Record the client id and broker id of a request."""
        self.client_id = request.client_id
        self.broker_id = first_sender(self.client_id, body)

    def sender_of(self, body: Message) -> int:
        """Return the id of the broker that sent a request (for UnregisterBroker: that it names), else -1."""
        named = sender(body)
        return named if named >= 0 else self.broker_id if self.broker_id >= 0 else sender_by_client_id(self.client_id)

    def context(
        self, request: Request, listener: str, apis: Mapping[int, AnyApi], now_ms: int, received_us: int | None = None
    ) -> RequestContext:
        """Return the context of a request on this connection."""
        return RequestContext(
            request.api_key,
            request.api_version,
            request.correlation_id,
            request.client_id or "",
            self.principal,
            self.peer_address,
            self.connection_id,
            listener,
            False,
            now_ms,
            apis,
            self.token_authenticated,
            received_us=received_us,
        )

    def closed(self, now_ms: int, reason: str, refused: bool, frame: bytes = b"") -> ClosedConnection:
        """Return the journal entry for the end of this connection."""
        return ClosedConnection(self.connection_id, self.peer_address, self.opened_ms, now_ms, reason, refused, frame)


class Deadlines:
    """Deadlines of parked requests in milliseconds; `parked` maps connection ids to connections that have one."""

    def __init__(self, parked: Mapping[int, Connection]) -> None:
        self._parked = parked
        self._entries: list[tuple[int, int, ParkedRequest]] = []
        self._added = 0

    def add(self, request: ParkedRequest) -> None:
        """Add a parked request."""
        if request.deadline_ms >= NEVER_MS:
            return
        entries = self._entries
        if len(entries) >= DEADLINES_KEPT + 2 * len(self._parked):
            # Most were answered before their deadline, which clients choose: it may be weeks away.
            entries[:] = [entry for entry in entries if self._connection_of(entry[2]) is not None]
            heapq.heapify(entries)
        self._added += 1
        heapq.heappush(entries, (request.deadline_ms, self._added, request))

    def due(self, now_ms: int) -> Iterator[tuple[Connection, ParkedRequest]]:
        """Return parked requests whose deadline has passed, each once."""
        entries = self._entries
        while entries and entries[0][0] <= now_ms:
            request = heapq.heappop(entries)[2]
            connection = self._connection_of(request)
            if connection is not None:
                yield connection, request

    def next_ms(self) -> int:
        """Return the earliest time at which `due` may return something."""
        return self._entries[0][0] if self._entries else NEVER_MS

    def _connection_of(self, request: ParkedRequest) -> Connection | None:
        connection = self._parked.get(request.ctx.connection_id)
        return connection if connection is not None and connection.parked is request else None

"""State of an accepted connection in a listener: received bytes, the request under way, the login and the client."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from mockraft.kafka_api.api import NEVER_MS, AnyApi, Parked, RequestContext
from mockraft.kafka_api.journal import Answer, ClosedConnection, Exchange
from mockraft.wire import api_keys
from mockraft.wire.connection import FrameReader
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.kafka_api.api import Client
    from mockraft.kafka_api.effects import Close, Reset
    from mockraft.wire.connection import Request


def sender(request: Message) -> int:
    """Return the id of the broker in a request (for UnregisterBroker, the one it is about); -1 if there is none."""
    broker_id: int = getattr(request, "broker_id", -1)
    if broker_id >= 0:
        return broker_id
    broker_id = getattr(request, "replica_id", -1)
    state = getattr(request, "replica_state", None)
    return broker_id if broker_id >= 0 or state is None else int(state.replica_id)


def names_sender(request: Message) -> bool:
    """Return True if the broker that a request names is its sender."""
    return request.api_key != api_keys.UNREGISTER_BROKER


def first_sender(client_id: str | None, request: Message) -> int:
    """Return the id of the broker that the first request of a connection comes from, -1 if it is unknown."""
    named = sender(request) if names_sender(request) else -1
    return named if named >= 0 else sender_by_client_id(client_id)


def sender_by_client_id(client_id: str | None) -> int:
    """Return the broker id in a client id: Kafka's are `1` to controllers and `raft-client-1` for the log."""
    number = (client_id or "").removeprefix("raft-client-")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1


class LoginAnswer(NamedTuple):
    """A response in Kafka's form."""

    request: Request
    body: Message
    response: Message


class LoginResult(NamedTuple):
    """Result of a frame of a login.

    `passes`: the API answers it. Else `answer` or the bare bytes of `token` are sent, if any. With a `failure` (the
    real reason, for the journal) the connection is closed after that; `expired`, at once; without `refused` that is
    no surprise. `is_complete`: the client is authenticated from now on.
    """

    passes: bool = False
    answer: LoginAnswer | None = None
    token: bytes | None = None
    failure: str | None = None
    expired: bool = False
    refused: bool = True
    is_complete: bool = False


class Login(Protocol):
    """A connection's login. Once complete, `principal` is `User:name`.

    `session_ends_ms` is None for a session without end.
    """

    principal: str
    token_authenticated: bool
    session_ends_ms: int | None

    def receive(self, frame: bytes, now_ms: int) -> LoginResult:
        """Judge the connection's next frame."""


FRAME_LIMIT: Final = "socket.request.max.bytes"
DEADLINES_KEPT = 1024
"""Number of finished entries after which the deadline queue is compacted."""

ApiT = TypeVar("ApiT", bound=AnyApi)
ContextT = TypeVar("ContextT", bound=RequestContext)

Result: TypeAlias = "Message | bytes | Parked[Result]"
"""Result of a request: a response, its body's bytes, or a wait; several waits may follow one another."""


class Scripted(Protocol):
    """A request that a stub handles."""

    def begin(self, now_ms: int) -> Result:
        """Return the response, or a wait."""

    def parked(self) -> Answer | None:
        """Return what the journal has of a request that waits, if its end is unknown."""

    def finish(self, response: Message | bytes) -> tuple[Answer, Close | Reset | None]:
        """Return what is sent, and the effect that ends the connection, if any."""

    def ended(self) -> Answer | None:
        """Return what the journal has of a request whose connection ended; None if it has it already."""

    def served(self, exchange: Exchange, now_ms: int) -> None:
        """Add the journal's entry to the calls of the stub."""


@dataclass(slots=True, eq=False)
class PendingRequest(Generic[ApiT, ContextT]):
    """A request that is being answered; `parked` if its handler waits, `scripted` if a stub handles it.

    `received_us` is the time in microseconds, where answers are measured.
    """

    connection: Connection
    api: ApiT
    body: Message
    ctx: ContextT
    received_ms: int
    received_us: int | None = None
    scripted: Scripted | None = None
    parked: Parked[Result] | None = None


AnyRequest: TypeAlias = PendingRequest[Any, Any]
"""A request to any server."""


@dataclass(slots=True, eq=False)
class Connection:
    """State of one connection; `authentication` is its login, None once none is expected.

    `client_id` is the last client id in a request header, None before the first. `held_bytes` are those of the waiting
    requests and of the unfinished one.
    """

    client: Client
    opened_ms: int
    frame_bytes_max: InitVar[int]
    connection_id: int = field(init=False)
    reader: FrameReader = field(init=False)
    client_id: str | None = None
    authentication: Login | None = None
    waiting: deque[bytes] = field(default_factory=deque)
    held_bytes: int = 0
    parked: AnyRequest | None = None
    paused: bool = False
    awaits_sent: bool = False

    def __post_init__(self, frame_bytes_max: int) -> None:
        self.connection_id = self.client.connection_id
        self.reader = FrameReader(frame_bytes_max, FRAME_LIMIT)

    def record_sender(self, client_id: str | None, body: Message) -> None:
        """Record the client id of a request, and the broker that it comes from."""
        self.client_id = client_id
        if (broker_id := first_sender(client_id, body)) >= 0:
            self.client = self.client._replace(broker_id=broker_id)

    def sender_of(self, body: Message) -> int:
        """Return the id of the broker that sent a request (for UnregisterBroker: that it names), else -1."""
        named, known = sender(body), self.client.broker_id
        return named if named >= 0 else known if known >= 0 else sender_by_client_id(self.client_id)

    def closed(self, now_ms: int, reason: str, refused: bool, frame: bytes = b"") -> ClosedConnection:
        """Return the journal entry for the end of this connection."""
        return ClosedConnection(self.connection_id, self.client.address, self.opened_ms, now_ms, reason, refused, frame)


class Deadlines:
    """Deadlines of parked requests in milliseconds; `parked` maps connection ids to connections that have one."""

    def __init__(self, parked: Mapping[int, Connection]) -> None:
        self._parked = parked
        self._entries: list[tuple[int, int, AnyRequest]] = []
        self._added = 0

    def add(self, request: AnyRequest, deadline_ms: int) -> None:
        """Add a parked request."""
        if deadline_ms >= NEVER_MS:
            return
        entries = self._entries
        if len(entries) >= DEADLINES_KEPT + 2 * len(self._parked):
            # Most were answered before their deadline, which clients choose: it may be weeks away.
            entries[:] = [entry for entry in entries if _is_parked(entry[2])]
            heapq.heapify(entries)
        self._added += 1
        heapq.heappush(entries, (deadline_ms, self._added, request))

    def due(self, now_ms: int) -> Iterator[AnyRequest]:
        """Return parked requests whose deadline has passed, each once."""
        entries = self._entries
        while entries and entries[0][0] <= now_ms:
            request = heapq.heappop(entries)[2]
            if _is_parked(request):
                yield request

    def next_ms(self) -> int:
        """Return the earliest time at which `due` may return something."""
        return self._entries[0][0] if self._entries else NEVER_MS


def _is_parked(request: AnyRequest) -> bool:
    return request.connection.parked is request

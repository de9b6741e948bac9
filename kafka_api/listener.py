"""A listener without sockets: bytes of connections come in, effects go out, time is an argument.

Requests of a connection are answered in order, as Kafka mutes a channel while one of its requests is processed: a
parked request (a Fetch that waits for records) delays later requests of its connection only. The same inputs give the
same effects.

A short request is answered in the step that completes it. Longer ones, those of APIs whose answers took long lately,
all beyond a burst, and what comes when the shell has no more time for steps, wait for `sent` (the effect AwaitSent),
which the shell calls in the connection's turn (`mockraft.kafka_api.turns`).

There are three kinds of errors: undecodable bytes close the connection, a refusal is sent in the API's error form, and
a handler that raises is answered with UNKNOWN_SERVER_ERROR. Each is recorded in the journal.

A server derives its own class, with its APIs and their context. What differs between servers beside that is
configuration (`Parts`): the limits, the journal, the logins, the stubs.
"""

from __future__ import annotations

import traceback
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias

from mockraft.kafka_api import refusals
from mockraft.kafka_api.api import Client, ConnectionClosedError, Parked, failure_text
from mockraft.kafka_api.connections import (
    AnyRequest,
    ApiT,
    Connection,
    ContextT,
    Deadlines,
    LoginResult,
    PendingRequest,
    Result,
    Scripted,
)
from mockraft.kafka_api.effects import AwaitSent, Close, PauseReading, ResumeReading, Send, Share
from mockraft.kafka_api.journal import Answer, ClosedConnection, Exchange, Failure, Journal, without_secrets
from mockraft.kafka_api.logins import LoginLimits, Logins
from mockraft.kafka_api.security import ServerSecurity, uses_sasl, uses_tls
from mockraft.kafka_api.tls import NoTlsError
from mockraft.wire import api_keys, messages
from mockraft.wire.connection import Request, parse_request, read_request_body, write_response
from mockraft.wire.errors import WireError

if TYPE_CHECKING:
    from mockraft.kafka_api.effects import Effect
    from mockraft.kafka_api.shell import Links, Shell
    from mockraft.wire.message import Message, MessageLookup

BURST_REQUESTS_MAX = 16
BURST_BYTES_MAX = 4_096
"""Maximum requests, and bytes with their responses, in one step; a larger request is answered alone, in its turn."""
DEAR_US = 1_000
"""Time of answers that ends a burst. An API whose answers took longer lately is dear."""
RETRIES_US = 5_000
"""Time after which parked requests that may be answered wait for the next tick."""
_LATELY = 0.25
"""Share of the last answer in what an API costs lately."""

REFUSED_FRAME_BYTES_KEPT = 1024

Effects: TypeAlias = "list[Effect]"


class Scripts(Protocol):
    """Stubs of a listener."""

    def consider(self, request: AnyRequest, own: Callable[[], Result]) -> Scripted | None:
        """Return the request with its stub; None if no stub applies. `own` returns the server's own answer."""

    def forget_connection(self, connection_id: int) -> None:
        """Forget a connection that ended."""


class Observed(NamedTuple):
    """The journal and the stubs of a listener that a test observes; `scripts` returns None while no stub can apply.

    `on_release` has what to call when a client that a stub held is released, `links` makes the faults of its bytes.
    """

    journal: Journal
    scripts: Callable[[AnyListener], Scripts | None] = lambda listener: None
    on_release: list[Callable[[], object]] | None = None
    links: Callable[[Shell], Links] | None = None


@dataclass
class Parts(Generic[ApiT]):
    """The parts of a listener: its name, APIs by key, limits, journal, logins, security, stubs, and message classes.

    `scripts` returns None while no stub can apply. With `is_bounded` bodies have the limits of Kafka's readers.
    """

    name: str
    apis: dict[int, ApiT]
    limits: LoginLimits
    journal: Journal
    logins: Logins
    security: ServerSecurity = field(default_factory=ServerSecurity)
    scripts: Callable[[], Scripts | None] = lambda: None
    messages: MessageLookup = messages
    is_bounded: bool = False


class Listener(Generic[ApiT, ContextT]):
    """The connections of one server. The shell calls these methods and carries out their effects in order.

    `now_us`, if set, measures how long answers take; else that is as precise as `now_ms`.
    """

    def __init__(self, parts: Parts[ApiT]) -> None:
        self.name, self.apis, self.journal = parts.name, parts.apis, parts.journal
        self.messages = parts.messages
        self.now_us: Callable[[], int] | None = None
        self.received_bytes = 0
        self._limits, self._is_bounded = parts.limits, parts.is_bounded
        self._logins = parts.logins
        self._protocol = parts.security.security_protocol
        self._refusals = refusals.RefusalLog(parts.journal)
        self._scripts = parts.scripts
        self._connections: dict[int, Connection] = {}
        self._parked: dict[int, Connection] = {}
        self._deadlines = Deadlines(self._parked)
        self._seen: object = None
        """The position at which parked requests were last tried."""
        self._to_retry: deque[Connection] = deque()
        """Those that are still to be tried."""
        self._costs_us: dict[int, float] = {}
        """What an answer of each API costs lately; below DEAR_US only the first one and longer ones are counted."""
        self._dear: set[int] = set()
        self._took_us = 0
        """What the last answer took; 0 where nothing is measured."""

    @abstractmethod
    def context(self, header: Request, client: Client, now_ms: int) -> ContextT:
        """Return the context of a request."""

    @abstractmethod
    def answer(self, request: PendingRequest[ApiT, ContextT]) -> Result:
        """Call the request's handler. A handler that raises is answered with UNKNOWN_SERVER_ERROR.

        ConnectionClosedError: there is no answer, and the connection is closed.
        """

    @abstractmethod
    def broken(self, request: PendingRequest[ApiT, ContextT]) -> Message:
        """Return the answer to a request whose handler raised the exception that is being handled."""

    @abstractmethod
    def position(self) -> object:
        """Return a value that changes with whatever parked requests may wait for."""

    def elsewhere(self, api_key: int) -> str:
        """Return where an API is served that this listener does not have, as the end of a sentence, or nothing."""
        return ""

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    @property
    def parked(self) -> int:
        """Number of parked requests."""
        return len(self._parked)

    def client_of(self, connection_id: int) -> tuple[str | None, int]:
        """Return the client id and broker id (-1: none) last seen on a connection."""
        connection = self._connections.get(connection_id)
        return (None, -1) if connection is None else (connection.client_id, connection.client.broker_id)

    def connected(self, connection_id: int, peer_address: str, now_ms: int, listener: str = "") -> Effects:
        """Accept a connection (on the listener of this name), or close it at once when there are too many.

        Over TLS its bytes come after `secured`.
        """
        client = Client(connection_id, peer_address, listener or self.name)
        connection = Connection(client, now_ms, self._limits.frame_bytes_max)
        if (refused := self._logins.refusal(len(self._connections))) is not None:
            kind, reason = refused
            self._add_closed(connection, connection.closed(now_ms, reason, refused=True), kind)
            return [Close(client.connection_id, reason)]
        effects: Effects = []
        if (replaced := self._logins.to_give_way()) is not None:
            oldest, reason = replaced
            self._close(self._connections[oldest], "unauthenticated_connections_max", reason, now_ms, effects)
        self._connections[client.connection_id] = connection
        self._logins.arrived(connection, now_ms)
        return effects

    def secured(self, connection_id: int, certificate: bytes | None, now_ms: int) -> Effects:
        """Complete the TLS handshake; `certificate` is the peer's verified certificate in DER, if any."""
        connection = self._connections.get(connection_id)
        effects: Effects = []
        if connection is not None and (refused := self._logins.secured(connection, certificate)):
            self._close(connection, "tls", refused, now_ms, effects)
        return effects

    def node_of(self, api_key: int, frame: bytes) -> Hashable:
        """Return the cluster node that sent a frame, if its requests have turns apart from those of clients."""
        return None

    def step(self, connection_id: int, data: bytes, now_ms: int, is_late: bool = False) -> Effects:
        """Process bytes received on a connection; if `is_late` its requests wait for its turn."""
        connection = self._connections.get(connection_id)
        if connection is None or connection.reader.failure is not None:
            return []  # what follows a frame of a wrong length has no meaning
        effects: Effects = []
        size = len(data)
        held_before = connection.held_bytes
        connection.held_bytes = held_before + size
        self.received_bytes += size
        try:
            connection.waiting += connection.reader.receive_data(data, BURST_REQUESTS_MAX)
        except WireError as wrong:  # the reader keeps it as `failure`, and would keep the bytes in its traceback
            wrong.__traceback__ = None
        if (is_late or self._dear) and connection.waiting and connection.parked is None:
            self._wait_if_dear(connection, is_late, effects)
        self._proceed(connection, now_ms, effects)
        if connection.held_bytes > held_before and connection_id in self._connections:
            if self._is_tls(connection.reader.awaited_bytes):
                self._close(connection, "tls", f"refused: {refusals.with_tls(self._protocol)}", now_ms, effects)
                return effects
            self._limit_received_bytes(connection, now_ms, effects)
        if self._parked:
            self._retry_parked(now_ms, effects)
        return effects

    def sent(self, connection_id: int, now_ms: int) -> Effects:
        """Process the connection's next requests: its bytes so far are written, and it is its turn."""
        connection = self._connections.get(connection_id)
        if connection is None or not connection.awaits_sent:
            return []
        connection.awaits_sent = False
        effects: Effects = []
        self._proceed(connection, now_ms, effects, is_turn=True)
        self._retry_parked(now_ms, effects)
        return effects

    def disconnected(self, connection_id: int, reason: str, now_ms: int) -> None:
        """Remove an ended connection; no effect if the listener closed it itself."""
        self._logins.left(connection_id)
        connection = self._connections.get(connection_id)
        if connection is None:
            return
        held, awaited = connection.reader.partial_bytes, connection.reader.awaited_bytes
        full_reason = f"{reason}, in a frame ({held} of {awaited} bytes)" if held else reason
        self._forget(connection, connection.closed(now_ms, full_reason, refused=False), reason)

    def broke(self, error: BaseException, now_ms: int) -> None:
        """Report a defect of this program that ended a connection."""
        self.journal.add_failure(Failure(now_ms, "".join(traceback.format_exception(error))))

    def close(self, connection_id: int, kind: str, reason: str, now_ms: int) -> Effects:
        """Close a connection for a reason that the shell detected (a client that never reads)."""
        connection = self._connections.get(connection_id)
        effects: Effects = []
        if kind == NoTlsError.kind:
            reason += f": the client needs security.protocol={self._protocol}"
        if connection is not None:
            self._close(connection, kind, reason, now_ms, effects)
        return effects

    def tick(self, now_ms: int) -> Effects:
        """Answer parked requests that are due or whose state has changed, and end logins that take too long."""
        effects: Effects = []
        for request in self._deadlines.due(now_ms):
            self._retry(request, now_ms, True, effects)
        for connection_id, reason in self._logins.overdue(now_ms):
            self._close(self._connections[connection_id], "authentication_timeout_ms", reason, now_ms, effects)
        effects += self._logins.due(now_ms)
        self._retry_parked(now_ms, effects)
        return effects

    def next_tick_ms(self, now_ms: int) -> int:
        """Return the latest time at which `tick` must be called, in milliseconds since the epoch."""
        return now_ms if self._to_retry else min(self._deadlines.next_ms(), self._logins.next_due_ms())

    def _limit_received_bytes(self, connection: Connection, now_ms: int, effects: Effects) -> None:
        limit = self._logins.received_bytes_max(connection.connection_id)
        if self.received_bytes <= limit:
            return
        if limit == self._limits.received_bytes_max:  # else the share of clients without login is exceeded
            connection = max(self._connections.values(), key=lambda each: each.held_bytes)
        reason = f"unanswered requests of all connections hold {self.received_bytes} bytes"
        self._close(connection, "received_bytes_max", reason, now_ms, effects)

    def _proceed(self, connection: Connection, now_ms: int, effects: Effects, is_turn: bool = False) -> None:
        """Answer a connection's requests in order until one parks or the burst ends; in its turn, at least one."""
        waiting = connection.waiting
        requests = used_bytes = taken_bytes = used_us = 0
        while waiting and connection.parked is None and not connection.awaits_sent:
            size = len(waiting[0])
            used_bytes += size
            is_over = used_bytes > BURST_BYTES_MAX or requests >= BURST_REQUESTS_MAX or used_us > DEAR_US
            if is_over and (requests or not is_turn):
                self._wait(connection, effects)
                break
            requests += 1
            taken_bytes += 4 + size
            used_bytes += self._take(connection, waiting.popleft(), now_ms, effects)
            used_us += self._took_us
            if not waiting and connection.reader.has_more:
                try:
                    waiting += connection.reader.receive_data(b"", BURST_REQUESTS_MAX)
                except WireError as wrong:  # as in `step`
                    wrong.__traceback__ = None
        if connection.connection_id not in self._connections:
            return
        self.received_bytes -= taken_bytes
        connection.held_bytes -= taken_bytes
        if (failure := connection.reader.failure) is not None and not waiting and connection.parked is None:
            is_tls = self._is_tls(connection.reader.refused_length)
            why = refusals.with_tls(self._protocol) if is_tls else failure
            self._close(connection, "tls" if is_tls else "frame", f"refused: {why}", now_ms, effects)
            return
        held_back = bool(waiting)
        if held_back != connection.paused:
            connection.paused = held_back
            effects.append((PauseReading if held_back else ResumeReading)(connection.connection_id))

    def _wait_if_dear(self, connection: Connection, is_late: bool, effects: Effects) -> None:
        if not connection.awaits_sent and (is_late or _api_key(connection.waiting[0]) in self._dear):
            self._wait(connection, effects)

    def _wait(self, connection: Connection, effects: Effects) -> None:
        """Let a connection wait for its turn, with the share of its next request."""
        connection.awaits_sent = True
        frame = connection.waiting[0]
        api_key = _api_key(frame)
        is_short = len(frame) <= BURST_BYTES_MAX
        if is_short and (node := self.node_of(api_key, frame)) is not None:
            share = Share(False, ("nodes", api_key), node)
        else:
            # What was never measured is taken for dear, and APIs that are not served for one.
            is_dear = not is_short or api_key not in self._costs_us or api_key in self._dear
            client = connection.client
            client_share = client.principal, client.address.rpartition(":")[0]
            share = Share(is_dear, api_key if api_key in self.apis else None, client_share)
        effects.append(AwaitSent(connection.connection_id, share))

    def _is_tls(self, frame_bytes: int) -> bool:
        """Return True if this length of a frame is the begin of a TLS handshake that the listener does not expect."""
        return frame_bytes >> 16 == refusals.TLS_HANDSHAKE and not uses_tls(self._protocol)

    def _take(self, connection: Connection, frame: bytes, now_ms: int, effects: Effects) -> int:
        """Answer or park one request; return the number of bytes sent."""
        self._took_us = 0
        received_us = None if self.now_us is None else self.now_us()
        if connection.authentication is not None and self._log_in(connection, frame, now_ms, received_us, effects):
            return 0
        try:
            header = parse_request(frame, self.messages)
            api, body = self._read(header)
        except WireError as wrong:
            self._close(connection, wrong.kind, f"refused: {wrong}", now_ms, effects, frame)
            return 0
        if connection.client.broker_id < 0:
            connection.record_sender(header.client_id, body)
        ctx = self.context(header, connection.client, now_ms)
        request = PendingRequest(connection, api, body, ctx, now_ms, received_us)
        try:
            scripts = self._scripts()
            if scripts is None:
                response = self.answer(request)
            else:
                response = _scripted(scripts, request, lambda: self.answer(request), now_ms)
        except ConnectionClosedError as reason:
            self._close(connection, "request", str(reason), now_ms, effects)
            return 0
        others_us = 0
        if self._parked:  # KafkaRaftClient completes fetches before QuorumController answers the change
            others_us = self._retry_measured(request, now_ms, effects)
        size = self._deliver(request, response, now_ms, effects)
        self._took_us += others_us
        return size

    def _read(self, header: Request) -> tuple[ApiT, Message]:
        """Return the API of a request, and the body."""
        api = self.apis.get(header.api_key)
        if api is not None and api.min_version <= header.api_version <= api.max_version:
            most = api.elements_max(self._limits)
            body: Message = read_request_body(header, api.request, most, is_bounded=self._is_bounded)
            if api.validate is not None:
                api.validate(body)
            return api, body
        if header.api_key == api_keys.API_VERSIONS:  # every version of it is answered
            return self.apis[header.api_key], self.messages.request(header.api_key)()
        name = self.journal.api_name(header.api_key)
        if api is None:
            about = f"API {name} ({header.api_key}) is not served on this listener"
            raise refusals.NotServedError(about + self.elsewhere(header.api_key))
        about = f"{name} ({header.api_key}) has no version {header.api_version} here"
        raise refusals.VersionNotServedError(f"{about}; it has {api.min_version} to {api.max_version}")

    def _log_in(
        self, connection: Connection, frame: bytes, now_ms: int, received_us: int | None, effects: Effects
    ) -> bool:
        """Let the connection's login judge a frame; return False if the APIs answer it."""
        login = connection.authentication
        assert login is not None
        try:
            verdict = login.receive(frame, now_ms)
        except Exception:
            self.journal.add_failure(Failure(now_ms, failure_text()))
            verdict = LoginResult(failure="its login broke; the error is mockraft's", refused=False)
        if verdict.passes:
            return False
        answers: Effects = []
        if verdict.answer is not None:
            header, body, response = verdict.answer
            ctx = self.context(header, connection.client, now_ms)
            request = PendingRequest(connection, self.apis[header.api_key], body, ctx, now_ms, received_us)
            result: Result = response
            if verdict.failure is None and (scripts := self._scripts()) is not None:
                result = _scripted(scripts, request, lambda: response, now_ms)
            self._deliver(request, result, now_ms, answers)
        elif verdict.token is not None:
            answers.append(Send(connection.connection_id, len(verdict.token).to_bytes(4, "big") + verdict.token))
        if verdict.failure is None:
            effects += answers
            if verdict.is_complete and connection.connection_id in self._connections:
                self._logins.admit(connection, login)
        elif verdict.expired:
            self._close(connection, "session", verdict.failure, now_ms, effects)
        else:
            self._forget(connection, connection.closed(now_ms, verdict.failure, verdict.refused), "authentication")
            effects += self._logins.refuse(connection.connection_id, answers, verdict.failure, now_ms)
        return True

    def _deliver(self, request: PendingRequest[ApiT, ContextT], response: Result, now_ms: int, effects: Effects) -> int:
        """Park a request, or send and journal its response; return the number of bytes sent."""
        connection, scripted = request.connection, request.scripted
        if isinstance(response, Parked):
            if not self._parked:
                self._seen = None  # its handler may itself have changed what it waits for
            request.parked, connection.parked = response, request
            self._parked[connection.connection_id] = connection
            self._deadlines.add(request, response.deadline_ms)
            self._took_us = 0
            if scripted is not None and (parked_as := scripted.parked()) is not None:
                scripted.served(self._note(request, parked_as, now_ms), now_ms)
            return 0
        end = None
        if scripted is None:
            answer = self.written(request, response)
        else:
            answer, end = scripted.finish(response)
        if answer.frame:
            effects.append(Send(connection.connection_id, answer.frame))
        exchange = self._note(request, answer, now_ms)
        if scripted is not None:
            scripted.served(exchange, now_ms)
            if end is not None:
                self._forget(connection, connection.closed(now_ms, end.reason, refused=True), "stub")
                effects.append(end)
        return len(answer.frame)

    def written(self, request: PendingRequest[ApiT, ContextT], response: Message | bytes) -> Answer:
        """Return the bytes of a response; empty bytes are no response."""
        header, api = request.ctx.header, request.api
        version = api.answered_version(header.api_version)
        if isinstance(response, bytes):
            body = response
            if not body:
                return Answer(b"", version, api.served_by)
        else:
            try:
                body = response.write(version)
            except Exception:
                body = self.broken(request).write(version)
        header_version = self.messages.response_header_version(header.api_key, version)
        frame = write_response(body, header.correlation_id, header_version)
        ctx = request.ctx
        remark = ctx.remark or (self._remark(request) if header.api_key in refusals.OPENING_APIS else "")
        if remark:
            self._refusals.warn(api_keys.name(header.api_key), ctx.client, remark, ctx.now_ms)
        return Answer(frame, version, api.served_by, ctx.failure, reason=remark or None)

    def _remark(self, request: PendingRequest[ApiT, ContextT]) -> str:
        """Return what is wrong with a client that begins a connection so, though it gets Kafka's answer."""
        header = request.ctx.header
        if header.api_key == api_keys.SASL_HANDSHAKE and not uses_sasl(self._protocol):
            return refusals.with_sasl(self._protocol)
        if api_keys.METADATA not in self.apis and refusals.needs_metadata(header.client_id, request.body):
            return f"{header.client_id} needs Metadata{self.elsewhere(api_keys.METADATA)}"
        return ""

    def _note(self, request: PendingRequest[ApiT, ContextT], answer: Answer, now_ms: int) -> Exchange:
        """Write an exchange to the journal."""
        ctx = request.ctx
        header = ctx.header
        if header.api_key == api_keys.SASL_AUTHENTICATE:
            header = without_secrets(header)
        received_ms = request.received_ms
        if self.now_us is None or request.received_us is None:
            took_us = 1_000 * (now_ms - received_ms)
        else:
            self._took_us = took_us = self.now_us() - request.received_us
            if took_us > DEAR_US or header.api_key not in self._costs_us or header.api_key in self._dear:
                self._keep_cost(request, took_us)
        exchange: Exchange = Exchange(ctx.client, header, answer, received_ms, now_ms, took_us)
        if self.messages is not messages:
            exchange.messages = self.messages
        return self.journal.add_exchange(exchange)

    def _keep_cost(self, request: PendingRequest[ApiT, ContextT], took_us: int) -> None:
        """Keep what an answer of an API takes, unless it waited for something or is that of a long request."""
        header = request.ctx.header
        api_key = header.api_key
        if request.parked is not None or api_key not in self.apis or len(header.frame) > BURST_BYTES_MAX:
            return
        known_us = self._costs_us.get(api_key, took_us)
        self._costs_us[api_key] = cost_us = known_us + _LATELY * (took_us - known_us)
        (self._dear.add if cost_us > DEAR_US else self._dear.discard)(api_key)

    def _retry_measured(self, request: PendingRequest[ApiT, ContextT], now_ms: int, effects: Effects) -> int:
        """Retry parked requests after a request; return the time, which is not what the request's own API costs."""
        if self.now_us is None or request.received_us is None:
            self._retry_parked(now_ms, effects)
            return 0
        began_us = self.now_us()
        self._retry_parked(now_ms, effects)
        took_us = self.now_us() - began_us
        request.received_us += took_us
        return took_us

    def _retry_parked(self, now_ms: int, effects: Effects) -> None:
        """Retry parked requests after a change, for a while; answering them may change more."""
        end_us = 0
        while self._parked:
            if not self._to_retry:
                position = self.position()
                if position == self._seen:
                    return
                self._seen = position
                self._to_retry.extend(self._parked.values())
            end_us = end_us or self._now_us() + RETRIES_US
            while self._to_retry:
                connection = self._to_retry.popleft()
                if connection.parked is not None:
                    self._retry(connection.parked, now_ms, False, effects)
                if self._now_us() > end_us:
                    return
        self._to_retry.clear()

    def _now_us(self) -> int:
        return 0 if self.now_us is None else self.now_us()

    def _retry(self, request: PendingRequest[ApiT, ContextT], now_ms: int, expired: bool, effects: Effects) -> None:
        connection, parked = request.connection, request.parked
        assert parked is not None
        response: Result | None
        try:
            response = parked.retry(now_ms, expired)
            if response is None and not expired:
                return
            if response is None:
                raise AssertionError("a parked request was not answered at its deadline")
        except ConnectionClosedError as reason:
            self._close(connection, "request", str(reason), now_ms, effects)
            return
        except Exception:
            response = self.broken(request)
        connection.parked = None
        del self._parked[connection.connection_id]
        self._deliver(request, response, now_ms, effects)
        if connection.waiting or connection.reader.failure is not None:
            if connection.waiting:
                self._wait(connection, effects)
            self._proceed(connection, now_ms, effects)

    def _close(
        self, connection: Connection, kind: str, reason: str, now_ms: int, effects: Effects, frame: bytes = b""
    ) -> None:
        self._forget(connection, connection.closed(now_ms, reason, True, frame[:REFUSED_FRAME_BYTES_KEPT]), kind)
        effects.append(Close(connection.connection_id, reason))

    def _forget(self, connection: Connection, closed: ClosedConnection, kind: str) -> None:
        connection_id, request = connection.connection_id, connection.parked
        del self._connections[connection_id]
        self._logins.forget(connection_id)
        self._parked.pop(connection_id, None)
        self.received_bytes -= connection.held_bytes
        if (scripts := self._scripts()) is not None:
            scripts.forget_connection(connection_id)
        if request is not None and request.scripted is not None and (answer := request.scripted.ended()) is not None:
            request.scripted.served(self._note(request, answer, closed.closed_ms), closed.closed_ms)
        connection.parked = None
        connection.waiting.clear()
        connection.reader.has_more = False
        self._add_closed(connection, closed, kind)

    def _add_closed(self, connection: Connection, closed: ClosedConnection, kind: str) -> None:
        """Write the end of a connection to the journal, and to the log if it is a refusal that nobody has ordered."""
        self.journal.add_closed(closed, kind)
        if closed.refused and kind != "stub":
            self._refusals.warn(kind, connection.client, closed.reason, closed.closed_ms)


AnyListener: TypeAlias = Listener[Any, Any]
"""A listener of any server."""


def _api_key(frame: bytes) -> int:
    return int.from_bytes(frame[:2], "big")


def _scripted(scripts: Scripts, request: AnyRequest, own: Callable[[], Result], now_ms: int) -> Result:
    """Return the answer of the request's stub, else the server's own."""
    request.scripted = scripts.consider(request, own)
    return own() if request.scripted is None else request.scripted.begin(now_ms)

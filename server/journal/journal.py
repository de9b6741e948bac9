"""What happened on the listener: every exchange, every closed connection with its reason, and counts.

An entry keeps the bytes that were exchanged and decodes them when somebody looks, so that writing it costs little
and what is seen later is what was on the wire. The ring is bounded in entries and in bytes.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

from mockraft.wire import api_keys, messages
from mockraft.wire.connection import Request, parse_request, read_response_body
from mockraft.wire.errors import WireError
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest


class Exchange:
    """One request and what it was answered with.

    Times are milliseconds of the controller's clock. `served_by` says who answered; `failure` is the traceback of a
    handler that broke, else None. `messages` knows the classes. `principal` is who asked; of SaslAuthenticate the token
    is left out of the request.
    """

    __slots__ = (
        "_header",
        "answered_ms",
        "connection_id",
        "failure",
        "messages",
        "principal",
        "received_ms",
        "request_frame",
        "response_frame",
        "response_version",
        "served_by",
    )

    def __init__(
        self,
        connection_id: int,
        received_ms: int,
        answered_ms: int,
        header: Request | tuple[int, int, int, str | None],
        request_frame: bytes,
        response_frame: bytes,
        response_version: int,
        served_by: str,
        failure: str | None,
        messages: Any = messages,
        principal: str = "User:ANONYMOUS",
    ) -> None:
        self.connection_id = connection_id
        self.received_ms = received_ms
        self.answered_ms = answered_ms
        self._header = header
        self.request_frame = request_frame
        self.response_frame = response_frame
        self.response_version = response_version
        self.served_by = served_by
        self.failure = failure
        self.messages = messages
        self.principal = principal

    @property
    def api_key(self) -> int:
        """Number of the API on the wire."""
        return self._header[0]

    @property
    def api_version(self) -> int:
        """The request's version."""
        return self._header[1]

    @property
    def correlation_id(self) -> int:
        """What the client calls the request."""
        return self._header[2]

    @property
    def client_id(self) -> str | None:
        """How the client calls itself."""
        return self._header[3]

    @property
    def bytes_held(self) -> int:
        """Bytes of the two frames and of the failure's text."""
        return len(self.request_frame) + len(self.response_frame) + len(self.failure or "")

    @property
    def api(self) -> str:
        """The API's name as Kafka's specs, or an overlay's, spell it (`BrokerHeartbeat`)."""
        return str(self.messages.request(self.api_key).__name__.removesuffix("Request"))

    @property
    def request(self) -> Any:
        """The request, decoded."""
        return _request_body(self.request_frame, self.messages)

    @property
    def response(self) -> Any:
        """The response, decoded."""
        offset = 8 + self.messages.response_header_version(self.api_key, self.api_version)
        return read_response_body(self.response_frame, offset, self.api_key, self.response_version, self.messages)

    def to_json(self) -> dict[str, Any]:
        """The exchange as a JSON tree; bodies in Kafka's own JSON form."""
        from mockraft.wire.json_form import to_json

        request, version = self.request, self.api_version
        if not request.min_version <= version <= request.max_version:
            version = self.response_version  # ApiVersions alone is answered in a version that was not asked for
        return {
            "connection": self.connection_id,
            "receivedMs": self.received_ms,
            "answeredMs": self.answered_ms,
            "api": self.api,
            "apiVersion": self.api_version,
            "correlationId": self.correlation_id,
            "clientId": self.client_id,
            "principal": self.principal,
            "request": to_json(request, version),
            "response": to_json(self.response, self.response_version),
            "servedBy": self.served_by,
            "failure": self.failure,
        }

    def __repr__(self) -> str:
        return (
            f"<{self.api} v{self.api_version} correlation_id={self.correlation_id} "
            f"connection={self.connection_id} by {self.served_by}>"
        )


class ClosedConnection:
    """A connection that ended, with the reason; `refused` when that was our doing, and then for which frame if any."""

    __slots__ = ("closed_ms", "connection_id", "opened_ms", "peer_address", "reason", "refused", "refused_frame")

    def __init__(
        self,
        connection_id: int,
        peer_address: str,
        opened_ms: int,
        closed_ms: int,
        reason: str,
        refused: bool,
        refused_frame: bytes = b"",
    ) -> None:
        self.connection_id = connection_id
        self.peer_address = peer_address
        self.opened_ms = opened_ms
        self.closed_ms = closed_ms
        self.reason = reason
        self.refused = refused
        self.refused_frame = refused_frame

    @property
    def bytes_held(self) -> int:
        """Bytes of the refused frame and of the reason, which may quote what a stranger said."""
        return len(self.refused_frame) + len(self.reason)

    def to_json(self) -> dict[str, Any]:
        """The line as a JSON tree."""
        return {
            "connection": self.connection_id,
            "peer": self.peer_address,
            "openedMs": self.opened_ms,
            "closedMs": self.closed_ms,
            "refused": self.refused,
            "reason": self.reason,
            "refusedFrame": self.refused_frame.hex(),
        }

    def __repr__(self) -> str:
        return f"<connection {self.connection_id} of {self.peer_address} closed: {self.reason}>"


class BrokenTick:
    """The controller's periodic work broke; the controller goes on."""

    __slots__ = ("at_ms", "failure")

    def __init__(self, at_ms: int, failure: str) -> None:
        self.at_ms = at_ms
        self.failure = failure

    @property
    def bytes_held(self) -> int:
        """Bytes of the failure's text."""
        return len(self.failure)

    def to_json(self) -> dict[str, Any]:
        """The line as a JSON tree."""
        return {"brokenTickMs": self.at_ms, "failure": self.failure}

    def __repr__(self) -> str:
        return f"<periodic work at {self.at_ms}>"


Entry = Exchange | ClosedConnection | BrokenTick

ENTRY_OVERHEAD_BYTES = 512
"""What an entry costs beside its frames and texts, roughly; so that a ring of tiny ones is bounded in bytes too."""


class Journal:
    """The ring of entries, oldest first, and counts since the start (these are not bounded by the ring)."""

    def __init__(self, entries_max: int, bytes_max: int, api_name: Callable[[int], str] = api_keys.name) -> None:
        self.entries_max = entries_max
        self.bytes_max = bytes_max
        self.api_name = api_name
        self.entries: deque[Entry] = deque()
        self.bytes_held = 0
        self.dropped = 0
        self.exchanges_by_api: Counter[int] = Counter()
        self.closed_by_reason: Counter[str] = Counter()
        self.failures = 0
        self._listeners: list[Callable[[Entry], None]] = []
        self._listeners_to_failures: list[Callable[[Entry], None]] = []

    def subscribe(self, listener: Callable[[Entry], None], *, every_exchange: bool = True) -> None:
        """Have further entries told to `listener`, which must not raise: all, or of exchanges those that broke."""
        (self._listeners if every_exchange else self._listeners_to_failures).append(listener)

    def add_exchange(self, exchange: Exchange) -> None:
        """Keep an exchange."""
        self.exchanges_by_api[exchange.api_key] += 1
        self._keep(exchange)
        if exchange.failure is not None:
            self.failures += 1
            self._tell_failure(exchange)

    def add_closed(self, closed: ClosedConnection, kind: str) -> None:
        """Keep a closed connection; `kind` is the reason without its numbers, to count by."""
        self.closed_by_reason[kind] += 1
        self._keep(closed)
        self._tell_failure(closed)

    def add_broken_tick(self, broken: BrokenTick) -> None:
        """Keep a failure of periodic work."""
        self.failures += 1
        self._keep(broken)
        self._tell_failure(broken)

    def exchanges(self, api_key: int | None = None) -> list[Exchange]:
        """The exchanges still held, oldest first, of one API or of all."""
        return [
            entry
            for entry in tuple(self.entries)
            if isinstance(entry, Exchange) and (api_key is None or entry.api_key == api_key)
        ]

    def closed(self) -> list[ClosedConnection]:
        """The closed connections still held, oldest first."""
        return [entry for entry in tuple(self.entries) if isinstance(entry, ClosedConnection)]

    def counters(self) -> dict[str, Any]:
        """Counts since the start: exchanges by API, closed connections by reason, failures, entries dropped."""
        return {
            "exchanges": {self.api_name(key): count for key, count in sorted(self.exchanges_by_api.items())},
            "closed": dict(sorted(self.closed_by_reason.items())),
            "failures": self.failures,
            "dropped": self.dropped,
        }

    def json_lines(self) -> Iterator[str]:
        """One JSON text per entry, oldest first."""
        for entry in tuple(self.entries):
            yield json.dumps(entry.to_json(), separators=(",", ":"))

    def _keep(self, entry: Entry) -> None:
        entries = self.entries
        entries.append(entry)
        self.bytes_held += entry.bytes_held + ENTRY_OVERHEAD_BYTES
        while len(entries) > self.entries_max or (self.bytes_held > self.bytes_max and len(entries) > 1):
            self.bytes_held -= entries.popleft().bytes_held + ENTRY_OVERHEAD_BYTES
            self.dropped += 1
        for listener in self._listeners:
            listener(entry)

    def _tell_failure(self, entry: Entry) -> None:
        for listener in self._listeners_to_failures:
            listener(entry)


def without_secrets(request: Request) -> Request:
    """A SaslAuthenticate as it may be kept: a token of PLAIN is a password."""
    empty = SaslAuthenticateRequest().write(request.api_version)
    return request._replace(frame=request.frame[: request.body_offset] + empty)


def _request_body(frame: bytes, messages: Any) -> Any:
    request = parse_request(frame, messages)
    message_class = messages.request(request.api_key)
    try:
        return message_class.read_from(frame, request.api_version, request.body_offset)[0]
    except WireError:
        if request.api_key != api_keys.API_VERSIONS:
            raise
        return message_class()

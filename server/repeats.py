"""A short way for requests that repeat, which are most of what brokers send.

The node remembers requests that wrote no record, and their responses. A request takes the short way if it differs from
a remembered one in nothing but the correlation id (a heartbeat's metadata offset is compared apart), and meets the same
state: then the handler would again write nothing and respond the same. The API's `RepeatRule` names that state, and has
the handler's other effects, such as the contact with a broker; the journal's entry is made here too.

Everything else goes the long way, `Node.step`: a request that a stub or an authorizer has to see, one that comes with
others or behind them, one that waits. Tests compare both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any

from mockraft.server.connection_state import Connection
from mockraft.server.effects import Send
from mockraft.server.journal.journal import ENTRY_OVERHEAD_BYTES
from mockraft.server.journal.ring import PureRing
from mockraft.server.stubs.senders import first_sender
from mockraft.wire.connection import FrameReader

if TYPE_CHECKING:
    from mockraft.server.apis.api import AnyApi, RequestContext
    from mockraft.server.apis.repeat_rule import RepeatRule
    from mockraft.server.controller.controller import Controller
    from mockraft.server.effects import Effect
    from mockraft.server.journal import Exchange
    from mockraft.server.responses import Responses
    from mockraft.server.stubs.stub_list import StubList
    from mockraft.wire.connection import Request
    from mockraft.wire.message import Message

HEAD, API_KEY, CORRELATION_ID, CLIENT_ID_SIZE = slice(0, 8), slice(5, 6), slice(8, 12), 13
"""Where a request, with its length, has them; `HEAD` is the length, API key and version.

Of the API key only the low byte. Of the client id's size, too: requests with an offset and a longer id are not
remembered.
"""
BEFORE_OFFSET_BYTES = 27
"""Bytes before the metadata offset, in every version, without those of the client id: length, header (API key, version,
correlation id, length of the client id, no tagged fields), broker id and epoch.
"""
KEPT_FOR_EACH_BROKER, KEPT_AT_LEAST = 2, 64
"""Number of requests of an API that are remembered: a client may send those of a broker under many client ids."""

REQUEST_BYTES_MAX, RESPONSE_BYTES_MAX, KEPT_BYTES_MAX = 1 << 10, 1 << 18, 1 << 24
"""Maximum size of a request and a response that are remembered, and of all of an API; clients send what they like."""

_OFFSET = Struct(">q")


@dataclass(slots=True)
class Repeat:
    """An answered request that wrote nothing, and what its response depends on.

    The request is, with its length, `size` bytes: `head` (length, API key, version), the correlation id, its `key` in
    the table, the offset if its rule ignores that, and `tail`; the response is `response_head` (its length), the
    correlation id, and `response_tail`. `sender` is the client id and broker id of a connection whose first request
    this is, `bytes_held` the size of the journal's entry.
    """

    size: int
    bytes_held: int
    head: bytes
    key: bytes
    tail: bytes
    response_head: bytes
    response_tail: bytes
    header: tuple[int, int, str | None]
    sender: tuple[str | None, int]
    api: AnyApi
    subject: Any
    state: tuple[object, ...]


@dataclass(slots=True)
class Remembered:
    """The remembered requests of one API by their bytes after the correlation id, up to the offset or the end."""

    rule: RepeatRule
    repeats: dict[bytes, Repeat] = field(default_factory=dict)
    bytes_held: int = 0

    def add(self, repeat: Repeat, repeats_max: int) -> None:
        """Add a request; forget all others if there are too many."""
        size = len(repeat.response_tail)
        if len(self.repeats) >= repeats_max or self.bytes_held + size > KEPT_BYTES_MAX:
            self.repeats.clear()
            self.bytes_held = 0
        before = self.repeats.get(repeat.key)
        self.bytes_held += size - (0 if before is None else len(before.response_tail))
        self.repeats[repeat.key] = repeat


class Repeats:
    """The short way of one node; `connections` and `apis` are the node's own tables."""

    def __init__(
        self,
        controller: Controller,
        connections: dict[int, Connection],
        apis: dict[int, AnyApi],
        stubs: StubList,
        responses: Responses,
    ) -> None:
        self._controller = controller
        self._connections = connections
        self._apis = apis
        self._stubs = stubs
        self._responses = responses
        self._remembered: dict[bytes, Remembered] = {}
        """By the byte of the API key."""
        self.answer: Callable[[int, bytes, int], bytes | None] = self._answer
        """Return the response to bytes received on a connection at a time in µs; None for the long way."""
        journal = responses.journal
        journal.ring.make = self._exchange
        self._ring = journal.ring if isinstance(journal.ring, PureRing) else None
        if not isinstance(journal.ring, PureRing):
            from mockraft_speed import _repeats

            classes = {cls.__name__: cls for cls in (Repeat, Remembered, Connection, FrameReader)}
            tables = controller, connections, apis, self._remembered
            self.answer = _repeats.ShortWay(
                *tables, stubs, responses, journal, journal.ring, journal.numbers, ENTRY_OVERHEAD_BYTES, classes
            )
        config = controller.config
        self._is_possible = not config.rules and config.overlay is None and not config.has_authorizer

    def remember(self, api: AnyApi, request: Request, body: Message, ctx: RequestContext, effect: Effect) -> None:
        """Remember a request that wrote nothing and that `effect` answered, if its API has a rule for it."""
        rule, controller = api.repeats, self._controller
        if rule is None or rule.handle is not api.handle or not self._is_possible:
            return
        frame = request.frame
        if not api.min_version <= request.api_version <= api.max_version:  # answered in another version
            return
        if not isinstance(effect, Send) or ctx.failure is not None or ctx.refused_with:
            return
        response = effect.data
        if len(frame) > REQUEST_BYTES_MAX or len(response) > RESPONSE_BYTES_MAX:
            return
        subject = rule.subject(body, controller)
        if subject is None:
            return
        data, offset, end = len(frame).to_bytes(4) + frame, 0, len(frame) + 4
        if rule.ignores_offset:
            end = BEFORE_OFFSET_BYTES + data[CLIENT_ID_SIZE]
            if request.body_offset + 16 != end:  # another header than nearly all requests have
                return
            offset = _OFFSET.unpack_from(data, end)[0]
        state = rule.state(controller, subject, offset)
        if state is None:
            return
        remembered = self._remembered.get(data[API_KEY])
        if remembered is None:
            remembered = self._remembered[data[API_KEY]] = Remembered(rule)
        repeat = Repeat(
            size=len(data),
            bytes_held=len(frame) + len(response) + ENTRY_OVERHEAD_BYTES,
            head=data[HEAD],
            key=data[12:end],
            tail=data[end + 8 :],
            response_head=response[:4],
            response_tail=response[8:],
            header=(request.api_key, request.api_version, request.client_id),
            sender=(request.client_id, first_sender(request.client_id, body)),
            api=api,
            subject=subject,
            state=state,
        )
        brokers = len(controller.image.cluster.brokers)
        remembered.add(repeat, KEPT_FOR_EACH_BROKER * brokers + KEPT_AT_LEAST)

    def _answer(self, connection_id: int, data: bytes, now_us: int) -> bytes | None:
        remembered = self._remembered.get(data[API_KEY])
        if remembered is None:
            return None
        rule, offset, end = remembered.rule, 0, len(data)
        if rule.ignores_offset:
            if end < BEFORE_OFFSET_BYTES + 8:
                return None
            end = BEFORE_OFFSET_BYTES + data[CLIENT_ID_SIZE]
        repeat = remembered.repeats.get(data[12:end])
        if (
            repeat is None
            or len(data) != repeat.size
            or not (data.startswith(repeat.head) and data.endswith(repeat.tail))
        ):
            return None
        connection = self._connections.get(connection_id)
        if (
            connection is None
            or connection.held_bytes
            or connection.parked is not None
            or connection.authentication is not None
            or self._stubs.is_armed
            or self._apis.get(repeat.header[0]) is not repeat.api
        ):
            return None
        controller, subject = self._controller, repeat.subject
        if rule.ignores_offset:
            offset = _OFFSET.unpack_from(data, end)[0]
        if rule.state(controller, subject, offset) != repeat.state:
            return None
        if connection.broker_id < 0:
            connection.client_id, connection.broker_id = repeat.sender
        if rule.record is not None:
            rule.record(controller, subject, offset, now_us // 1_000)
        correlation_id = data[CORRELATION_ID]
        response = repeat.response_head + correlation_id + repeat.response_tail
        responses = self._responses
        took_us = 0 if responses.now_us is None else responses.now_us() - now_us
        journal, ring = responses.journal, self._ring
        principal, broker_id, peer_address = connection.principal, connection.broker_id, connection.peer_address
        if ring is None or journal.is_heard:
            of_connection = connection_id, principal, broker_id, peer_address
            journal.add_exchange(self._exchange(repeat, correlation_id, offset, *of_connection, now_us, took_us, 0))
            return response
        number = journal.number(repeat.header[0])
        if journal.enabled:
            size = repeat.bytes_held
            ring.add(
                size,
                (
                    size,
                    repeat,
                    correlation_id,
                    offset,
                    connection_id,
                    principal,
                    broker_id,
                    peer_address,
                    now_us,
                    took_us,
                    number,
                ),
            )
        return response

    def _exchange(self, repeat: Repeat, correlation_id: bytes, offset: int, *connection_and_times: Any) -> Exchange:
        """Return the exchange of which the ring kept what differs from the remembered one."""
        *values, number = connection_and_times
        api_key, api_version, client_id = repeat.header
        header = (api_key, api_version, int.from_bytes(correlation_id, signed=True), client_id)
        rule = repeat.api.repeats
        written = _OFFSET.pack(offset) if rule is not None and rule.ignores_offset else b""
        frame = repeat.head[4:] + correlation_id + repeat.key + written + repeat.tail
        response = repeat.response_head + correlation_id + repeat.response_tail
        exchange = self._responses.exchange_at_once(repeat.api, header, frame, response, *values)
        self._responses.journal.identify(exchange, number)
        return exchange

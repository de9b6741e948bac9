"""A short way for requests that repeat, which are most of what brokers send.

The node remembers requests that wrote no record, and their responses. A request takes the short way if it differs from
a remembered one in nothing but the correlation id (a heartbeat's metadata offset is compared apart), and meets the same
state: then the handler would again write nothing and respond the same. The API's `RepeatRule` names that state, and has
the handler's other effects, such as the contact with a broker; the journal's entry is made here too.

While nothing but requests that repeat is answered, states that were compared are not compared again: that is a turn of
`PureReceiver`, or of `Receiver` in C.

Everything else goes the long way, `Node.step`: a request that a stub or an authorizer has to see, one that comes with
others or behind them, one that waits. Tests compare both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

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
AFTER_CORRELATION_ID = slice(12, None)
"""Where a request, with its length, has them; `HEAD` is the length, API key and version.

Of the API key only the low byte. Of the client id's size, too: requests with an offset and a longer id are not
remembered.
"""
BEFORE_OFFSET_BYTES = 27
"""Bytes before the metadata offset, in every version, without those of the client id: length, header (API key, version,
correlation id, length of the client id, no tagged fields), broker id and epoch.
"""
SENT_TOGETHER = 32
"""Number of responses that are sent together: the first wakes its client, further ones cost little."""
LONG_RESPONSE_BYTES = 1_024
"""Size from which a response does not wait for others: its client is busy with it while the next ones are made."""
KEPT_FOR_EACH_BROKER, KEPT_AT_LEAST = 2, 64
"""Number of requests of an API that are remembered: a client may send those of a broker under many client ids."""

REQUEST_BYTES_MAX, RESPONSE_BYTES_MAX, KEPT_BYTES_MAX = 1 << 10, 1 << 18, 1 << 24
"""Maximum size of a request and a response that are remembered, and of all of an API; clients send what they like."""

_OFFSET = Struct(">q")
_UNKNOWN: tuple[None, None] = None, None


@dataclass(slots=True)
class Repeat:
    """An answered request that wrote nothing, and what its response depends on.

    The request is, with its length, `size` bytes: `head` (length, API key, version), the correlation id, its `key` in
    the table, the offset if its rule ignores that, and `tail`; the response is `response_head` (its length), the
    correlation id, and `response_tail`. `sender` is the client id and broker id of a connection whose first request
    this is, `bytes_held` the size of the journal's entry, `proceeded` what the accelerator keeps.
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
    rule: RepeatRule
    proceeded: object = None


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


Compared: TypeAlias = dict[bytes, tuple[Repeat, dict[Any, int] | None]]
"""Remembered requests whose state has not changed since it was compared, by their bytes after the correlation id.

With the times of contact, if the API has them.
"""
_NOTHING: Compared = {}
Found: TypeAlias = tuple[Connection, Repeat, bytes]
"""A request that repeats: its connection, what it repeats, and its bytes."""


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
        self.answer: Callable[[int, bytes, int], bytes | None] = self.answer_in_python
        """Return the response to bytes received on a connection at a time in µs; None for the long way."""
        journal = responses.journal
        self._journal, self._has_records = journal, isinstance(journal.ring, PureRing)
        self._unchanged: list[tuple[object, dict[Any, int] | None]] = []
        self._compared: Compared = {}
        journal.ring.make = self._recorded
        if not isinstance(journal.ring, PureRing):
            journal.ring.make = self._restored
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
            rule=rule,
        )
        brokers = len(controller.image.cluster.brokers)
        remembered.add(repeat, KEPT_FOR_EACH_BROKER * brokers + KEPT_AT_LEAST)
        self._compared.clear()  # it has none that are forgotten

    def begin(self) -> Compared:
        """Return what `find` may find without a comparison, as long as nothing else runs."""
        self._is_unchanged()
        return _NOTHING if self._stubs.is_armed or self._journal.is_heard else self._compared

    def _is_unchanged(self) -> bool:
        """Return True if no state has changed since the last call; else forget what was compared."""
        rules = (remembered.rule for remembered in self._remembered.values())
        found = [rule.unchanged(self._controller) for rule in rules if rule.unchanged is not None]
        if found == self._unchanged:
            return True
        self._unchanged = found
        self._compared.clear()
        return False

    def answer_in_python(self, connection_id: int, data: bytes, now_us: int) -> bytes | None:
        """Do as `answer`, in Python."""
        found = self.find(connection_id, data, now_us // 1_000, self.begin())
        return None if found is None else self.respond([found], now_us)[0]

    def find(self, connection_id: int, data: bytes, now_ms: int, compared: Compared) -> Found | None:
        """Return a request that repeats once its effects are recorded, None for the long way.

        `compared` is what `begin` returned; `respond` is due before anything else runs.
        """
        connection = self._connections.get(connection_id)
        if (
            connection is None
            or connection.held_bytes
            or connection.parked is not None
            or connection.authentication is not None
        ):
            return None
        repeat, contacts_ms = compared.get(data[AFTER_CORRELATION_ID], _UNKNOWN)
        if repeat is None or not data.startswith(repeat.head):
            repeat = self._compare(data, now_ms, compared)
            if repeat is None:
                return None
        elif contacts_ms is not None:
            contacts_ms[repeat.subject] = now_ms
        elif repeat.rule.record is not None:
            repeat.rule.record(self._controller, repeat.subject, 0, now_ms)
        if connection.broker_id < 0:
            connection.client_id, connection.broker_id = repeat.sender
        return connection, repeat, data

    def respond(self, found: list[Found], received_us: int) -> list[bytes]:
        """Return the responses to requests that were received together, once the journal has them.

        All have the same time to the answer, as their responses are sent together.
        """
        clock_us, journal = self._responses.now_us, self._journal
        took_us = 0 if clock_us is None else clock_us() - received_us
        if journal.is_heard or not self._has_records:
            for client, repeat, data in found:
                of_client = client.connection_id, client.principal, client.broker_id, client.peer_address
                journal.add_exchange(self._exchange_of(repeat, data[4:], *of_client, received_us, took_us))
        else:
            records = [
                (
                    repeat.bytes_held,
                    repeat,
                    data,
                    client.connection_id,
                    client.principal,
                    client.broker_id,
                    client.peer_address,
                    received_us,
                    took_us,
                    number,
                )
                for (client, repeat, data), number in zip(found, journal.numbers, strict=False)
            ]
            journal.add_records(records, [repeat.header[0] for _, repeat, _ in found])
        return [repeat.response_head + data[CORRELATION_ID] + repeat.response_tail for _, repeat, data in found]

    def _compare(self, data: bytes, now_ms: int, compared: Compared) -> Repeat | None:
        """Return the remembered request if it meets the same state, once its other effects have been recorded."""
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
            or self._stubs.is_armed
            or self._apis.get(repeat.header[0]) is not repeat.api
        ):
            return None
        controller, subject = self._controller, repeat.subject
        if rule.ignores_offset:
            offset = _OFFSET.unpack_from(data, end)[0]
        if rule.state(controller, subject, offset) != repeat.state:
            return None
        if rule.record is not None:
            rule.record(controller, subject, offset, now_ms)
        if compared is self._compared and rule.unchanged is not None and self._is_unchanged():
            compared[data[AFTER_CORRELATION_ID]] = repeat, rule.unchanged(controller)[1]
        return repeat

    def _recorded(self, repeat: Repeat, data: bytes, *of_connection_and_times: Any) -> Exchange:
        """Return the exchange of a record of `PureRing`."""
        *values, number = of_connection_and_times
        exchange = self._exchange_of(repeat, data[4:], *values)
        self._journal.identify(exchange, number)
        return exchange

    def _restored(self, repeat: Repeat, correlation_id: bytes, offset: int, *of_connection_and_times: Any) -> Exchange:
        """Return the exchange of which the accelerator's ring kept what differs from the remembered one."""
        written = _OFFSET.pack(offset) if repeat.rule.ignores_offset else b""
        data = repeat.head + correlation_id + repeat.key + written + repeat.tail
        return self._recorded(repeat, data, *of_connection_and_times)

    def _exchange_of(self, repeat: Repeat, frame: bytes, *of_connection_and_times: Any) -> Exchange:
        api_key, api_version, client_id = repeat.header
        correlation_id = frame[4:8]
        header = (api_key, api_version, int.from_bytes(correlation_id, signed=True), client_id)
        response = repeat.response_head + correlation_id + repeat.response_tail
        return self._responses.exchange_at_once(repeat.api, header, frame, response, *of_connection_and_times)

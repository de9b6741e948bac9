"""One request and its answer, as the bytes that were sent: decoded on access."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, cast

from mockraft.kafka_api.api import OfRequest
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.connection import Request, parse_request, read_request_body, read_response_body
from mockraft.wire.errors import WireError
from mockraft.wire.message import Struct, field_names
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.principals import read_principal
from mockraft.wire.redaction.messages import masked, masked_request, masked_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from mockraft.kafka_api.api import Client
    from mockraft.wire.json_form import Tree
    from mockraft.wire.message import Message, MessageLookup
    from mockraft.wire.messages.envelope_request import EnvelopeRequest
    from mockraft.wire.messages.envelope_response import EnvelopeResponse
    from typing_extensions import TypeVar

    RequestT = TypeVar("RequestT", bound=Message, default=Any, covariant=True)
    ResponseT = TypeVar("ResponseT", bound=Message, default=Any, covariant=True)
else:  # Python has defaults of type variables since 3.13
    from typing import TypeVar

    RequestT, ResponseT = TypeVar("RequestT"), TypeVar("ResponseT")


@dataclass(slots=True, eq=False, repr=False)
class ClosedConnection:
    """A closed connection and the reason; `refused` if the controller closed it, and then the refused frame, if any.

    The journal sets `id`, `node_id`, `at_broker` and `show_secrets`.
    """

    connection_id: int
    peer_address: str
    opened_ms: int
    closed_ms: int
    reason: str
    refused: bool
    refused_frame: bytes = b""
    id: int = field(default=0, init=False)
    node_id: int = field(default=0, init=False)
    at_broker: bool = field(default=False, init=False)
    show_secrets: bool = field(default=False, init=False)

    @property
    def bytes_held(self) -> int:
        """Bytes of the refused frame and of the reason, which may quote the client's bytes."""
        return len(self.refused_frame) + len(self.reason)

    @property
    def shown_refused_frame(self) -> bytes:
        """The refused frame as people may see it: a frame without a readable header may be anything."""
        return self.refused_frame if self.show_secrets else masked_request(self.refused_frame)

    def to_json(self) -> Tree:
        """Return the entry as a JSON tree."""
        return {
            "id": self.id,
            "node": self.node_id,
            "atBroker": self.at_broker,
            "connection": self.connection_id,
            "peer": self.peer_address,
            "openedMs": self.opened_ms,
            "closedMs": self.closed_ms,
            "refused": self.refused,
            "reason": self.reason,
            "refusedFrame": self.shown_refused_frame.hex(),
        }

    def __repr__(self) -> str:
        return f"<connection {self.connection_id} of {self.peer_address} closed: {self.reason}>"


@dataclass(slots=True, eq=False, repr=False)
class Failure:
    """A failure of a login, of periodic work or of a listener to the journal; the controller goes on.

    The journal sets `id`, `node_id` and `at_broker`.
    """

    at_ms: int
    failure: str
    id: int = field(default=0, init=False)
    node_id: int = field(default=0, init=False)
    at_broker: bool = field(default=False, init=False)

    @property
    def bytes_held(self) -> int:
        """Bytes of the failure's text."""
        return len(self.failure)

    def to_json(self) -> Tree:
        """Return the entry as a JSON tree."""
        return {"id": self.id, "node": self.node_id, "brokenTickMs": self.at_ms, "failure": self.failure}

    def __repr__(self) -> str:
        return f"<periodic work at {self.at_ms}>"


SMALL_BODY_BYTES = 256
"""Error codes of answers up to this size are cached by their bytes."""


class Answer(NamedTuple):
    """The answer sent: a response's bytes with their length (empty for none), its version, and who served it.

    `failure` is the traceback of a handler that raised. `matched` is the id of the stub that served it; `unmatched`:
    strict stubs did not expect the request. `reason` is why there is no answer, or how it was altered.
    """

    frame: bytes
    version: int
    served_by: str
    failure: str | None = None
    matched: str | None = None
    unmatched: bool = False
    reason: str | None = None


def no_topic_name(topic_id: bytes) -> str | None:
    """Return None: no topic is known."""
    return None


@dataclass(slots=True, eq=False, repr=False)
class Exchange(OfRequest, Generic[RequestT, ResponseT]):
    """One request and its answer; type checkers know their classes where a request class selected it.

    Times are milliseconds of the controller's clock; `took_us` is the time to the answer in microseconds. The journal
    sets `id`, which numbers all nodes' entries from 1, `node_id`, `at_broker` (that is a simulated broker's id),
    `show_secrets`, and `topic_name`, which knows topics' names by their ids. The frames, `request` and `response` have
    the real values; texts, JSON and the `shown_…` properties have them only if `show_secrets` is True.
    `messages` has the message classes. The token of SaslAuthenticate is removed from the request.

    A request that a broker forwarded has the client that the broker names, and `envelope`, the exchange on the wire.
    """

    client: Client
    header: Request
    answer: Answer
    received_ms: int
    answered_ms: int
    took_us: int = 0
    messages: MessageLookup = field(default=messages, init=False)
    id: int = field(default=0, init=False)
    node_id: int = field(default=0, init=False)
    at_broker: bool = field(default=False, init=False)
    show_secrets: bool = field(default=False, init=False)
    envelope: Exchange[EnvelopeRequest, EnvelopeResponse] | None = field(default=None, init=False)
    topic_name: Callable[[bytes], str | None] = field(default=no_topic_name, init=False)

    @property
    def bytes_held(self) -> int:
        """Size of its frames and of its failure's text."""
        answer = self.answer
        size = len(self.header.frame) + len(answer.frame) + (0 if answer.failure is None else len(answer.failure))
        return size if self.envelope is None else size + self.envelope.bytes_held

    @property
    def forwarded_by(self) -> int | None:
        """Id of the broker that forwarded it, -1 if unknown; None if the client sent it itself."""
        return None if self.envelope is None else self.broker_id

    @property
    def request_frame(self) -> bytes:
        """The request's bytes, without their length."""
        return self.header.frame

    @property
    def response_frame(self) -> bytes:
        """The answer's bytes with their length, empty for none."""
        return self.answer.frame

    @property
    def response_version(self) -> int:
        """Version of the answer."""
        return self.answer.version

    @property
    def served_by(self) -> str:
        """The server's name ("controller"), or "stub <id>"."""
        return self.answer.served_by

    @property
    def failure(self) -> str | None:
        """Traceback of a handler that raised, else None."""
        return self.answer.failure

    @property
    def matched(self) -> str | None:
        """Id of the stub that served it, else None."""
        return self.answer.matched

    @property
    def unmatched(self) -> bool:
        """True if strict stubs did not expect the request."""
        return self.answer.unmatched

    @property
    def reason(self) -> str | None:
        """Why there is no answer, or how it was altered."""
        return self.answer.reason

    @property
    def peer_address(self) -> str:
        """Address of the client."""
        return self.client.address

    @property
    def broker_id(self) -> int:
        """Id of the broker that sent it, -1 if unknown."""
        return self.client.broker_id

    @property
    def client_id(self) -> str | None:
        """Client id of the request."""
        return self.header.client_id

    @property
    def api(self) -> str:
        """Name of the API in Kafka's specs, or an overlay's (`BrokerHeartbeat`)."""
        return str(self.messages.request(self.api_key).__name__.removesuffix("Request"))

    @property
    def request(self) -> RequestT:
        """The request, decoded."""
        header = self.header
        message_class = self.messages.request(header.api_key)
        try:
            message, _ = message_class.read_from(header.frame, header.api_version, header.body_offset)
        except WireError:
            if header.api_key != api_keys.API_VERSIONS:
                raise
            message = message_class()
        return cast("RequestT", message)

    @property
    def response(self) -> ResponseT | Any:
        """The response, decoded; None without one. WireError for one that was damaged on purpose."""
        frame = self.response_frame
        if not frame:
            return None
        offset = 8 + self.messages.response_header_version(self.api_key, self.api_version)
        return read_response_body(frame, offset, self.api_key, self.response_version, self.messages)

    @property
    def shown_request(self) -> RequestT:
        """The request, decoded, as people may see it."""
        return self.request if self.show_secrets else masked(self.request, self.messages)

    @property
    def shown_response(self) -> ResponseT | Any:
        """The response, decoded, as people may see it; None and WireError as for `response`."""
        if self.show_secrets or not self.response_frame:
            return self.response
        if self.api_key != api_keys.ENVELOPE:
            return masked(self.response, self.messages)
        # The response inside an Envelope can only be decoded with its request.
        shown = replace(self, answer=self.answer._replace(frame=self.shown_response_frame))
        shown.messages = self.messages
        return shown.response

    @property
    def shown_request_frame(self) -> bytes:
        """The request's bytes as people may see them."""
        return self.request_frame if self.show_secrets else masked_request(self.request_frame, self.messages)

    @property
    def shown_response_frame(self) -> bytes:
        """The response's bytes as people may see them, length included."""
        frame = self.response_frame
        if self.show_secrets or not frame:
            return frame
        at = self.api_key, self.response_version
        return frame[:4] + masked_response(frame[4:], *at, self.messages, self.request_frame)

    def as_kio(self) -> tuple[Any, Any]:
        """Return the request and the response as entities of kio (extra `mockraft[kio]`); None for no response.

        Raise LookupError or WireError if kio has no class for them, or cannot hold them.
        """
        from mockraft.wire.kio_entities import to_kio

        response = self.response
        answered = None if response is None else to_kio(response, self.response_version)
        return to_kio(self.request, self.api_version), answered

    @property
    def error_code(self) -> int | None:
        """The first nonzero error code of the answer, else 0; None without a readable answer."""
        if self.envelope is not None and not self.response_frame:
            return self.envelope.error_code
        body = self.response_frame[8:]
        if len(body) <= SMALL_BODY_BYTES:
            return _error_code(self.api_key, self.api_version, self.response_version, body, self.messages)
        try:
            return first_error(self.response)
        except WireError:
            return None

    def summary(self) -> Tree:
        """Return the exchange as a JSON tree without its bodies."""
        error_code = self.error_code
        return {
            "id": self.id,
            "node": self.node_id,
            "atBroker": self.at_broker,
            "connection": self.connection_id,
            "peer": self.peer_address,
            "receivedMs": self.received_ms,
            "answeredMs": self.answered_ms,
            "tookUs": self.took_us,
            "api": self.api,
            "apiVersion": self.api_version,
            "correlationId": self.correlation_id,
            "clientId": self.client_id,
            "principal": self.principal,
            "brokerId": self.broker_id if self.broker_id >= 0 else None,
            "forwarded": self.envelope is not None,
            "servedBy": self.served_by,
            "matched": self.matched,
            "unmatched": self.unmatched,
            "reason": self.reason,
            "error": error_codes.name(error_code) if error_code else None,
            "failure": self.failure,
            "bytes": len(self.request_frame) + len(self.response_frame),
        }

    def to_json(self) -> Tree:
        """Return the exchange as a JSON tree; bodies in Kafka's own JSON form, null for none or an unreadable one."""
        from mockraft.wire.json_form import to_json

        request, version = self.shown_request, self.api_version
        if not request.min_version <= version <= request.max_version:
            version = self.response_version  # ApiVersions alone is answered in a version that was not asked for
        try:
            response = to_json(self.shown_response, self.response_version) if self.response_frame else None
        except WireError:
            response = None
        return {
            **self.summary(),
            "request": to_json(request, version),
            "response": response,
            "responseHex": self.shown_response_frame.hex() if self.response_frame and response is None else None,
        }

    def __repr__(self) -> str:
        return (
            f"<{self.api} v{self.api_version} correlation_id={self.correlation_id} "
            f"connection={self.connection_id} by {self.served_by}>"
        )


UNANSWERED_ELEMENTS_MAX = 1 << 16
"""Elements of a forwarded request without an answer; with more it stays in its Envelope."""


def opened(envelope: Exchange[EnvelopeRequest, EnvelopeResponse]) -> Exchange:
    """Return the exchange that an Envelope carries; the Envelope's own if no request in it can be read (KIP-590).

    One that was carried out can be; NOT_CONTROLLER is lifted out of its answer. Of one without an answer this is tried.
    """
    asked, lookup, code = envelope.request, envelope.messages, envelope.error_code
    if code not in (None, error_codes.NONE, error_codes.NOT_CONTROLLER):
        return envelope
    try:
        header = parse_request(asked.request_data, lookup)
        principal = read_principal(asked.request_principal)
        client = envelope.client._replace(
            address=str(ip_address(asked.client_host_address)),
            principal=f"{principal.type}:{principal.name}",
            token_authenticated=principal.token_authenticated,
        )
        if code is None:
            read_request_body(header, lookup.request(header.api_key), UNANSWERED_ELEMENTS_MAX)
    except (WireError, ValueError):
        return envelope
    try:
        answered = envelope.response
        data = b"" if answered is None else answered.response_data or b""
    except WireError:  # damaged on purpose
        data = b""
    frame = len(data).to_bytes(4) + data if data else b""
    answer = envelope.answer._replace(frame=frame, version=header.api_version)
    times = envelope.received_ms, envelope.answered_ms, envelope.took_us
    found: Exchange = Exchange(client, header, answer, *times)
    found.messages, found.envelope = lookup, envelope
    return found


@lru_cache(maxsize=1024)
def _error_code(
    api_key: int, api_version: int, response_version: int, body: bytes, messages: MessageLookup
) -> int | None:
    if not body:
        return None
    try:
        offset = messages.response_header_version(api_key, api_version)
        return first_error(read_response_body(body, offset, api_key, response_version, messages))
    except WireError:
        return None


def first_error(message: object) -> int:
    """Return the first nonzero error code in a response, at any depth; 0 if there is none."""
    if isinstance(message, list):
        return next((code for code in map(first_error, message) if code != error_codes.NONE), error_codes.NONE)
    if not isinstance(message, Struct):
        return error_codes.NONE
    names = field_names(type(message))
    # AddPartitionsToTxn says partition_error_code.
    own = next((code for name in names if name.endswith("error_code") and (code := getattr(message, name))), None)
    return first_error([getattr(message, name) for name in names]) if own is None else int(own)


def without_secrets(request: Request) -> Request:
    """Return a SaslAuthenticate request without its token: a token of PLAIN is a password."""
    empty = SaslAuthenticateRequest().write(request.api_version)
    return request._replace(frame=request.frame[: request.body_offset] + empty)

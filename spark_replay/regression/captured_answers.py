"""Answer from a capture: each request gets the response that the captured controller gave to the same request.

Two requests are the same if API, version, client id and all non-volatile fields are equal, as for `recorded_stubs`; for
reads of the metadata log also the fetch position, since the log is the captured one, byte for byte. If the capture has
several responses to the same request, they are returned one after the other, and the last one stays. A client id that
is not in the capture is ignored, and so are the client's names in ApiVersions. An ApiVersions request of a version
that the captured controller did not know gets UNSUPPORTED_VERSION in version 0, and the client asks again (KIP-511).

Ids and epochs assigned by the captured controller are assigned again. Values chosen by the other side (its cluster id,
incarnation id, directory ids) replace the captured ones, and so does the address of this controller.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mockraft.spark_replay.endpoints import translate_message
from mockraft.spark_replay.recorded_stubs import fields_to_match
from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.regression.captured import Captured
from mockraft.spark_replay.regression.classes import ONE_TO_ONE
from mockraft.spark_replay.regression.renaming import Id, Renaming
from mockraft.spark_replay.regression.rules import RuleNode, Rules
from mockraft.spark_replay.regression.send_order import read_exchange
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.connection import Request, parse_request, write_response
from mockraft.wire.json_form import Json, from_json, to_json
from mockraft.wire.message import Message
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse

_PLACES = ("fetchOffset", "position", "endOffset")
"""Fetch positions in the log: volatile in a replay, but not here, where the log is the captured one."""

_ANY_BODY = frozenset({api_keys.API_VERSIONS, api_keys.DESCRIBE_CLUSTER})


class Answer(NamedTuple):
    """A response frame with its length. `wait_ms` is how long a reader at the end of the log waits for it."""

    frame: bytes
    number: int | None
    wait_ms: int = 0


class CapturedAnswers:
    """All responses of a capture, with the addresses of captured controllers replaced by `address`.

    `answered` counts the requests found by API, `unanswered` the others by (API, reason).
    """

    def __init__(self, exchanges: Iterable[Captured], host: str, port: int) -> None:
        self.address = host, port
        self.answered: Counter[str] = Counter()
        self.unanswered: Counter[tuple[str, str]] = Counter()
        self.left_out: Counter[tuple[str, str]] = Counter()
        self._rules = Rules()
        self._renaming = Renaming()
        self._answers: dict[str, deque[Captured]] = {}
        self._last_fetch: dict[int, Captured] = {}
        # The versions of ApiVersions that the captured controller offered.
        self._offered: ApiVersion | None = None
        for captured in exchanges:
            read = read_exchange(captured, Filter())
            if isinstance(read, str):
                self.left_out[captured.api, read] += 1
                continue
            header, body, _ = read
            for key in self._keys(header, body):
                self._answers.setdefault(key, deque()).append(captured)
            if captured.api_key == api_keys.FETCH:
                self._last_fetch[captured.api_version] = captured
            elif captured.api_key == api_keys.API_VERSIONS and self._offered is None:
                self._offered = _versions_of_itself(captured)

    def answer(self, frame: bytes) -> Answer | None:
        """Return the response to a request frame; None (and counted) if the capture has none. Raises WireError."""
        header = parse_request(frame)
        name = api_keys.name(header.api_key)
        offered = self._offered
        if (
            header.api_key == api_keys.API_VERSIONS
            and offered is not None
            and not offered.min_version <= header.api_version <= offered.max_version
        ):
            self.answered[name] += 1
            refusal = ApiVersionsResponse(error_code=error_codes.UNSUPPORTED_VERSION, api_keys=[offered])
            return Answer(write_response(refusal.write(0), header.correlation_id, 0), None)
        body = messages.request(header.api_key).read(frame[header.body_offset :], header.api_version)
        for key in self._keys(header, body):
            given = self._answers.get(key)
            if given is not None:
                captured = given[0] if len(given) == 1 else given.popleft()
                self.answered[name] += 1
                wait_ms = (
                    body.max_wait_ms if isinstance(body, messages.FetchRequest) and not _has_records(captured) else 0
                )
                return Answer(self._adapted(header, body, captured), captured.number, wait_ms)
        if isinstance(body, messages.FetchRequest) and header.api_version in self._last_fetch:
            self.unanswered[name, "fetches at the end of the captured log: answered without records"] += 1
            return Answer(self._nothing_new(header), None, body.max_wait_ms)
        self.unanswered[name, "the capture has no such request"] += 1
        return None

    def _keys(self, header: Request, body: Message) -> Iterator[str]:
        """Return the keys to look a request up by, best match first."""
        key, version = header.api_key, header.api_version
        if isinstance(body, messages.EnvelopeRequest):
            inner = parse_request(bytes(body.request_data))
            body = messages.request(inner.api_key).read(inner.frame[inner.body_offset :], inner.api_version)
            fields = self._fields(inner.api_key, body, inner.api_version)
            yield json.dumps([key, version, inner.api_key, inner.api_version, inner.client_id, fields])
            yield json.dumps([key, version, inner.api_key, inner.api_version, fields])
            return
        fields = self._fields(key, body, version)
        yield json.dumps([key, version, header.client_id, fields])
        yield json.dumps([key, version, fields])
        if key in _ANY_BODY:
            yield json.dumps([key, version])

    def _fields(self, key: int, body: Message, version: int) -> list[tuple[str, Json]]:
        tree = to_json(body, version)
        places = _places(tree) if key in (api_keys.FETCH, api_keys.FETCH_SNAPSHOT) else []
        return [*sorted(fields_to_match(tree), key=lambda field: field[0]), *places]

    def _adapted(self, header: Request, body: Message, captured: Captured) -> bytes:
        """Return a captured response with this connection's correlation id and the other side's own ids."""
        key, version = header.api_key, header.api_version
        _, captured_request = captured.read_request()
        self._learn(captured_request, body, key, version)
        response = captured.read_response()
        if isinstance(response, messages.EnvelopeResponse) and response.response_data:
            assert isinstance(body, messages.EnvelopeRequest)
            inner = parse_request(bytes(body.request_data))
            response.response_data = inner.correlation_id.to_bytes(4, signed=True) + bytes(response.response_data)[4:]
        else:
            tree = self._renaming.bind_tree(to_json(response, version), self._rules.response(key, version))
            response = from_json(messages.response(key), tree, version)
            translate_message(response, lambda _host, _port: self.address)
        return self._written(response, header)

    def _nothing_new(self, header: Request) -> bytes:
        response = self._last_fetch[header.api_version].read_response()
        assert isinstance(response, messages.FetchResponse)
        for partition in (partition for topic in response.responses for partition in topic.partitions):
            partition.records = b""
        translate_message(response, lambda _host, _port: self.address)
        return self._written(response, header)

    def _written(self, response: Message, header: Request) -> bytes:
        header_version = messages.response_header_version(header.api_key, header.api_version)
        return write_response(response.write(header.api_version), header.correlation_id, header_version)

    def _learn(self, captured: Message, live: Message, key: int, version: int) -> None:
        """Pair the ids at the same places of two requests."""
        if key == api_keys.ENVELOPE:
            return
        node = self._rules.request(key, version)
        for kind, *pair in _ids(to_json(captured, version), to_json(live, version), node):
            self._renaming.learn(kind, *pair)


def _versions_of_itself(captured: Captured) -> ApiVersion | None:
    response = captured.read_response()
    assert isinstance(response, ApiVersionsResponse)
    return next((each for each in response.api_keys if each.api_key == api_keys.API_VERSIONS), None)


def _has_records(captured: Captured) -> bool:
    """Return True if a Fetch response has records or an error."""
    response = captured.read_response()
    assert isinstance(response, messages.FetchResponse)
    partitions = [partition for topic in response.responses for partition in topic.partitions]
    return any(partition.records or partition.error_code for partition in partitions)


def _ids(captured: Json, live: Json, node: RuleNode | None) -> Iterator[tuple[str, Id, Id]]:
    if node is None:
        return
    if isinstance(captured, dict) and isinstance(live, dict):
        for field, value in captured.items():
            if field in live:
                yield from _ids(value, live[field], node.fields.get(field))
    elif isinstance(captured, list) and isinstance(live, list):
        for pair in zip(captured, live, strict=False):
            yield from _ids(*pair, node)
    elif node.rule.kind in ONE_TO_ONE and isinstance(captured, Id) and isinstance(live, Id):
        yield node.rule.kind, captured, live


def _places(tree: Json, path: str = "") -> list[tuple[str, Json]]:
    found: list[tuple[str, Json]] = []
    if isinstance(tree, dict):
        for field, value in tree.items():
            if field in _PLACES:
                found.append((f"{path}.{field}", value))
            else:
                found += _places(value, f"{path}.{field}")
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            found += _places(value, f"{path}[{index}]")
    return found

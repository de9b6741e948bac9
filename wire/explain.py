"""Annotated bytes: each run with its offset, field, type and value, up to the end or to the first malformed byte.

Based on `schema_reading`, so it is independent of the generated codec. Records inside a body (a Fetch response of the
metadata topic, for example) are decoded too: batch headers, records and the fields of framed metadata records.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from mockraft.wire import error_codes, explain_batches, schema_reading, uuids
from mockraft.wire.errors import WireError
from mockraft.wire.overlay import in_use
from mockraft.wire.redaction.masks import HIDDEN, asterisks
from mockraft.wire.redaction.messages import may_hold_secrets
from mockraft.wire.redaction.secret_fields import is_secret_path, is_sensitive
from mockraft.wire.schema_reading import Span, broken

_SHOWN_TEXT_MAX = 200
# Times between these are shown as dates: milliseconds from 2001 to 2100.
_DATED_MS = range(978_307_200_000, 4_102_444_800_000)


class Line(NamedTuple):
    """A run of bytes. `path` uses Kafka's camelCase names with array indexes; `value` is for display."""

    offset: int
    length: int
    path: str
    type: str
    value: str
    about: str


TRAILING = "trailing"
"""The path of bytes behind a request's body: Kafka does not read them, and answers."""


class Explanation(NamedTuple):
    """Everything that could be read, in byte order, and the error that stopped reading, if any."""

    title: str
    data: bytes
    lines: tuple[Line, ...]
    error: WireError | None

    def without_secrets(self) -> "Explanation":
        """Return the explanation with `[hidden]` for secrets, and asterisks for their bytes and all that is unread.

        A config is known by the name before its value.
        """
        data, lines, name = bytearray(self.data), [], ""
        for line in self.lines:
            parent, _, field = line.path.rpartition(".")
            if field == "name" and line.type == "string":
                name = f"{parent}.{json.loads(line.value)}"
            is_config = field == "value" and line.type == "string" and name.startswith(f"{parent}.")
            is_unread = field == TRAILING and self._may_hold_secrets
            if is_unread or (is_sensitive(name.removeprefix(f"{parent}.")) if is_config else is_secret_path(field)):
                data[line.offset : line.offset + line.length] = asterisks(bytes(line.length))
                line = line._replace(value=HIDDEN)
            lines.append(line)
        if self.error is not None and self._may_hold_secrets:
            data[self.read_bytes :] = asterisks(self.data[self.read_bytes :])
        return self._replace(data=bytes(data), lines=tuple(lines))

    @property
    def _may_hold_secrets(self) -> bool:
        try:
            return may_hold_secrets(in_use().by_name(self.title.partition(" ")[0]))
        except WireError:
            return True

    @property
    def read_bytes(self) -> int:
        """Offset of the end of the last line."""
        return max((line.offset + line.length for line in self.lines), default=0)


def explain_body(name: str, version: int, data: bytes) -> Explanation:
    """Explain a body without header. Raises WireError only if there is no such message or version."""
    schema_reading.describe(name, version)
    return _explain(f"{name} v{version}", data, lambda spans: _read_body(name, version, data, 0, spans))


def explain_request(data: bytes) -> Explanation:
    """Explain a request frame: size, header, body. The header determines the message."""
    return _explain("request frame", data, lambda spans: _read_request(data, spans))


def explain_response(api_key: int, version: int, data: bytes) -> Explanation:
    """Explain a response frame: size, header, body. API and version are those of the request."""
    name = in_use().responses.get(api_key, "")
    schema_reading.describe(name, version)
    return _explain(f"{name} v{version} frame", data, lambda spans: _read_response(api_key, version, data, spans))


def explain_framed_record(data: bytes) -> Explanation:
    """Explain the value of a metadata record in the log: frame version, type, version, body."""
    return _explain(
        "framed metadata record", data, lambda spans: explain_batches.read_framed_record(data, 0, "", spans)
    )


def explain_batches_of(data: bytes) -> Explanation:
    """Explain record batches from a log segment, a snapshot or a Fetch response."""
    return _explain("record batches", data, lambda spans: explain_batches.read_batches(data, 0, len(data), "", spans))


def _explain(title: str, data: bytes, read: Callable[[list[Span]], str | None]) -> Explanation:
    spans: list[Span] = []
    error = None
    try:
        title = read(spans) or title
    except WireError as broken:
        error = broken
    lines = [_line(span) for span in explain_batches.opened(data, _with_envelopes_opened(data, spans))]
    return Explanation(title, data, tuple(lines), error)


def _read_body(name: str, version: int, data: bytes, offset: int, spans: list[Span]) -> None:
    schema_reading.read(name, version, data, spans, offset)


def _read_size(data: bytes, spans: list[Span]) -> int:
    """Read the frame size at the start."""
    if len(data) < 4:
        raise broken(0, "size", f"a frame starts with 4 bytes of size, there are {len(data)}")
    size = int.from_bytes(data[:4], signed=True)
    spans.append(Span(0, 4, "size", "int32", size, None))
    return size


def _check_size(size: int, data: bytes) -> None:
    # Last, so that a frame cut short is still shown as far as it goes.
    if size != len(data) - 4:
        raise broken(0, "size", f"says {size} bytes, {len(data) - 4} follow")


def _read_header(name: str, version: int, data: bytes, offset: int, spans: list[Span]) -> int:
    found: list[Span] = []
    try:
        _, end = schema_reading.read_from(name, version, data, found, offset)
    except WireError as error:
        raise broken(error.offset or offset, f"header.{error.field or ''}", error.what) from None
    finally:
        spans += (span._replace(path=f"header.{span.path}") for span in found)
    return end


def _read_request(data: bytes, spans: list[Span]) -> str:
    size = _read_size(data, spans)
    title = _read_request_at(4, data, spans)
    _check_size(size, data)
    return f"{title} frame"


def _read_request_at(offset: int, data: bytes, spans: list[Span]) -> str:
    """Read header and body of a request, from `offset` to the end; return its name and version."""
    if len(data) < offset + 4:
        raise broken(offset, "header", "a request starts with its API key and version; the bytes end before")
    api_key, version = (int.from_bytes(data[at : at + 2], signed=True) for at in (offset, offset + 2))
    try:
        header_version = in_use().request_header_version(api_key, version)
        name = in_use().requests[api_key]
        schema_reading.describe(name, version)
    except WireError as error:
        raise broken(offset, "header", error.what) from None
    end = _read_header("RequestHeader", header_version, data, offset, spans)
    _, end = schema_reading.read_from(name, version, data, spans, end)
    if end < len(data):
        spans.append(Span(end, len(data) - end, TRAILING, "bytes", data[end:], None))
    return f"{name} v{version}"


def _read_response(api_key: int, version: int, data: bytes, spans: list[Span]) -> None:
    size = _read_size(data, spans)
    end = _read_header("ResponseHeader", in_use().response_header_version(api_key, version), data, 4, spans)
    _read_body(in_use().responses[api_key], version, data, end, spans)
    _check_size(size, data)


def _with_envelopes_opened(data: bytes, spans: list[Span]) -> Iterator[Span]:
    """Add the spans of the request that an Envelope forwards: its header and body, without a size."""
    for span in spans:
        found: list[Span] = []
        if span.path == "requestData" and isinstance(span.value, bytes):
            end = span.offset + span.length
            with suppress(WireError):
                _read_request_at(end - len(span.value), data[:end], found)
        if found and isinstance(span.value, bytes) and found[-1].offset + found[-1].length == end:
            yield span._replace(length=span.length - len(span.value))
            yield from (inner._replace(path=f"requestData.{inner.path}") for inner in found)
        else:
            yield span


def _line(span: Span) -> Line:
    about = span.field.about if span.field is not None else ""
    return Line(span.offset, span.length, span.path, span.type, _value_text(span), about)


def _value_text(span: Span) -> str:
    """Return a span's value for display: names of error codes and API keys, dates, counts."""
    value = span.value
    name = span.path.rpartition(".")[2].lower()
    if span.type.endswith("array"):
        return "null" if value is None else _count(value, "element")
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            text = json.dumps(value, ensure_ascii=False)
            return text if len(text) <= _SHOWN_TEXT_MAX else f"{text[:_SHOWN_TEXT_MAX]}… ({len(value)} characters)"
        case bytes():
            return _bytes_text(span.type, value)
        case tuple():
            return f"tag {value[0]}, {_count(value[1], 'byte')}"
        case int() if span.type == "struct marker":
            return "null" if value < 0 else "present"
        case int() if span.type == "varint length":
            return "null" if value < 0 else _count(value, "byte")
        case int() if span.type == "tag count":
            return _count(value, "tagged field")
        case int() if name.endswith("errorcode"):
            return f"{value} {error_codes.name(value)}"
        case int() if name in ("apikey", "requestapikey"):
            return f"{value} {in_use().api_name(value)}"
        case int() if name == "recordtype":
            return f"{value} {in_use().record_types.get(value, 'unknown')}"
        case int() if name.endswith(("timestamp", "timestampms", "timems")) and value in _DATED_MS:
            return f"{value} {datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + "Z"
    return str(value)


def _bytes_text(kind: str, value: bytes) -> str:
    if kind == "uuid":
        return uuids.text_of(value)
    return _count(len(value), "byte")


def _count(number: object, what: str) -> str:
    return f"no {what}s" if number == 0 else f"1 {what}" if number == 1 else f"{number} {what}s"

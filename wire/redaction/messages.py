"""Copies of messages, frames, record batches and JSON without secrets.

`masked` returns a copy of a message in which each secret is replaced by asterisks of the same length, so that the copy
is encoded to as many bytes and can be decoded again. Messages inside messages are masked too: the request in an
Envelope, metadata records in a Fetch response. Bytes that cannot be read, although they may hold a secret, are
asterisks as a whole.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from mockraft.wire import messages, metadata_log_frame, record_batch
from mockraft.wire.connection import parse_request
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message, Struct, field_names
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.envelope_response import EnvelopeResponse
from mockraft.wire.messages.response_header import ResponseHeader
from mockraft.wire.record_batch import crc32c
from mockraft.wire.redaction.masks import HIDDEN, asterisks, mask
from mockraft.wire.redaction.secret_fields import (
    CONFIGS,
    FIELDS,
    RECORD_PREFIXES,
    is_secret_path,
    is_sensitive,
    may_hold_records,
    secret_fields,
)
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json
    from mockraft.wire.message import MessageLookup
    from mockraft.wire.schema_files import StructSpec

S = TypeVar("S", bound=Struct)

_ENCLOSING: Final = frozenset(("EnvelopeRequest", "EnvelopeResponse", "FetchResponse", "FetchSnapshotResponse"))
"""Messages with other messages or metadata records inside."""

_CRC = slice(17, 21)
_FIRST_PRINTABLE = 0x20


def masked(message: S, lookup: MessageLookup = messages) -> S:
    """Return a copy of a message or struct with asterisks in place of secrets; itself if its class can have none.

    `lookup` is for messages inside the message. The response inside an EnvelopeResponse is masked as a whole; see
    `masked_response`.
    """
    if isinstance(message, Message) and not may_hold_secrets(type(message)):
        return message
    return _masked(message, lookup)


def may_hold_secrets(cls: type[Message]) -> bool:
    """Return True if messages of a class can have a secret."""
    kind: type = cls
    return _may_hold_secrets(kind)


def body_may_hold_secrets(cls: type[Message], body: bytes) -> bool:
    """Return True if this body may have a secret: `may_hold_secrets`, without Fetch responses that have no such record.

    It costs a search of the bytes, and spares most Fetch responses the decoding.
    """
    return may_hold_secrets(cls) and (cls.__name__ != "FetchResponse" or may_hold_records(body))


def without_secrets(tree: Json) -> Json:
    """Return JSON of messages, or of parts of them, with `[hidden]` for secrets, by the names of the fields."""
    if isinstance(tree, Mapping):
        return {name: HIDDEN if _is_secret(name, each, tree) else without_secrets(each) for name, each in tree.items()}
    return [without_secrets(each) for each in tree] if isinstance(tree, list) else tree


def masked_request(frame: bytes, lookup: MessageLookup = messages) -> bytes:
    """Return a request's header and body with asterisks in place of secrets, as long as before."""
    try:
        request = parse_request(frame, lookup)
        cls = lookup.request(request.api_key)
    except WireError:
        return frame if _is_plain(frame, lookup) else asterisks(frame)
    body = _masked_body(cls, request.api_version, frame[request.body_offset :], lookup)
    return frame[: request.body_offset] + body


def masked_response(
    frame: bytes, api_key: int, api_version: int, lookup: MessageLookup = messages, request_frame: bytes | None = None
) -> bytes:
    """Return a response's header and body with asterisks in place of secrets, as long as before.

    The response inside an EnvelopeResponse is decoded if `request_frame` has the Envelope, else masked as a whole.
    """
    try:
        cls = lookup.response(api_key)
        if not may_hold_secrets(cls):
            return frame
        _, offset = ResponseHeader.read_from(frame, lookup.response_header_version(api_key, api_version), 0)
    except WireError:
        return asterisks(frame)
    body = frame[offset:]
    if cls.__name__ == "EnvelopeResponse" and request_frame is not None:
        return frame[:offset] + _masked_enveloped(body, api_version, request_frame, lookup)
    return frame[:offset] + _masked_body(cls, api_version, body, lookup)


def masked_batches(data: bytes) -> bytes:
    """Return record batches of the metadata log with asterisks in place of the secrets of records.

    A partial batch at the end, and everything from an unreadable batch on, is masked as a whole.
    """
    if not may_hold_records(data):
        return data
    parts: list[bytes] = []
    end = 0
    try:
        for header in record_batch.read_headers(data, allow_partial_tail=True):
            batch = data[header.position : header.end]
            parts.append(batch if header.is_control else _masked_batch(batch))
            end = header.end
    except WireError:
        pass
    return b"".join((*parts, asterisks(data[end:])))


@cache
def _may_hold_secrets(cls: type) -> bool:
    from mockraft.wire import schema_files  # first needed when something is shown

    return cls.__name__ in _ENCLOSING or _is_listed(schema_files.schema_of(cls).root)


def _masked(struct: S, lookup: MessageLookup) -> S:
    found = copy(struct)
    secret = secret_fields(struct)
    for name in field_names(type(struct)):
        value = getattr(struct, name)
        if name in secret:
            setattr(found, name, mask(value))
        elif isinstance(value, Struct):
            setattr(found, name, _masked(value, lookup))
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            setattr(found, name, [_masked(each, lookup) for each in value])
    match type(struct).__name__:
        case "EnvelopeRequest":
            _change(found, "request_data", lambda data: masked_request(data, lookup))
        case "EnvelopeResponse":
            _change(found, "response_data", mask)
        case "FetchableTopicResponse" if _is_metadata(struct):
            for partition in found.partitions:  # type: ignore[attr-defined]  # as the name says
                _change(partition, "records", masked_batches)
        case "PartitionSnapshot":
            # A chunk after the first may begin inside a record.
            of = masked_batches if getattr(struct, "position", 1) == 0 else mask
            _change(found, "unaligned_records", of)
    return found


def _is_secret(name: str, value: Json, tree: Mapping[str, Json]) -> bool:
    if not value or not isinstance(value, str):
        return False
    if name == "value":
        config = tree.get("name")
        return isinstance(config, str) and is_sensitive(config)
    if name in ("requestData", "responseData"):
        return True
    if name in ("records", "unalignedRecords"):
        return _may_be_records(value)
    return is_secret_path(name)


def _may_be_records(text: str) -> bool:
    try:
        return may_hold_records(base64.b64decode(text))
    except ValueError:
        return True


def _change(struct: Struct, name: str, change: Callable[[bytes], object]) -> None:
    """Replace a field of bytes, unless it is null or empty."""
    if data := getattr(struct, name, None):
        setattr(struct, name, change(data))


def _is_listed(spec: StructSpec) -> bool:
    fields = (field.struct for field in spec.fields if field.struct is not None)
    return spec.name in FIELDS or spec.name in CONFIGS or any(map(_is_listed, fields))


def _is_metadata(topic: Struct) -> bool:
    return getattr(topic, "topic_id", None) == CLUSTER_METADATA_ID or getattr(topic, "topic", None) == CLUSTER_METADATA


def _is_plain(frame: bytes, lookup: MessageLookup) -> bool:
    """Return True if a request without a readable header is of an API without secrets, and not a bare SASL token."""
    api_key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
    try:
        return len(frame) >= 4 and version < _FIRST_PRINTABLE and not may_hold_secrets(lookup.request(api_key))
    except WireError:
        return False


def _masked_body(cls: type[Message], version: int, body: bytes, lookup: MessageLookup) -> bytes:
    if not body_may_hold_secrets(cls, body):
        return body
    try:
        message = cls.read(body, version)
        if message.write(version) == body:
            return _same_size(masked(message, lookup).write(version), body)
    except WireError:
        pass
    # Bytes that Kafka's own writer would not have written are not searched for their secrets.
    return asterisks(body)


def _masked_enveloped(body: bytes, version: int, request_frame: bytes, lookup: MessageLookup) -> bytes:
    try:
        envelope = parse_request(request_frame, lookup)
        asked = EnvelopeRequest.read(request_frame[envelope.body_offset :], envelope.api_version)
        inner = parse_request(asked.request_data, lookup)
        response = EnvelopeResponse.read(body, version)
        if not response.response_data:
            return body
        response.response_data = masked_response(response.response_data, inner.api_key, inner.api_version, lookup)
        return _same_size(response.write(version), body)
    except WireError:
        return asterisks(body)


def _same_size(found: bytes, body: bytes) -> bytes:
    return found if len(found) == len(body) else asterisks(body)


def _masked_batch(batch: bytes) -> bytes:
    """Replace the values of records where they are, and compute the CRC again."""
    data = bytearray(batch)
    start = record_batch.HEADER_BYTES
    for _, value in record_batch.read_batch(batch, record_batch.read_header(batch, 0)).records:
        if value:
            start = data.index(value, start)
            data[start : start + len(value)] = _masked_record(value)
            start += len(value)
    data[_CRC] = crc32c(data[_CRC.stop :]).to_bytes(4)
    return bytes(data)


def _masked_record(value: bytes) -> bytes:
    if not value.startswith(RECORD_PREFIXES):
        return value
    try:
        record, version = metadata_log_frame.decode(value)
        return _same_size(metadata_log_frame.encode(masked(record), version), value)
    except WireError:
        return asterisks(value)

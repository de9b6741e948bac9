"""Judge one frame: decode header and body with the generated codec, write them again, compare byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.decoding.json_text import json_text
from mockraft.spark_replay.decoding.layout import TooManyValuesError, check_values
from mockraft.wire import api_keys
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message, Struct, with_constructor
from mockraft.wire.overlay import Overlay
from mockraft.wire.redaction.messages import body_may_hold_secrets, masked
from mockraft.wire.schema_files import StructSpec, schema_of

REMEMBERED_BODY_BYTES_MAX = 4096
"""Longest body that is cached: shorter ones repeat."""

REMEMBERED_BYTES_MAX = 16 << 20
"""Approximate upper bound for all cached bodies, so that a peer cannot fill the memory."""


LARGE_BODY_BYTES = 1 << 20
"""Body size from which its values are counted before decoding."""

VALUES_MAX = 1_000_000
"""Maximum number of elements and values of a large body; more would take gigabytes as objects."""


MakeBody = Callable[[Message, int, bytes], object]
"""A function from a message, its version and the bytes it was read from to what its row gets: JSON, or a message."""


def full_json(message: Message, version: int, block: bytes) -> str:
    """Write a message as JSON."""
    return json_text(message, version)


def json_without_secrets(message: Message, version: int, block: bytes) -> str:
    """Write a message as JSON with `[hidden]` for secrets."""
    return json_text(without_secrets(message, block), version)


def without_secrets(message: Message, block: bytes) -> Message:
    """Return a message, read from these bytes, with masks for secrets."""
    return masked(message, in_use()) if body_may_hold_secrets(type(message), block) else message


class FrameVerdict(NamedTuple):
    """The result for one frame, with the columns of `schemas.MESSAGES`. Offsets count from the frame's start.

    `roundtrip` is None if nothing could be decoded; `first_diff_offset` is the first byte that was written differently.
    """

    decode_status: str
    error_offset: int | None = None
    error: str | None = None
    roundtrip: bool | None = None
    first_diff_offset: int | None = None
    unknown_tags: tuple[int, ...] | None = None
    body: object = None


class _Body(NamedTuple):
    """A decoded body: its bytes written again, its unknown tags and what its row gets.

    `refusal` is the reason why it cannot be written (`written` is None), or why it is not all of the bytes.
    """

    written: bytes | None
    refusal: str | None
    unknown_tags: tuple[int, ...]
    made: object


TRUNCATED = FrameVerdict("truncated")
"""The verdict on a frame cut short by the capture."""

OPAQUE = FrameVerdict("opaque")
"""The verdict on bytes that are not Kafka's protocol."""


def judge_frame(
    data: bytes, api_key: int, api_version: int, is_response: bool, make_body: MakeBody | None
) -> FrameVerdict:
    """Decode a frame (without its four-byte length) of an API and version, and write it again. Never raises.

    An ApiVersions response is read as version 0 if its request's version does not fit, as clients do (KIP-511).
    """
    overlay = in_use()
    name = (overlay.responses if is_response else overlay.requests).get(api_key)
    if name is None:
        return FrameVerdict("unknown_api")
    cls = overlay.by_name(name)
    if cls.min_version <= api_version <= cls.max_version:
        found = judge_as(data, overlay, cls, api_version, is_response, make_body)
    else:
        found = FrameVerdict("unknown_version", error=f"{name} has versions {cls.min_version} to {cls.max_version}")
    if found.decode_status != "ok" and is_response and api_key == api_keys.API_VERSIONS and api_version != 0:
        older = judge_as(data, overlay, cls, 0, is_response, make_body)
        return older if older.decode_status == "ok" else found
    return found


def header_version(overlay: Overlay, api_key: int, api_version: int, is_response: bool) -> int:
    """Return the header version of a frame. Raises WireError for an unknown API."""
    which = overlay.response_header_version if is_response else overlay.request_header_version
    return which(api_key, api_version)


def judge_as(
    data: bytes, overlay: Overlay, cls: type[Message], version: int, is_response: bool, make_body: MakeBody | None
) -> FrameVerdict:
    """Return the verdict on a frame of a message class, in a version that the class has."""
    version_of_header = header_version(overlay, cls.api_key, version, is_response)
    header_class = overlay.by_name("ResponseHeader" if is_response else "RequestHeader")
    at = 0
    try:
        header, at = header_class.read_from(data, version_of_header, 0)
        block = data[at:]
        read = _body if len(block) > REMEMBERED_BODY_BYTES_MAX else _remembered
        body = read(cls, version, block, make_body)
    except WireError as error:
        # The offset in the frame. A wrong length can put the reader beyond the end.
        offset = None if error.offset is None else min(error.offset + at, len(data))
        place = "" if error.field is None else f" (field {error.field})"
        return FrameVerdict("error", offset, f"{error.what}{place}")
    tags = (*(tag for tag, _ in header.unknown_tagged_fields), *body.unknown_tags)
    if body.written is None:
        return FrameVerdict("ok", None, body.refusal, False, None, tags, body.made)
    written = header.write(version_of_header) + body.written
    if written == data:
        return FrameVerdict("ok", None, None, True, None, tags, body.made)
    return FrameVerdict("ok", None, body.refusal, False, first_difference(written, data), tags, body.made)


def _body(cls: type[Message], version: int, block: bytes, make_body: MakeBody | None) -> _Body:
    if len(block) >= LARGE_BODY_BYTES:
        _check_large(cls, version, block)
    message, end = _read(cls, version, block)
    tags: list[int] = []
    constructed: type = with_constructor(cls)
    _collector(constructed, version)(message, tags)
    made = make_body(message, version, block) if make_body else None
    try:
        written = message.write(version)
    except WireError as error:
        return _Body(None, str(error), tuple(tags), made)
    refusal = None if end == len(block) else f"{len(block) - end} bytes follow the request; Kafka ignores them"
    return _Body(written, refusal, tuple(tags), made)


def _read(cls: type[Message], version: int, block: bytes) -> tuple[Message, int]:
    """Return a body and its end. Bytes may follow a request, as librdkafka before 1.0 sent them."""
    if schema_of(cls).kind == "request":
        return cls.read_from(block, version, 0)
    return cls.read(block, version), len(block)


def _check_large(cls: type[Message], version: int, block: bytes) -> None:
    try:
        check_values(cls, version, block, VALUES_MAX)
    except TooManyValuesError:
        raise
    except WireError:
        # The codec itself raises the error with the details.
        return


def _remembered(cls: type[Message], version: int, block: bytes, make_body: MakeBody | None) -> _Body:
    """Call `_body` once for equal bodies, as long as they are cached."""
    key = (cls, version, block, make_body)
    found = _memory.bodies.get(key)
    if found is None:
        found = _body(cls, version, block, make_body)
        _memory.keep(key, found)
    return found


class _Memory:
    """A cache of decoded bodies by their bytes; cleared when full, since it then holds bodies that do not repeat."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[type[Message], int, bytes, MakeBody | None], _Body] = {}
        self.size = 0

    def keep(self, key: tuple[type[Message], int, bytes, MakeBody | None], body: _Body) -> None:
        made = len(body.made) if isinstance(body.made, str) else 20 * len(key[2])
        size = 500 + 2 * len(key[2]) + made
        if self.size + size > REMEMBERED_BYTES_MAX:
            self.bodies.clear()
            self.size = 0
        if size <= REMEMBERED_BYTES_MAX:
            self.bodies[key] = body
            self.size += size


_memory = _Memory()


def first_difference(written: bytes, data: bytes) -> int:
    """Return the first offset at which two different byte strings differ; the shorter length if one is a prefix."""
    size = min(len(written), len(data))
    unlike = np.frombuffer(written, np.uint8, size) != np.frombuffer(data, np.uint8, size)
    at = int(unlike.argmax()) if size else 0
    return at if size and unlike[at] else size


Collector = Callable[[Struct, list[int]], None]


@cache
def _collector(cls: type, version: int) -> Collector:
    """Return a function that appends the unknown tags of a message and its structs, in field order."""
    return _struct_collector(schema_of(cls).root, version)


def _struct_collector(spec: StructSpec, version: int) -> Collector:
    inner = [
        (field.attribute, field.is_array, _struct_collector(field.struct, version))
        for field in spec.fields
        if field.struct is not None and field.versions.covers(version)
    ]

    def collect(struct: Struct, tags: list[int]) -> None:
        for attribute, is_array, collect_inner in inner:
            found = getattr(struct, attribute)
            if found is None:
                continue
            for value in found if is_array else (found,):
                collect_inner(value, tags)
        if struct.unknown_tagged_fields:
            tags += [tag for tag, _ in struct.unknown_tagged_fields]

    return collect

"""What one frame says: header and body read with the generated codec, written again, compared byte for byte.

This is the plain path, one frame at a time. `shapes` proves many frames at once what this would say of each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mockraft.spark_replay.decoding.layout import TooManyValuesError, check_values
from mockraft.wire import api_keys
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import to_json
from mockraft.wire.message import Message, with_constructor
from mockraft.wire.overlay import Overlay, in_use
from mockraft.wire.schema_files import StructSpec, schema_of

REMEMBERED_BODY_BYTES_MAX = 4096
"""Longest body that is remembered: shorter ones repeat."""

REMEMBERED_BYTES_MAX = 16 << 20
"""What all remembered bodies take at most, about: what a peer sends must not fill the memory."""


LARGE_BODY_BYTES = 1 << 20
"""From how many bytes on the values of a body are counted before it is read."""

VALUES_MAX = 1_000_000
"""Most elements and values of a large body that is read; more of them would be gigabytes of objects."""


class Verdict(NamedTuple):
    """What became of a frame; the columns of `schemas.MESSAGES` by those names. Offsets count from the frame's start.

    `roundtrip` is None where nothing could be read; `first_diff_offset` is the first byte that was written differently.
    """

    decode_status: str
    error_offset: int | None = None
    error: str | None = None
    roundtrip: bool | None = None
    first_diff_offset: int | None = None
    unknown_tags: tuple[int, ...] | None = None
    body: str | None = None


class _Body(NamedTuple):
    """A body that was read: what it is written as, or why it cannot be, its unknown tags and its JSON."""

    written: bytes
    refusal: str | None
    unknown_tags: tuple[int, ...]
    json: str | None


TRUNCATED = Verdict("truncated")
"""Of a frame that the capture cut short."""

OPAQUE = Verdict("opaque")
"""Of bytes that are not Kafka's protocol."""


def judge_frame(data: bytes, api_key: int, api_version: int, is_response: bool, with_json: bool) -> Verdict:
    """Read a frame (without its four bytes of length) of an API and version, and write it again. Never raises.

    An ApiVersions response is read as version 0 where its request's version does not read it, as clients do (KIP-511).
    """
    overlay = in_use()
    name = (overlay.responses if is_response else overlay.requests).get(api_key)
    if name is None:
        return Verdict("unknown_api")
    cls = overlay.by_name(name)
    versions = range(cls.min_version, cls.max_version + 1)
    falls_back = is_response and api_key == api_keys.API_VERSIONS and api_version != 0
    if api_version not in versions:
        if falls_back:
            found = judge_as(data, overlay, cls, 0, is_response, with_json)
            if found.decode_status == "ok":
                return found
        return Verdict("unknown_version", error=f"{name} has versions {cls.min_version} to {cls.max_version}")
    found = judge_as(data, overlay, cls, api_version, is_response, with_json)
    if falls_back and found.decode_status == "error":
        older = judge_as(data, overlay, cls, 0, is_response, with_json)
        return older if older.decode_status == "ok" else found
    return found


def header_version(overlay: Overlay, api_key: int, api_version: int, is_response: bool) -> int:
    """The version of the header before a frame's body. WireError for an unknown API."""
    which = overlay.response_header_version if is_response else overlay.request_header_version
    return which(api_key, api_version)


def judge_as(
    data: bytes, overlay: Overlay, cls: type[Message], version: int, is_response: bool, with_json: bool
) -> Verdict:
    """The verdict on a frame as one of a class and a version that it has."""
    before = header_version(overlay, cls.api_key, version, is_response)
    header_class = overlay.by_name("ResponseHeader" if is_response else "RequestHeader")
    try:
        header, at = header_class.read_from(data, before, 0)
        block = data[at:]
        read = _body if len(block) > REMEMBERED_BODY_BYTES_MAX else _remembered
        body = read(cls, version, block, with_json)
    except WireError as error:
        return _refused(error, data, cls, version, before, header_class)
    written = header.write(before) + body.written
    tags = (*(tag for tag, _ in header.unknown_tagged_fields), *body.unknown_tags)
    if body.refusal is not None:
        return Verdict("ok", None, body.refusal, False, None, tags, body.json)
    if written == data:
        return Verdict("ok", None, None, True, None, tags, body.json)
    return Verdict("ok", None, None, False, first_difference(written, data), tags, body.json)


def _refused(
    error: WireError, data: bytes, cls: type[Message], version: int, before: int, header_class: type[Message]
) -> Verdict:
    """The verdict of an error, with an offset in the frame: the body was read without what is before it."""
    try:
        _, at = header_class.read_from(data, before, 0)
    except WireError:
        at = 0
    # A reader that a length led astray is beyond the end.
    offset = None if error.offset is None else min(error.offset + at, len(data))
    place = "" if error.field is None else f" (field {error.field})"
    return Verdict("error", offset, f"{error.what}{place}")


def _body(cls: type[Message], version: int, block: bytes, with_json: bool) -> _Body:
    if len(block) >= LARGE_BODY_BYTES:
        _check_large(cls, version, block)
    message = cls.read(block, version)
    tags: list[int] = []
    _tags_of(cls, version)(message, tags)
    tree = json.dumps(to_json(message, version), separators=(",", ":"), ensure_ascii=False) if with_json else None
    try:
        return _Body(message.write(version), None, tuple(tags), tree)
    except WireError as error:
        return _Body(b"", str(error), tuple(tags), tree)


def _check_large(cls: type[Message], version: int, block: bytes) -> None:
    try:
        check_values(cls, version, block, VALUES_MAX)
    except TooManyValuesError:
        raise
    except WireError:
        # What is wrong is said by the codec.
        return


def _remembered(cls: type[Message], version: int, block: bytes, with_json: bool) -> _Body:
    """As `_body`, which it calls once for equal bodies, as far as they are remembered."""
    key = (cls, version, block, with_json)
    found = _memory.bodies.get(key)
    if found is None:
        found = _body(cls, version, block, with_json)
        _memory.keep(key, found)
    return found


class _Memory:
    """Bodies by what they were read from; emptied when full, for then it holds what does not come again."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[type[Message], int, bytes, bool], _Body] = {}
        self.size = 0

    def keep(self, key: tuple[type[Message], int, bytes, bool], body: _Body) -> None:
        size = 500 + 2 * len(key[2]) + len(body.json or "")
        if self.size + size > REMEMBERED_BYTES_MAX:
            self.bodies.clear()
            self.size = 0
        if size <= REMEMBERED_BYTES_MAX:
            self.bodies[key] = body
            self.size += size


_memory = _Memory()


def first_difference(written: bytes, data: bytes) -> int:
    """The first offset at which two unlike texts differ; the shorter one's length where it starts the other."""
    size = min(len(written), len(data))
    unlike = np.frombuffer(written, np.uint8, size) != np.frombuffer(data, np.uint8, size)
    at = int(unlike.argmax()) if size else 0
    return at if size and unlike[at] else size


def _tags_of(cls: type[Message], version: int) -> Callable[[Any, list[int]], None]:
    constructed: type = with_constructor(cls)
    return _collector(constructed, version)


@cache
def _collector(cls: type, version: int) -> Callable[[Any, list[int]], None]:
    """What appends the unknown tags of a message, and of every struct in it, in the order of its fields."""
    spec = schema_of(cls)
    return _struct_collector(spec.root, version)


def _struct_collector(spec: StructSpec, version: int) -> Callable[[Any, list[int]], None]:
    inner = [
        (field.attribute, field.is_array, _struct_collector(field.struct, version))
        for field in spec.fields
        if field.struct is not None and field.versions.covers(version)
    ]

    def collect(struct: Any, tags: list[int]) -> None:
        for attribute, is_array, collect_inner in inner:
            found = getattr(struct, attribute)
            if found is None:
                continue
            for value in found if is_array else (found,):
                collect_inner(value, tags)
        if struct.unknown_tagged_fields:
            tags += [tag for tag, _ in struct.unknown_tagged_fields]

    return collect

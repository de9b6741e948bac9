"""Framing of one metadata record in the value of a log record: frame version, type, version, body.

Source: Kafka's MetadataRecordSerde / AbstractApiMessageSerde. The three numbers are unsigned varints and the frame
version is 1. Control records (LeaderChange, KRaftVersion, …) have no such frame; see `record_batch.encode_control`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mockraft.wire import records
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.primitives import uvarint, write_uvarint

FRAME_VERSION = 1


class RecordAt(NamedTuple):
    """A metadata record and the version in which it is, or will be, written."""

    record: Any
    version: int


def encode(record: Message, version: int) -> bytes:
    """Write `record` in `version` with its frame. Raises WireError if that version cannot express it."""
    return prefix(record.api_key, version) + record.write(version)


def decode(value: bytes, by_type: Callable[[int], type[Message]] | None = None) -> RecordAt:
    """Read one framed record that fills `value`. Raises WireError for an unknown frame, type or version and bad bytes.

    `by_type` returns the class of a record type, for example an Overlay's.
    """
    try:
        frame_version, offset = uvarint(value, 0)
        if frame_version != FRAME_VERSION:
            raise WireError(f"metadata record: frame version {frame_version}, expected {FRAME_VERSION}")
        record_type, offset = uvarint(value, offset)
        version, offset = uvarint(value, offset)
    except IndexError:
        raise WireError(f"metadata record: ends inside its frame, at byte {len(value)}") from None
    record_class = (by_type or _class_of)(record_type)
    if not record_class.min_version <= version <= record_class.max_version:
        raise WireError(
            f"metadata record: {record_class.__name__} has no version {version}"
            f" (known: {record_class.min_version} to {record_class.max_version})"
        )
    record, end = record_class.read_from(value, version, offset)
    if end != len(value):
        raise WireError(f"metadata record: {len(value) - end} bytes after the {record_class.__name__}")
    return RecordAt(record, version)


_PREFIXES: dict[tuple[int, int], bytes] = {}
_CLASSES: dict[int, type[Message]] = {}


def prefix(record_type: int, version: int) -> bytes:
    """Return the frame before the body of a record. Raises WireError for a message that is no metadata record."""
    found = _PREFIXES.get((record_type, version))
    if found is None:
        if record_type < 0:
            raise WireError("metadata record: not a metadata record (no type)")
        found = bytes((FRAME_VERSION,)) + write_uvarint(record_type) + write_uvarint(version)
        _PREFIXES[record_type, version] = found
    return found


def _class_of(record_type: int) -> type[Message]:
    record_class = _CLASSES.get(record_type)
    if record_class is None:
        record_class = _CLASSES[record_type] = records.by_type(record_type)
    return record_class

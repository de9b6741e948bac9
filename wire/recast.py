"""Conversion of messages and records between Kafka's own classes and an overlay's of the same name.

The code that writes and reads records knows Kafka's classes only. A record of the overlay is written in the requested
version, or in the first later one that can express it, and is converted back to Kafka's class on reading. A record type
that Kafka does not have is reported in the process's log.
"""

from __future__ import annotations

import logging
import sys
from types import MemberDescriptorType
from typing import Any, TypeVar

from mockraft.wire import metadata_log_frame, records
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message, Struct
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.overlay import Overlay
from mockraft.wire.schema_files import NO_VERSIONS, StructSpec, schema_of

M = TypeVar("M", bound=Message)
_ABSENT = object()
_LOGGER = logging.getLogger("mockraft.records")


def recast(source: Message, cls: type[M], version: int | None = None) -> M:
    """Return `source` as a `cls`: fields with the same name are copied, all others have the defaults of `cls`.

    With `version`, copy only the fields that `source` has in that version. A null that `cls` does not allow becomes
    the default.
    """
    converted: M = _recast(source, cls, schema_of(cls).root, schema_of(type(source)).root, version)
    return converted


def _recast(source: Struct, cls: type, spec: StructSpec, source_spec: StructSpec, version: int | None) -> Any:
    on_wire = {field.attribute: field for field in source_spec.fields}
    named = {_slot(cls, field.attribute): field.attribute for field in source_spec.fields}
    module = sys.modules[cls.__module__]
    taken: dict[str, object] = {}
    for field in spec.fields:
        name = named.get(field.attribute, field.attribute)
        value: Any = getattr(source, name, _ABSENT)
        origin = on_wire.get(_slot(type(source), name))
        if value is _ABSENT or (value is None and field.nullable == NO_VERSIONS):
            continue
        if version is not None and (origin is None or not origin.versions.covers(version)):
            continue
        if field.struct is not None and value is not None and origin is not None and origin.struct is not None:
            inner = getattr(module, field.struct.name)
            if field.is_array:
                value = [_recast(each, inner, field.struct, origin.struct, version) for each in value]
            else:
                value = _recast(value, inner, field.struct, origin.struct, version)
        taken[field.attribute] = value
    return cls(**taken, unknown_tagged_fields=source.unknown_tagged_fields)


def _slot(cls: type, name: str) -> str:
    """Return the name of the field in the other class; a renamed field is also found by its old name."""
    found = getattr(cls, name, None)
    return found.__name__ if isinstance(found, MemberDescriptorType) else name


class OverlaidRecords:
    """Overlay-aware `encode` and `decode` of framed metadata records, as in `metadata_log_frame`."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay

    def encode(self, record: Message, version: int) -> bytes:
        """Write Kafka's record as the overlay's. Raises WireError if no version can express it."""
        name = self._overlay.record_types[record.api_key]
        if name not in self._overlay.overlaid:
            return metadata_log_frame.encode(record, version)
        overlaid_record = recast(record, self._overlay.by_name(name))
        refusal = None
        for candidate in range(min(version, overlaid_record.max_version), overlaid_record.max_version + 1):
            try:
                return metadata_log_frame.encode(overlaid_record, candidate)
            except WireError as error:
                refusal = refusal or error
        raise refusal or AssertionError("a record has a version")

    def decode(self, value: bytes) -> RecordAt:
        """Read one framed record, as Kafka's class if there is one. Raises WireError for malformed bytes."""
        found = metadata_log_frame.decode(value, self._overlay.by_type)
        name = type(found.record).__name__
        if name not in self._overlay.overlaid:
            return found
        shipped = records.TYPES.get(found.record.api_key)
        if shipped is None:
            _LOGGER.warning("%s (type %d) is a record that Kafka does not have", name, found.record.api_key)
            return found
        return RecordAt(recast(found.record, records.by_name(shipped), found.version), found.version)

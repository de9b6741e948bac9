"""Kio's classes, and the values of its entities and of our messages in one form."""

from __future__ import annotations

import datetime
import uuid
from enum import Enum
from importlib import import_module
from itertools import zip_longest
from typing import Any

from kio.schema.index import schema_name_map
from mockraft.wire.overlay import in_use
from mockraft.wire.schema_files import StructSpec

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def kio_class(name: str, version: int) -> Any:
    """Return kio's class; its index uses the API's name for requests and responses."""
    kind = in_use().schema(name).kind
    api = name.removesuffix({"request": "Request", "response": "Response"}.get(kind, ""))
    key = "".join(f"_{c.lower()}" if c.isupper() else c for c in api).removeprefix("_")
    for entity_type, place in schema_name_map[key][version].items():
        if entity_type.name == kind:
            module, _, class_name = place.partition(":")
            return getattr(import_module(module), class_name)
    raise KeyError(name)


def leaves(value: Any) -> list[Any]:
    """Return the values of kio's entity in field order, converted to plain types."""
    if isinstance(value, tuple):
        return [len(value), *(leaf for v in value for leaf in leaves(v))]
    if hasattr(value, "__dataclass_fields__"):
        fields = [name for name in value.__dataclass_fields__ if not name.startswith("__")]
        return [leaf for name in fields for leaf in leaves(getattr(value, name))]
    return [plain(value)]


def our_leaves(struct: StructSpec, message: Any, version: int) -> list[Any]:
    """Return the values of a generated object, in field order, of the fields that the version has."""
    found: list[Any] = []
    for field in struct.fields:
        if field.versions.covers(version):
            value = getattr(message, field.attribute)
            values = value if isinstance(value, list) else [value]
            found += [len(value)] if isinstance(value, list) else []
            for v in values:
                found += [v] if field.struct is None or v is None else our_leaves(field.struct, v, version)
    return found


def plain(value: Any) -> Any:
    match value:
        case uuid.UUID():
            return value.bytes
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            return (value - EPOCH) // datetime.timedelta(milliseconds=1)
        case Enum():
            return value.value
    return value


def alike(entity: Any, ours: list[Any]) -> bool:
    """Compare kio's entity with our values; kio has None for an id of zeros and for a time of -1."""
    pairs = zip_longest(leaves(entity), ours, fillvalue="missing")
    return all(their == our or (their is None and our in (-1, bytes(16))) for their, our in pairs)

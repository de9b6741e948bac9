"""A message as another class of the same name: Kafka's own as an overlay's, an overlay's as Kafka's own."""

from __future__ import annotations

import sys
from types import MemberDescriptorType
from typing import Any

from mockraft.wire.message import Message
from mockraft.wire.schema_files import NO_VERSIONS, StructSpec, schema_of

_ABSENT = object()


def recast(source: Any, cls: type[Message], version: int | None = None) -> Any:
    """`source` as a `cls`: fields of one name are taken over, all others have `cls`'s defaults.

    With `version`, only those that `source` had on the wire in it. A null that `cls` cannot say is its default.
    """
    return _recast(source, cls, schema_of(cls).root, schema_of(type(source)).root, version)


def _recast(source: Any, cls: type, spec: StructSpec, source_spec: StructSpec, version: int | None) -> Any:
    on_wire = {field.attribute: field for field in source_spec.fields}
    named = {_slot(cls, field.attribute): field.attribute for field in source_spec.fields}
    module = sys.modules[cls.__module__]
    taken: dict[str, Any] = {}
    for field in spec.fields:
        name = named.get(field.attribute, field.attribute)
        value: Any = getattr(source, name, _ABSENT)
        told = on_wire.get(_slot(type(source), name))
        if value is _ABSENT or (value is None and field.nullable == NO_VERSIONS):
            continue
        if version is not None and (told is None or not told.versions.covers(version)):
            continue
        if field.struct is not None and value is not None and told is not None and told.struct is not None:
            inner = getattr(module, field.struct.name)
            if field.is_array:
                value = [_recast(each, inner, field.struct, told.struct, version) for each in value]
            else:
                value = _recast(value, inner, field.struct, told.struct, version)
        taken[field.attribute] = value
    return cls(**taken, unknown_tagged_fields=source.unknown_tagged_fields)


def _slot(cls: type, name: str) -> str:
    """The field that a class keeps under a name: a renamed field answers to its old name too."""
    found = getattr(cls, name, None)
    return found.__name__ if isinstance(found, MemberDescriptorType) else name

"""Conversion of a message to the class of the same name: from Kafka's own to an overlay's and back."""

from __future__ import annotations

import sys
from types import MemberDescriptorType
from typing import Any, TypeVar

from mockraft.wire.message import Message, Struct
from mockraft.wire.schema_files import NO_VERSIONS, StructSpec, schema_of

M = TypeVar("M", bound=Message)
_ABSENT = object()


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

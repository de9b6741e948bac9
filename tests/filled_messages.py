"""Requests whose lists have an element each."""

from __future__ import annotations

from typing import Any

from mockraft.wire.schema_files import StructSpec

SIZES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def filled(module: Any, spec: StructSpec, version: int, known: dict[str, Any]) -> Any:
    """Build a struct whose lists have an element each."""
    values: dict[str, Any] = {}
    for field in spec.fields:
        name = field.attribute
        if not field.versions.covers(version):
            continue
        if field.struct is None and name in known:
            value = known[name]
            values[name] = [value] if field.is_array and not isinstance(value, list) else value
        elif field.struct is not None and known.get(name, [0]):
            values[name] = filled(module, field.struct, version, known)
            values[name] = [values[name]] if field.is_array else values[name]
        elif field.is_array and field.kind in SIZES:
            values[name] = [1]
    return getattr(module, spec.name)(**values)

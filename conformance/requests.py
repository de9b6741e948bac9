"""Requests from JSON trees with the relevant fields only (the rest has Kafka's defaults), and absent fields."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from mockraft.conformance.expectation import MISSING
from mockraft.wire import messages, uuids
from mockraft.wire.json_form import from_json
from mockraft.wire.message import Message, Struct
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema

Tree = dict[str, Any]
"""A message or record as JSON; which fields it has is in Kafka's specification."""


def request(api: str, fields: Tree, version: int) -> Message:
    """Build the request message of `api` ("CreateTopics") in `version`. Raises WireError for a bad field."""
    return from_json(messages.by_name(f"{api}Request"), complete(api, fields, version), version)


def complete(api: str, fields: Tree, version: int, *, drop: bool = False) -> Tree:
    """Return the request's JSON with defaults for the missing fields; with `drop`, without those of other versions."""
    return _complete(messages.by_name(f"{api}Request"), schema(f"{api}Request").root, fields, version, drop)


def feature_ranges(supported: Mapping[str, tuple[int, int]]) -> list[Tree]:
    """Return the features of a registration as JSON."""
    return [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, (low, high) in supported.items()
    ]


def in_base64(data: bytes) -> str:
    """Return bytes in their JSON form."""
    return base64.b64encode(data).decode("ascii")


def _complete(cls: type[Struct], spec: StructSpec, fields: Tree, version: int, drop: bool) -> Tree:
    defaults = cls()
    names = {field.json_name for field in spec.fields}
    tree: Tree = {name: value for name, value in fields.items() if name not in names}
    for field in spec.fields:
        covered = field.versions.covers(version)
        if field.json_name in fields:
            if covered or not drop:
                tree[field.json_name] = _value(cls, field, fields[field.json_name], version, drop)
        elif covered and not field.tagged.covers(version):
            tree[field.json_name] = _default(cls, field, getattr(defaults, field.attribute), version)
    return tree


def _value(cls: type[Struct], field: FieldSpec, value: Any, version: int, drop: bool) -> object:
    if field.struct is None or value is None:
        return value
    inner = getattr(sys.modules[cls.__module__], field.struct.name)
    if field.is_array:
        return [_complete(inner, field.struct, each, version, drop) for each in value]
    return _complete(inner, field.struct, value, version, drop)


def _default(cls: type[Struct], field: FieldSpec, value: object, version: int) -> object:
    if value is None or field.is_array:
        return value if value is None else []
    if field.struct is not None:
        return _value(cls, field, {}, version, False)
    if not isinstance(value, bytes):
        return value
    return uuids.text_of(value) if field.kind == "uuid" else in_base64(value)


def absent_field(message: str, tree: object, version: int) -> str | None:
    """Return the path of the first field in a tree that this version of the message lacks, None if it has all."""
    return next(_absent(schema(message).root, tree, version, ""), None)


def _absent(spec: StructSpec, tree: object, version: int, path: str) -> Iterator[str]:
    if isinstance(tree, list | tuple):
        for each in tree:
            yield from _absent(spec, each, version, path)
    if not isinstance(tree, Mapping):
        return
    for field in spec.fields:
        if field.json_name in tree and tree[field.json_name] is not MISSING:
            inside = f"{path}.{field.json_name}" if path else field.json_name
            if not field.versions.covers(version):
                yield inside
            elif field.struct is not None:
                yield from _absent(field.struct, tree[field.json_name], version, inside)

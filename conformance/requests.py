"""Requests from JSON trees with the relevant fields only; the rest has Kafka's defaults."""

from __future__ import annotations

import base64
import sys
from typing import Any

from mockraft.wire import messages, uuids
from mockraft.wire.json_form import from_json
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema

Tree = dict[str, Any]


def request(api: str, tree: Tree, version: int) -> Any:
    """Build the request message of `api` ("CreateTopics") in `version`. Raises WireError for a bad field."""
    cls = messages.by_name(f"{api}Request")
    return from_json(cls, _filled(cls, schema(cls.__name__).root, tree, version), version)


def in_base64(data: bytes) -> str:
    """Return bytes in their JSON form."""
    return base64.b64encode(data).decode("ascii")


def _filled(cls: Any, spec: StructSpec, tree: Tree, version: int) -> Tree:
    defaults = cls()
    filled = dict(tree)
    for field in spec.fields:
        given = field.json_name in tree
        if given and field.struct is not None and tree[field.json_name] is not None:
            filled[field.json_name] = _filled_structs(cls, field, tree[field.json_name], version)
        elif not given and field.versions.covers(version) and not field.tagged.covers(version):
            filled[field.json_name] = _default(cls, field, getattr(defaults, field.attribute), version)
    return filled


def _filled_structs(cls: Any, field: FieldSpec, value: Any, version: int) -> Any:
    assert field.struct is not None
    inner = getattr(sys.modules[cls.__module__], field.struct.name)
    if field.is_array:
        return [_filled(inner, field.struct, each, version) for each in value]
    return _filled(inner, field.struct, value, version)


def _default(cls: Any, field: FieldSpec, value: Any, version: int) -> Any:
    if value is None or field.is_array:
        return value
    if field.struct is not None:
        return _filled_structs(cls, field, {}, version)
    if field.kind == "uuid":
        return uuids.text_of(value)
    return in_base64(value) if isinstance(value, bytes) else value

"""Write decoded messages as JSON text: one function for each message class and version.

The text is that of `json_form.to_json` and `json.dumps`, without the tree between them: every name, its quotes and its
colon are joined once for the version, and a field costs an attribute and one call. The messages come from a decoder, so
fields that the version lacks have their defaults, and nulls are only where the version allows them.
"""

from __future__ import annotations

import json
import sys
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from functools import cache
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any

from mockraft.wire import uuids
from mockraft.wire.json_form import UNKNOWN_TAGS
from mockraft.wire.message import Message, Struct, with_constructor
from mockraft.wire.redaction.masks import HIDDEN, MaskedBytes, MaskedText
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of

Write = Callable[[Any], str]
"""A function from a field's value to its JSON."""

_HIDDEN = f'"{HIDDEN}"'
_INTEGERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")
_TRUTH = {False: "false", True: "true"}


def json_text(message: Message, version: int) -> str:
    """Return a decoded message as compact JSON."""
    kind: type = with_constructor(type(message))
    return _writer(kind, version)(message)


@cache
def _writer(cls: type, version: int) -> Write:
    return _of_struct(cls, schema_of(cls).root, version)


def _of_struct(cls: type, spec: StructSpec, version: int) -> Write:
    fields = [field for field in spec.fields if field.versions.covers(version)]
    defaults = getattr(sys.modules[cls.__module__], spec.name)()
    # Each field brings its comma, so that a tagged field at its default leaves nothing; the first comma is dropped.
    template = ""
    others: list[tuple[int, Write]] = []
    for number, field in enumerate(fields):
        if field.tagged.covers(version):
            template += "%s"
            others.append((number, _of_tagged(field, _of_field(cls, field, version), defaults)))
        elif field.kind in _INTEGERS and not field.is_array:
            template += f',"{field.json_name}":%d'
        else:
            template += f',"{field.json_name}":%s'
            others.append((number, _of_field(cls, field, version)))
    values_of = _values_of(fields)

    def write(struct: Struct) -> str:
        values = list(values_of(struct))
        for number, write_value in others:
            values[number] = write_value(values[number])
        text = template % tuple(values)
        if struct.unknown_tagged_fields:
            unknown = ",".join(f'{{"tag":{tag},"data":{of_bytes(data)}}}' for tag, data in struct.unknown_tagged_fields)
            text += f',"{UNKNOWN_TAGS}":[{unknown}]'
        return f"{{{text[1:]}}}"

    return write


def _of_field(cls: type, spec: FieldSpec, version: int) -> Write:
    write_one = _WRITERS[spec.kind] if spec.struct is None else _of_struct(cls, spec.struct, version)
    write = _of_array(write_one) if spec.is_array else write_one
    if not spec.nullable.covers(version):
        return write
    return lambda value: "null" if value is None else write(value)


def _of_tagged(spec: FieldSpec, write: Write, defaults: Struct) -> Write:
    key, default = f',"{spec.json_name}":', getattr(defaults, spec.attribute)
    if not isinstance(default, Struct):
        return lambda value: "" if value == default else key + write(value)
    # Faster than the comparison of two structs.
    values_of = _values_of(spec.struct.fields if spec.struct else ())
    of_default = values_of(default)

    def write_struct(struct: Struct) -> str:
        is_default = values_of(struct) == of_default and not struct.unknown_tagged_fields
        return "" if is_default else key + write(struct)

    return write_struct


def _values_of(fields: Sequence[FieldSpec]) -> Callable[[Struct], tuple[Any, ...]]:
    """Return a function from a struct to the values of these fields."""
    names = [field.attribute for field in fields]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda struct: tuple(getattr(struct, name) for name in names)


def _of_array(write: Write) -> Write:
    return lambda values: f"[{','.join(map(write, values))}]" if values else "[]"


def of_string(value: str) -> str:
    """Return the JSON of a string."""
    return _HIDDEN if type(value) is MaskedText else encode_basestring(value)


def of_bytes(value: bytes) -> str:
    """Return the JSON of bytes: base64."""
    return _HIDDEN if type(value) is MaskedBytes else f'"{b2a_base64(value, newline=False).decode()}"'


def of_float(value: float) -> str:
    """Return the JSON of a float; Jackson writes what JSON has no number for as strings."""
    text = json.dumps(value)
    return f'"{text}"' if text in ("NaN", "Infinity", "-Infinity") else text


def of_uuid(value: bytes) -> str:
    """Return the JSON of a uuid."""
    return f'"{uuids.text_of(value)}"'


_WRITERS: dict[str, Write] = {
    **dict.fromkeys(_INTEGERS, int.__repr__),
    "bool": _TRUTH.__getitem__,
    "float64": of_float,
    "string": of_string,
    "uuid": of_uuid,
    "bytes": of_bytes,
    "records": of_bytes,
}

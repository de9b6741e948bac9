"""Fields of messages by their path: `replicaState.replicaId`, `features[].name` (any element), `topics[0].name`.

Names are Kafka's in camelCase, or as the Python classes spell them. A path is looked up once, in the message's spec;
reading a message by it is attribute access.
"""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from mockraft.server.stubs.errors import StubError, unknown
from mockraft.wire import error_codes, uuids
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message, Struct
from mockraft.wire.redaction.masks import HIDDEN, MaskedBytes, MaskedText
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of

if TYPE_CHECKING:
    from typing import TypeVar

    from mockraft.wire.json_form import Json

    S = TypeVar("S", bound=Struct)

_PART = re.compile(r"(\w+)(?:\[([0-9]{0,9})\])?")
_EACH = -1
_CODES = {name: code for code, name in error_codes.NAMES.items()}
_INTEGERS = frozenset({"int8", "int16", "uint16", "int32", "uint32", "int64"})


class _Step(NamedTuple):
    """One name of a path; `element` is the index in a list, _EACH for any, None for the field as a whole."""

    attribute: str
    element: int | None


class FieldPath(NamedTuple):
    """A path of one message class. `is_many`: it may lead to several values."""

    text: str
    cls: type
    spec: FieldSpec
    is_element: bool
    is_many: bool
    steps: tuple[_Step, ...]

    def reader(self) -> Callable[[Message], object]:
        """Return a reader of the value in a message (None if the path ends early), or of the list of values if many."""
        if all(step.element is None for step in self.steps) and len(self.steps) == 1:
            return attrgetter(self.steps[0].attribute)
        if self.is_many:
            return lambda message: list(_values(message, self.steps))
        return lambda message: next(_values(message, self.steps), None)

    def assign(self, message: Message, value: object) -> None:
        """Set the value, in each element if the path has `[]`. Raise IndexError if there is no such element."""
        *way, last = self.steps
        for owner in _values(message, way):
            if last.element is None:
                setattr(owner, last.attribute, value)
            else:
                elements = getattr(owner, last.attribute)
                for index in range(len(elements)) if last.element == _EACH else (last.element,):
                    elements[index] = value

    def value(self, given: object) -> object:
        """Return the message class's value for one given in JSON or Python. Raise StubError."""
        if given is None:
            return None
        if self.spec.is_array and not self.is_element:
            return _array(self.cls, self.spec, given, self.text)
        return _single(self.cls, self.spec, given, self.text)

    def part(self, given: object) -> object:
        """Return the value for something contained in the field: an element of a list, a part of a text."""
        return _single(self.cls, self.spec, given, self.text) if self.spec.is_array else self.value(given)


def field_path(cls: type, text: str) -> FieldPath:
    """Return the path `text` in a message class. Raise StubError that names similar fields."""
    spec: FieldSpec | None = None
    struct: StructSpec | None = schema_of(cls).root
    steps: list[_Step] = []
    parts = text.split(".")
    for number, part in enumerate(parts):
        found = _PART.fullmatch(part)
        if found is None:
            raise StubError(f"{part!r} is no field name, optionally followed by [] or [number]", text)
        if struct is None:
            raise StubError(f"{parts[number - 1]} has no fields of its own", text)
        spec = _named(struct, found[1], text, cls.__name__ if number == 0 else struct.name)
        is_list = spec.is_array
        index = None if found[2] is None else int(found[2]) if found[2] else _EACH
        if index is not None and not is_list:
            raise StubError(f"{spec.json_name} is no list", text)
        if is_list and index is None and number < len(parts) - 1:
            index = _EACH
        steps.append(_Step(spec.attribute, index))
        struct = spec.struct
    assert spec is not None
    is_many = any(step.element == _EACH for step in steps)
    return FieldPath(text, cls, spec, steps[-1].element is not None, is_many, tuple(steps))


def message_from_tree(cls: type[S], tree: Mapping[str, object], where: str = "") -> S:
    """Return a message, or a struct of one, from some of its fields; the others keep their defaults."""
    filled = _filled(cls, schema_of(cls).root, tree, where)
    assert isinstance(filled, cls)
    return filled


def shown(value: object) -> Json:
    """Return a field's value for JSON: a uuid as text, other bytes as base64, a struct as its fields."""
    if isinstance(value, MaskedBytes | MaskedText):
        return HIDDEN
    if isinstance(value, bytes):
        return uuids.text_of(value) if len(value) == 16 else base64.b64encode(value).decode()
    if isinstance(value, Struct):
        return repr(value)
    if isinstance(value, list | tuple | set | frozenset | range):
        return [shown(element) for element in value]
    if isinstance(value, Mapping):
        return {str(key): shown(element) for key, element in value.items()}
    if callable(value):
        return f"<python {getattr(value, '__qualname__', value.__class__.__name__)}>"
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def error_code(given: str | int, field: str) -> int:
    """Return an error code from its name or number; numbers that Kafka does not use are allowed."""
    if isinstance(given, str):
        if given.upper() not in _CODES:
            raise StubError(unknown("error", given, _CODES), field)
        return _CODES[given.upper()]
    if isinstance(given, bool) or not isinstance(given, int) or not -(1 << 15) <= given < 1 << 15:
        raise StubError(f"expected an error's name or number, got {given!r}", field)
    return given


def _values(message: object, steps: Sequence[_Step]) -> Iterator[object]:
    if not steps:
        yield message
        return
    attribute, index = steps[0]
    value = getattr(message, attribute)
    if index is None:
        if value is not None or len(steps) == 1:
            yield from _values(value, steps[1:])
    elif value is not None:
        for element in value if index == _EACH else value[index : index + 1]:
            yield from _values(element, steps[1:])


def _named(struct: StructSpec, name: str, text: str, owner: str) -> FieldSpec:
    for spec in struct.fields:
        if name in (spec.json_name, spec.attribute, spec.name, spec.attribute.rstrip("_")):
            return spec
    raise StubError(unknown(f"field of {owner} called", name, (spec.json_name for spec in struct.fields)), text)


def _filled(cls: type, struct: StructSpec, tree: object, where: str) -> Struct:
    if not isinstance(tree, Mapping):
        raise StubError(f"expected an object with fields of {struct.name}, got {tree!r}", where)
    values: dict[str, object] = {}
    for name, given in tree.items():
        path = f"{where}.{name}" if where else str(name)
        spec = _named(struct, str(name), path, struct.name)
        convert = _array if spec.is_array else _single
        values[spec.attribute] = None if given is None else convert(cls, spec, given, path)
    kind: type[Struct] = getattr(sys.modules[cls.__module__], struct.name)
    return kind(**values)


def _array(cls: type, spec: FieldSpec, given: object, where: str) -> list[object]:
    if not isinstance(given, list | tuple):
        raise StubError(f"expected a list, got {given!r}", where)
    return [_single(cls, spec, element, f"{where}[{index}]") for index, element in enumerate(given)]


def _single(cls: type, spec: FieldSpec, given: object, where: str) -> object:
    if spec.struct is not None:
        return given if isinstance(given, Struct) else _filled(cls, spec.struct, given, where)
    kind = spec.kind
    if kind in _INTEGERS:
        if isinstance(given, str) and spec.attribute.endswith("error_code"):
            return error_code(given, where)
        fits = isinstance(given, int) and not isinstance(given, bool)
    elif kind == "bool":
        fits = isinstance(given, bool)
    elif kind == "string":
        fits = isinstance(given, str)
    elif kind == "float64":
        fits = isinstance(given, int | float) and not isinstance(given, bool)
    else:
        with suppress(ValueError, WireError):
            if isinstance(given, str):
                return uuids.read_text(given) if kind == "uuid" else base64.b64decode(given, validate=True)
        fits = isinstance(given, bytes)
    if not fits:
        form = {"uuid": "uuid (22 characters of base64url)", "bytes": "bytes (as base64)", "records": "base64"}
        raise StubError(f"expected {form.get(kind, kind)}, got {given!r}", where)
    return given

"""Messages as JSON trees, in the shape of Kafka's own generated JsonConverters (its request logs, its tools).

Names are Kafka's in camelCase; a uuid is base64url without padding; bytes are base64; fields that a version lacks are
omitted, and so are tagged fields at their default. Two additions make the form lossless: records are written as base64
(Kafka leaves them empty, or writes `recordsSizeInBytes`, as `records_as_size` does here), and unknown tagged fields, if
any, appear as `_unknownTaggedFields`. Reading is stricter than Kafka's in one point: a key that no version of the
message knows is an error instead of being ignored.
"""

import base64
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from math import isinf, isnan
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from mockraft.wire import uuids
from mockraft.wire.errors import WireError
from mockraft.wire.names import did_you_mean
from mockraft.wire.redaction.masks import HIDDEN, MaskedBytes, MaskedText
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Any JSON value. Its containers are read-only types, so that a `dict[str, int]` is one, too."""
Tree = dict[str, Json]

UNKNOWN_TAGS = "_unknownTaggedFields"


class Fields(Protocol):
    """A message or struct; `message`, which imports this module, has their classes."""

    unknown_tagged_fields: Sequence[tuple[int, bytes]]


M = TypeVar("M", bound=Fields)

_INTEGER_RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}


Writer = Callable[[Any, bool], Json]
"""A function from a field's value to JSON; with True, records are written as their size."""

Reader = Callable[[Json], object]
"""A function from JSON to a field's value. It raises _MisfitError."""


class _MisfitError(Exception):
    """A value that cannot be written or read; the path to it is prepended while the error propagates."""

    def __init__(self, what: str, *path: str) -> None:
        super().__init__(what)
        self.path = list(path)


class _Field(NamedTuple):
    """The encoding of one field in one version."""

    json_name: str
    attribute: str
    present: bool
    tagged: bool
    nullable: bool
    ignorable: bool
    is_array: bool
    is_records: bool
    write: Writer
    read: Reader


class _Shape(NamedTuple):
    """The encoding of one struct class in one version."""

    cls: type[Fields]
    version: int
    defaults: object
    fields: tuple[_Field, ...]
    flexible: bool


def to_json(message: Fields, version: int, *, records_as_size: bool = False) -> Tree:
    """Return `message` as Kafka's JSON converter writes it at `version`.

    Raises WireError with the field's name if a value cannot be expressed in that version (no such field and not
    ignorable, or null where null is not allowed). `records_as_size` writes `recordsSizeInBytes` instead of the bytes,
    as the request log does.
    """
    shape = _message_shape(type(message), version)
    try:
        return _write_struct(shape, message, records_as_size)
    except _MisfitError as misfit:
        raise _named(type(message), version, misfit) from None


def from_json(cls: type[M], tree: Mapping[str, Json], version: int) -> M:
    """Build a `cls` from a tree as `to_json` or Kafka's own converters write it at `version`.

    Every untagged field of the version must be present; tagged ones have defaults. Integers may also be decimal or 0x
    strings. Raises WireError with the field's name if it is missing, unknown or of the wrong type.
    """
    shape = _message_shape(cls, version)
    try:
        message: M = _read_struct(shape, tree)
    except _MisfitError as misfit:
        raise _named(cls, version, misfit) from None
    return message


def _named(cls: type, version: int, misfit: _MisfitError) -> WireError:
    path = "".join(part if part.startswith("[") else f".{part}" for part in misfit.path)
    return WireError(f"{cls.__name__} v{version}: {misfit}", field=path.removeprefix(".") or None)


def _message_shape(cls: type, version: int) -> _Shape:
    spec = schema_of(cls)
    if not spec.valid.covers(version):
        raise WireError(f"{cls.__name__} has no version {version}: versions {spec.valid.low} to {spec.valid.high}")
    # What a reader makes is of a subclass without a constructor; the class of that name in its module has one.
    return _shape(getattr(sys.modules[cls.__module__], cls.__name__), version)


@cache
def _shape(cls: type, version: int) -> _Shape:
    spec = schema_of(cls)
    return _struct_shape(cls, spec.root, version, spec.flexible.covers(version))


def _struct_shape(cls: type, spec: StructSpec, version: int, flexible: bool) -> _Shape:
    fields = tuple(_field_shape(cls, f, version, flexible) for f in spec.fields)
    return _Shape(cls, version, cls(), fields, flexible)


def _field_shape(cls: type, spec: FieldSpec, version: int, flexible: bool) -> _Field:
    if spec.struct is not None:
        shape = _struct_shape(getattr(sys.modules[cls.__module__], spec.struct.name), spec.struct, version, flexible)
        write: Writer = partial(_write_struct, shape)
        read: Reader = partial(_read_struct, shape)
    else:
        write, read = _WRITERS.get(spec.kind, lambda value, _: value), _READERS[spec.kind]
    if spec.is_array:
        write, read = _array_writer(write), _array_reader(read)
    return _Field(
        spec.json_name,
        spec.attribute,
        spec.versions.covers(version),
        spec.tagged.covers(version),
        spec.nullable.covers(version),
        spec.ignorable,
        spec.is_array,
        spec.kind == "records",
        write,
        read,
    )


def _write_struct(shape: _Shape, value: Fields, records_as_size: bool) -> Tree:
    tree: Tree = {}
    for field in shape.fields:
        content = getattr(value, field.attribute)
        if not field.present or field.tagged:
            if content == getattr(shape.defaults, field.attribute):
                continue
            if not field.present:
                if field.ignorable:
                    continue
                raise _MisfitError(
                    f"version {shape.version} has no such field, and its value is {_brief(content)}", field.json_name
                )
        if content is None:
            if not field.nullable:
                raise _MisfitError(f"null is not allowed in version {shape.version}", field.json_name)
            tree[field.json_name] = None
        elif field.is_records and records_as_size:
            tree[field.json_name + "SizeInBytes"] = len(content)
        else:
            try:
                tree[field.json_name] = field.write(content, records_as_size)
            except _MisfitError as misfit:
                misfit.path.insert(0, field.json_name)
                raise
            except (AttributeError, TypeError) as error:
                raise _MisfitError(f"{_brief(content)} is not of the field's type ({error})", field.json_name) from None
    if value.unknown_tagged_fields:
        unknown = value.unknown_tagged_fields
        tree[UNKNOWN_TAGS] = [{"tag": tag, "data": _write_bytes(data, False)} for tag, data in unknown]
    return tree


def _read_struct(shape: _Shape, tree: Json) -> Any:
    if not isinstance(tree, Mapping):
        raise _MisfitError(f"expected an object, got {_brief(tree)}")
    found: dict[str, object] = {}
    for field in shape.fields:
        if field.json_name not in tree:
            if field.present and not field.tagged:
                raise _missing(field, shape, tree)
            continue
        content = tree[field.json_name]
        if content is None:
            # A version without the field may still be given the null it would have had: Kafka's converter takes it too.
            if field.present and not field.nullable:
                raise _MisfitError(f"null is not allowed in version {shape.version}", field.json_name)
            found[field.attribute] = None
            continue
        try:
            found[field.attribute] = field.read(content)
        except _MisfitError as misfit:
            misfit.path.insert(0, field.json_name)
            raise
    unknown = _read_unknown_tags(shape, tree[UNKNOWN_TAGS]) if UNKNOWN_TAGS in tree else None
    if len(found) + (unknown is not None) != len(tree):
        raise _unknown_key(shape, _unknown_keys(shape, tree)[0])
    value = shape.cls(**found)
    if unknown is not None:
        value.unknown_tagged_fields = unknown
    return value


def _missing(field: _Field, shape: _Shape, tree: Mapping[str, Json]) -> _MisfitError:
    if field.is_records and f"{field.json_name}SizeInBytes" in tree:
        return _MisfitError("only its size is given; the bytes cannot be had back from a log line", field.json_name)
    # What is missing may only be misspelled: then the key that is there is the better hint.
    if misspelled := _unknown_keys(shape, tree):
        return _unknown_key(shape, misspelled[0])
    return _MisfitError(f"a field that version {shape.version} must have is missing", field.json_name)


def _unknown_keys(shape: _Shape, tree: Mapping[str, Json]) -> list[str]:
    known = {UNKNOWN_TAGS, *(f.json_name for f in shape.fields)}
    return [key for key in tree if key not in known]


def _unknown_key(shape: _Shape, key: str) -> _MisfitError:
    names = [f.json_name for f in shape.fields]
    return _MisfitError(f"no such field; {did_you_mean(key, names)}", str(key))


def _read_unknown_tags(shape: _Shape, tree: Any) -> list[tuple[int, bytes]]:
    if not shape.flexible:
        raise _MisfitError(f"version {shape.version} has no tagged fields", UNKNOWN_TAGS)
    try:
        return [(_read_integer("uint32")(entry["tag"]), _read_bytes(entry["data"])) for entry in tree]
    except (KeyError, TypeError, _MisfitError) as error:
        raise _MisfitError(f"expected a list of {{tag, data}}, got {_brief(tree)} ({error})", UNKNOWN_TAGS) from None


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _array_writer(write: Writer) -> Writer:
    def write_array(values: Sequence[object], records_as_size: bool) -> Json:
        tree: list[Json] = []
        for index, value in enumerate(values):
            try:
                tree.append(write(value, records_as_size))
            except _MisfitError as misfit:
                misfit.path.insert(0, f"[{index}]")
                raise
        return tree

    return write_array


def _array_reader(read: Reader) -> Reader:
    def read_array(tree: Json) -> list[object]:
        if not isinstance(tree, list | tuple):
            raise _MisfitError(f"expected an array, got {_brief(tree)}")
        values: list[object] = []
        for index, element in enumerate(tree):
            try:
                values.append(read(element))
            except _MisfitError as misfit:
                misfit.path.insert(0, f"[{index}]")
                raise
        return values

    return read_array


def _write_bytes(value: bytes, _: bool) -> str:
    return HIDDEN if type(value) is MaskedBytes else base64.b64encode(value).decode("ascii")


def _write_float(value: float, _: bool) -> float | str:
    # JSON has no number for these; Jackson writes them as strings.
    if isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if isinf(value) else value


def _read_integer(kind: str) -> Callable[[Json], int]:
    low, high = _INTEGER_RANGES[kind]

    def read(tree: Json) -> int:
        if isinstance(tree, str):
            try:
                tree = int(tree, 16 if tree.lower().startswith(("0x", "-0x")) else 10)
            except ValueError:
                raise _MisfitError(f"expected an {kind}, got {_brief(tree)}") from None
        if not isinstance(tree, int) or isinstance(tree, bool):
            raise _MisfitError(f"expected an {kind}, got {_brief(tree)}")
        if not low <= tree <= high:
            raise _MisfitError(f"{tree} does not fit an {kind} ({low} to {high})")
        return tree

    return read


def _read_bool(tree: Json) -> bool:
    if not isinstance(tree, bool):
        raise _MisfitError(f"expected true or false, got {_brief(tree)}")
    return tree


def _read_float(tree: Json) -> float:
    if tree in ("NaN", "Infinity", "-Infinity"):
        return float(tree)
    if not isinstance(tree, int | float) or isinstance(tree, bool):
        raise _MisfitError(f"expected a number, got {_brief(tree)}")
    return float(tree)


def _read_string(tree: Json) -> str:
    if not isinstance(tree, str):
        raise _MisfitError(f"expected a string, got {_brief(tree)}")
    return tree


def _read_uuid(tree: Json) -> bytes:
    if isinstance(tree, str):
        with suppress(ValueError):
            return uuids.read_text(tree)
    raise _MisfitError(f"expected a uuid as 22 characters of base64url, got {_brief(tree)}")


def _read_bytes(tree: Json) -> bytes:
    if isinstance(tree, str):
        with suppress(ValueError):
            return base64.b64decode(tree, validate=True)
    raise _MisfitError(f"expected base64, got {_brief(tree)}")


_WRITERS: dict[str, Writer] = {
    "uuid": lambda value, _: uuids.text_of(value),
    "string": lambda value, _: HIDDEN if type(value) is MaskedText else value,
    "bytes": _write_bytes,
    "records": _write_bytes,
    "float64": _write_float,
}
_READERS: dict[str, Reader] = {
    **{kind: _read_integer(kind) for kind in _INTEGER_RANGES},
    "bool": _read_bool,
    "float64": _read_float,
    "string": _read_string,
    "uuid": _read_uuid,
    "bytes": _read_bytes,
    "records": _read_bytes,
}

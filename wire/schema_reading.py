"""A second, independent codec driven by the schemas, in `construct`: slow, literal, and able to explain every byte.

`explain` is based on it, and tests compare the generated codec with it. Nothing here shares code with the generated
classes. A tree is a dict of Kafka's camelCase names to raw values (uuid = 16 bytes, bytes, str, int, list, dict);
tagged fields are present if they were on the wire; unknown ones under `_unknownTaggedFields` as (tag, bytes).
"""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any, NamedTuple, Protocol

import construct as c
from mockraft.wire.errors import WireError
from mockraft.wire.overlay import in_use
from mockraft.wire.schema_files import FieldSpec, Schema, StructSpec

UNKNOWN_TAGS = "_unknownTaggedFields"
STRING_BYTES_MAX = 0x7FFF
_VARINT_BYTES_MAX = 5

_FIXED: dict[str, c.Construct] = {
    "bool": c.ExprAdapter(c.Int8ub, lambda byte, _: byte != 0, lambda value, _: int(value)),
    "int8": c.Int8sb,
    "int16": c.Int16sb,
    "uint16": c.Int16ub,
    "int32": c.Int32sb,
    "uint32": c.Int32ub,
    "int64": c.Int64sb,
    "float64": c.Float64b,
    "uuid": c.Bytes(16),
}


class Context(Protocol):
    """The parsing context: spans so far, and the offset at which the data ends."""

    spans: list[Span]
    end: int


class Span(NamedTuple):
    """A run of bytes and its meaning. `field` is the schema's field, if there is one."""

    offset: int
    length: int
    path: str
    type: str
    value: object
    field: FieldSpec | None


def broken(offset: int, path: str, what: str) -> WireError:
    """A read error: `offset` and path of the unreadable item, and the reason."""
    return WireError(what, field=path or None, offset=offset)


def read(name: str, version: int, data: bytes, spans: list[Span] | None = None, offset: int = 0) -> dict[str, Any]:
    """Read a whole body, `data[offset:]`, as a tree. Raises WireError for bad bytes. `spans` collects the spans."""
    tree, end = read_from(name, version, data, spans, offset)
    if end != len(data):
        raise broken(end, "", f"{len(data) - end} bytes are left over")
    return tree


def read_from(
    name: str, version: int, data: bytes, spans: list[Span] | None = None, offset: int = 0
) -> tuple[dict[str, Any], int]:
    """Read a body at `offset` that may be followed by other data; return (tree, end offset)."""
    stream = BytesIO(data)
    stream.seek(offset)
    found = [] if spans is None else spans
    tree: dict[str, Any] = describe(name, version).parse_stream(stream, spans=found, end=len(data))
    return tree, stream.tell()


def write(name: str, version: int, tree: dict[str, Any]) -> bytes:
    """Encode a tree. Tagged fields are written if they are in the tree, whatever their value."""
    data: bytes = describe(name, version).build(tree)
    return data


def describe(name: str, version: int) -> c.Construct:
    """Return the construct of a message's body in one version. Raises WireError if there is no such version."""
    return _body(in_use().schema(name), version)


@cache
def _body(spec: Schema, version: int) -> _Fields:
    if not spec.valid.covers(version):
        raise WireError(f"{spec.name} has no version {version}: versions {spec.valid.low} to {spec.valid.high}")
    return _struct(spec.root, version, spec.flexible.covers(version))


def _struct(spec: StructSpec, version: int, flexible: bool) -> _Fields:
    in_line = [(f.json_name, _field(f, version, in_tag=False)) for f in spec.untagged(version)]
    tagged = {tag: (f.json_name, _field(f, version, in_tag=True)) for tag, f in spec.tagged(version).items()}
    # As Kafka's own readers do: a tag that only another version of the schema knows is an error, not unknown.
    elsewhere = {f.tag for f in spec.fields if f.tag >= 0} - set(tagged)
    return _Fields(in_line, _Tags(tagged, elsewhere) if flexible else None)


def _field(spec: FieldSpec, version: int, in_tag: bool) -> c.Construct:
    compact = in_tag or spec.flexible.covers(version)
    nullable = spec.nullable.covers(version)
    if spec.struct is not None:
        element: c.Construct = _struct(spec.struct, version, spec.flexible.covers(version))
        if spec.is_array:
            return _Array(element, spec, compact, nullable)
        return _NullableStruct(element, spec) if nullable else element
    if spec.kind in _FIXED:
        element = _Leaf(_FIXED[spec.kind], spec, spec.kind)
    else:
        element = _Block(spec, compact, nullable and not spec.is_array)
    return _Array(element, spec, compact, nullable) if spec.is_array else element


class _UnsignedVarint(c.Construct):  # type: ignore[misc]
    """Kafka's unsigned varint: 7 bits per byte, least significant first, at most 5 bytes; overlong forms are legal."""

    def _parse(self, stream: BytesIO, context: Context, path: str) -> int:
        value = 0
        for index in range(_VARINT_BYTES_MAX):
            byte: int = c.stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value >= 1 << 32:
                    break
                return value
        raise c.IntegerError("a varint of more than 32 bits", path=path)

    def _build(self, value: int, stream: BytesIO, context: Context, path: str) -> int:
        rest = value
        while rest >= 0x80:
            stream.write(bytes((rest & 0x7F | 0x80,)))
            rest >>= 7
        stream.write(bytes((rest,)))
        return value


UnsignedVarint = _UnsignedVarint()


def take(construct: c.Construct, stream: BytesIO, context: Context, path: str, start: int) -> Any:
    """Parse one item; a failure becomes a WireError at `start`, the offset of the item."""
    try:
        return construct._parsereport(stream, context, path)
    except c.StreamError:
        missing = f"the bytes end inside this item (at {context.end})"
        raise broken(start, path, missing) from None
    except (c.ConstructError, UnicodeDecodeError) as error:
        raise broken(start, path, str(error).splitlines()[-1]) from None


class _Leaf(c.Subconstruct):  # type: ignore[misc]
    """An item of fixed size, recorded as a span."""

    def __init__(self, subcon: c.Construct, spec: FieldSpec, type_name: str) -> None:
        super().__init__(subcon)
        self.spec = spec
        self.type_name = type_name

    def _parse(self, stream: BytesIO, context: Context, path: str) -> object:
        start = stream.tell()
        value = take(self.subcon, stream, context, path, start)
        context.spans.append(Span(start, stream.tell() - start, path, self.type_name, value, self.spec))
        return value


class _Length(c.Construct):  # type: ignore[misc]
    """The length before a string, bytes or an array: None stands for null, which is -1 or, compact, 0 on the wire."""

    def __init__(self, compact: bool, legacy: c.Construct, spec: FieldSpec, nullable: bool) -> None:
        super().__init__()
        self.wire = UnsignedVarint if compact else legacy
        self.shift = 1 if compact else 0
        self.spec = spec
        self.nullable = nullable

    def _parse(self, stream: BytesIO, context: Context, path: str) -> int | None:
        start = stream.tell()
        length: int = take(self.wire, stream, context, path, start) - self.shift
        if length < 0:
            if not self.nullable:
                raise broken(start, path, "null, which this version does not allow")
            return None
        left = context.end - stream.tell()
        if length > left:
            raise broken(start, path, f"says {length}, but only {left} bytes are left")
        return length

    def _build(self, length: int | None, stream: BytesIO, context: Context, path: str) -> int | None:
        if length is None and not self.nullable:
            raise WireError(f"{path}: null, which this version does not allow")
        self.wire._build((-1 if length is None else length) + self.shift, stream, context, path)
        return length


class _Block(c.Construct):  # type: ignore[misc]
    """A string, bytes or records: length and content, recorded as one span."""

    def __init__(self, spec: FieldSpec, compact: bool, nullable: bool) -> None:
        super().__init__()
        self.spec = spec
        self.is_text = spec.kind == "string"
        self.length = _Length(compact, c.Int16sb if self.is_text else c.Int32sb, spec, nullable)
        self.type_name = ("compact " if compact else "") + ("nullable " if nullable else "") + spec.kind

    def _parse(self, stream: BytesIO, context: Context, path: str) -> str | bytes | None:
        start = stream.tell()
        length = self.length._parsereport(stream, context, path)
        value: str | bytes | None = None
        if length is not None:
            if self.is_text and length > STRING_BYTES_MAX:
                raise broken(start, path, f"a string of {length} bytes; Kafka allows {STRING_BYTES_MAX}")
            content: bytes = c.stream_read(stream, length, path)
            try:
                value = content.decode("utf-8") if self.is_text else content
            except UnicodeDecodeError as error:
                raise broken(start, path, f"not UTF-8: {error.reason}") from None
        context.spans.append(Span(start, stream.tell() - start, path, self.type_name, value, self.spec))
        return value

    def _build(self, value: str | bytes | None, stream: BytesIO, context: Context, path: str) -> object:
        content = value.encode("utf-8") if isinstance(value, str) else value
        self.length._build(None if content is None else len(content), stream, context, path)
        stream.write(content or b"")
        return value


class _Array(c.Subconstruct):  # type: ignore[misc]
    """A count, recorded as a span, then that many elements."""

    def __init__(self, element: c.Construct, spec: FieldSpec, compact: bool, nullable: bool) -> None:
        super().__init__(element)
        self.spec = spec
        self.length = _Length(compact, c.Int32sb, spec, nullable)
        self.type_name = ("compact " if compact else "") + ("nullable " if nullable else "") + "array"

    def _parse(self, stream: BytesIO, context: Context, path: str) -> list[object] | None:
        start = stream.tell()
        count = self.length._parsereport(stream, context, path)
        context.spans.append(Span(start, stream.tell() - start, path, self.type_name, count, self.spec))
        if count is None:
            return None
        return [self.subcon._parsereport(stream, context, f"{path}[{index}]") for index in range(count)]

    def _build(self, values: list[object] | None, stream: BytesIO, context: Context, path: str) -> object:
        self.length._build(None if values is None else len(values), stream, context, path)
        for index, value in enumerate(values or ()):
            self.subcon._build(value, stream, context, f"{path}[{index}]")
        return values


class _NullableStruct(c.Subconstruct):  # type: ignore[misc]
    """A struct after an int8, which is negative for null."""

    def __init__(self, subcon: c.Construct, spec: FieldSpec) -> None:
        super().__init__(subcon)
        self.marker = _Leaf(c.Int8sb, spec, "struct marker")

    def _parse(self, stream: BytesIO, context: Context, path: str) -> object:
        if self.marker._parsereport(stream, context, path) < 0:
            return None
        return self.subcon._parsereport(stream, context, path)

    def _build(self, value: object, stream: BytesIO, context: Context, path: str) -> object:
        c.Int8sb._build(-1 if value is None else 1, stream, context, path)
        if value is not None:
            self.subcon._build(value, stream, context, path)
        return value


class _Fields(c.Construct):  # type: ignore[misc]
    """A struct: the untagged fields, then, in flexible versions, the tag section."""

    def __init__(self, in_line: list[tuple[str, c.Construct]], tags: _Tags | None) -> None:
        super().__init__()
        self.in_line = in_line
        self.tags = tags

    def _parse(self, stream: BytesIO, context: Context, path: str) -> dict[str, object]:
        prefix = f"{path}." if path and path != "(parsing)" else ""
        tree = {name: field._parsereport(stream, context, prefix + name) for name, field in self.in_line}
        if self.tags is not None:
            tree.update(self.tags._parsereport(stream, context, prefix))
        return tree

    def _build(self, tree: dict[str, Any], stream: BytesIO, context: Context, path: str) -> object:
        for name, field in self.in_line:
            field._build(tree[name], stream, context, f"{path}.{name}")
        if self.tags is not None:
            self.tags._build(tree, stream, context, path)
        return tree


class _Tags(c.Construct):  # type: ignore[misc]
    """The tag section: a count, then (tag, size, content); written in ascending order, read, as Kafka does, in any."""

    def __init__(self, known: dict[int, tuple[str, c.Construct]], elsewhere: set[int]) -> None:
        super().__init__()
        self.known = known
        self.elsewhere = elsewhere

    def _parse(self, stream: BytesIO, context: Context, prefix: str) -> dict[str, object]:
        start = stream.tell()
        path = f"{prefix}tags"
        count = take(UnsignedVarint, stream, context, path, start)
        context.spans.append(Span(start, stream.tell() - start, path, "tag count", count, None))
        tree: dict[str, Any] = {}
        for _ in range(count):
            start = stream.tell()
            tag = take(UnsignedVarint, stream, context, path, start)
            size = take(UnsignedVarint, stream, context, path, start)
            content = stream.tell()
            if tag in self.elsewhere:
                raise broken(start, path, f"tag {tag} is not valid in this version")
            if size > context.end - content:
                raise broken(start, path, f"tag {tag} says {size} bytes; {context.end - content} are left")
            context.spans.append(Span(start, content - start, path, "tag, size", (tag, size), None))
            self._parse_content(stream, context, prefix, tag, size, tree)
        return tree

    def _parse_content(
        self, stream: BytesIO, context: Context, prefix: str, tag: int, size: int, tree: dict[str, Any]
    ) -> None:
        start = stream.tell()
        if tag not in self.known:
            content = c.stream_read(stream, size, prefix)
            context.spans.append(Span(start, size, f"{prefix}tag {tag}", "unknown tagged field", content, None))
            tree.setdefault(UNKNOWN_TAGS, []).append((tag, content))
            return
        name, field = self.known[tag]
        tree[name] = field._parsereport(stream, context, prefix + name)
        used = stream.tell() - start
        if used != size:
            raise broken(start, prefix + name, f"tag {tag} says {size} bytes, its content takes {used}")

    def _build(self, tree: dict[str, Any], stream: BytesIO, context: Context, path: str) -> object:
        contents: dict[int, bytes] = dict(tree.get(UNKNOWN_TAGS, ()))
        for tag, (name, field) in self.known.items():
            if name in tree:
                content = BytesIO()
                field._build(tree[name], content, context, f"{path}.{name}")
                contents[tag] = content.getvalue()
        UnsignedVarint._build(len(contents), stream, context, path)
        for tag, content_bytes in sorted(contents.items()):
            UnsignedVarint._build(tag, stream, context, path)
            UnsignedVarint._build(len(content_bytes), stream, context, path)
            stream.write(content_bytes)
        return tree

"""A second, independent codec driven by the schemas: slow, literal, and able to explain every byte.

`explain` is based on it, tests compare the generated codec with it, and readers of captures divide messages into
structure and contents by it. Nothing here shares code with the generated classes. A tree is a dict of Kafka's camelCase
names to raw values (uuid = 16 bytes, bytes, str, int, list, dict); tagged fields are present if they were on the wire;
unknown ones under `_unknownTaggedFields` as (tag, bytes).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from mockraft.wire.errors import WireError
from mockraft.wire.overlay import in_use
from mockraft.wire.schema_files import FieldSpec, Schema, StructSpec

Value: TypeAlias = Any
"""What a reader makes of the bytes of a field."""
Tree = dict[str, Value]

UNKNOWN_TAGS = "_unknownTaggedFields"
STRING_BYTES_MAX = 0x7FFF

FIXED = {
    "bool": Struct(">?"),
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "uint32": Struct(">I"),
    "int64": Struct(">q"),
    "float64": Struct(">d"),
    "uuid": Struct("16s"),
}
"""Field types with a fixed number of bytes."""


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


def read(name: str, version: int, data: bytes, spans: list[Span] | None = None, offset: int = 0) -> Tree:
    """Read a whole body, `data[offset:]`, as a tree. Raises WireError for bad bytes. `spans` collects the spans."""
    tree, end = read_from(name, version, data, spans, offset)
    if end != len(data):
        raise broken(end, "", f"{len(data) - end} bytes are left over")
    return tree


def read_from(
    name: str, version: int, data: bytes, spans: list[Span] | None = None, offset: int = 0
) -> tuple[Tree, int]:
    """Read a body at `offset` that may be followed by other data; return (tree, end offset)."""
    spec = describe(name, version)
    reader = Reader(data, version, offset, spans)
    return reader.struct(spec.root, spec.flexible.covers(version), ""), reader.at


def write(name: str, version: int, tree: Tree) -> bytes:
    """Encode a tree. Tagged fields are written if they are in the tree, whatever their value."""
    spec = describe(name, version)
    writer = _Writer(version)
    writer.struct(spec.root, spec.flexible.covers(version), tree)
    return bytes(writer.data)


def describe(name: str, version: int) -> Schema:
    """Return the schema of a message that has this version. Raises WireError if there is no such message or version."""
    spec = in_use().schema(name)
    if not spec.valid.covers(version):
        raise WireError(f"{spec.name} has no version {version}: versions {spec.valid.low} to {spec.valid.high}")
    return spec


class Reader:
    """A position in bytes up to `end`, and what is before it as `spans`, for one version of a message.

    Subclasses make something else of the bytes of a field (`value`), and of arrays, structs and tagged fields.
    """

    def __init__(self, data: bytes, version: int, at: int, spans: list[Span] | None = None) -> None:
        self.data = data
        self.version = version
        self.at = at
        self.end = len(data)
        self.spans = spans

    def value(self, kind: str, start: int, path: str) -> Value:
        """Return the value of the bytes between an offset and this position."""
        content = self.data[start : self.at]
        if (fixed := FIXED.get(kind)) is not None:
            return fixed.unpack(content)[0]
        if kind != "string":
            return content
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise broken(start, path, f"not UTF-8: {error.reason}") from None

    def struct(self, spec: StructSpec, flexible: bool, path: str) -> Value:
        """Read the untagged fields and, in flexible versions, the tag section."""
        prefix = f"{path}." if path else ""
        tree = {f.json_name: self.field(f, False, prefix + f.json_name) for f in spec.untagged(self.version)}
        if flexible:
            self._tags(spec, prefix, tree)
        return tree

    def field(self, spec: FieldSpec, in_tag: bool, path: str) -> Value:
        """Read a field; null is None."""
        compact = in_tag or spec.flexible.covers(self.version)
        nullable = spec.nullable.covers(self.version)
        if spec.is_array:
            start = self.at
            count = self._length("array", compact, nullable, path)
            self.note(start, path, _type_name("array", compact, nullable), count, spec)
            return None if count is None else self.elements(spec, compact, count, path)
        if spec.struct is not None and nullable:
            start = self.at
            marker = self.integer("int8", path)
            self.note(start, path, "struct marker", marker, spec)
            if marker < 0:
                return None
        return self.element(spec, compact, nullable, path)

    def elements(self, spec: FieldSpec, compact: bool, count: int, path: str) -> Value:
        """Read the elements of an array."""
        return [self.element(spec, compact, False, f"{path}[{index}]") for index in range(count)]

    def tagged_field(self, struct: StructSpec, spec: FieldSpec, path: str) -> Value:
        """Read the content of a tag that the struct has."""
        return self.field(spec, True, path)

    def note(self, start: int, path: str, type_name: str, value: object, spec: FieldSpec | None = None) -> None:
        """Add the span from `start` to this position."""
        if self.spans is not None:
            self.spans.append(Span(start, self.at - start, path, type_name, value, spec))

    def skip(self, size: int, path: str) -> int:
        """Pass that many bytes and return where they begin."""
        start = self.at
        if size > self.end - start:
            raise broken(start, path, f"the bytes end inside this item (at {self.end})")
        self.at += size
        return start

    def integer(self, kind: str, path: str) -> int:
        """Read an integer of a type with a fixed number of bytes."""
        start = self.skip(FIXED[kind].size, path)
        number: int = FIXED[kind].unpack_from(self.data, start)[0]
        return number

    def varint(self, path: str, bytes_max: int = 5) -> int:
        """Read an unsigned varint: 7 bits per byte, least significant first; overlong forms are legal."""
        start, number = self.at, 0
        for shift in range(0, 7 * bytes_max, 7):
            if self.at >= self.end:
                raise broken(start, path, f"the bytes end inside this item (at {self.end})")
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        if byte >= 0x80 or (bytes_max == 5 and number >= 1 << 32):
            raise broken(start, path, f"a varint of more than {32 if bytes_max == 5 else 64} bits")
        return number

    def element(self, spec: FieldSpec, compact: bool, nullable: bool, path: str) -> Value:
        """Read a field that is no array, or an element of an array."""
        if spec.struct is not None:
            return self.struct(spec.struct, spec.flexible.covers(self.version), path)
        start = self.at
        if spec.kind in FIXED:
            type_name = spec.kind
            value = self.value(spec.kind, self.skip(FIXED[spec.kind].size, path), path)
        else:
            type_name = _type_name(spec.kind, compact, nullable)
            length = self._length(spec.kind, compact, nullable, path)
            if spec.kind == "string" and length is not None and length > STRING_BYTES_MAX:
                raise broken(start, path, f"a string of {length} bytes; Kafka allows {STRING_BYTES_MAX}")
            value = None if length is None else self.value(spec.kind, self.skip(length, path), path)
        self.note(start, path, type_name, value, spec)
        return value

    def _length(self, kind: str, compact: bool, nullable: bool, path: str) -> int | None:
        """Read the length of a string, of bytes or an array; None for null, which is -1 or, compact, 0."""
        start = self.at
        legacy = "int16" if kind == "string" else "int32"
        length = self.varint(path) - 1 if compact else self.integer(legacy, path)
        if length < 0:
            if not nullable:
                raise broken(start, path, "null, which this version does not allow")
            return None
        if length > self.end - self.at:
            raise broken(start, path, f"says {length}, but only {self.end - self.at} bytes are left")
        return length

    def _tags(self, struct: StructSpec, prefix: str, tree: Tree) -> None:
        """Read a count, then (tag, size, content) in any order, as Kafka does."""
        known = struct.tagged(self.version)
        start = self.at
        count = self.varint(f"{prefix}tags")
        self.note(start, f"{prefix}tags", "tag count", count)
        for _ in range(count):
            start = self.at
            tag, size = self.varint(f"{prefix}tags"), self.varint(f"{prefix}tags")
            # As Kafka's own readers do: a tag that only another version knows is an error, not unknown.
            if tag not in known and any(field.tag == tag for field in struct.fields):
                raise broken(start, f"{prefix}tags", f"tag {tag} is not valid in this version")
            if size > self.end - self.at:
                raise broken(start, f"{prefix}tags", f"tag {tag} says {size} bytes; {self.end - self.at} are left")
            self.note(start, f"{prefix}tags", "tag, size", (tag, size))
            start = self.at
            field = known.get(tag)
            if field is None:
                content = self.value("bytes", self.skip(size, prefix), prefix)
                self.note(start, f"{prefix}tag {tag}", "unknown tagged field", content)
                tree.setdefault(UNKNOWN_TAGS, []).append((tag, content))
                continue
            tree[field.json_name] = self.tagged_field(struct, field, prefix + field.json_name)
            if self.at - start != size:
                what = f"tag {tag} says {size} bytes, its content takes {self.at - start}"
                raise broken(start, prefix + field.json_name, what)


class _Writer:
    """The bytes written so far."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.data = bytearray()

    def struct(self, spec: StructSpec, flexible: bool, tree: Tree) -> None:
        for field in spec.untagged(self.version):
            self._field(field, tree[field.json_name], False)
        if not flexible:
            return
        contents: dict[int, bytes | bytearray] = dict(tree.get(UNKNOWN_TAGS, ()))
        for tag, field in spec.tagged(self.version).items():
            if field.json_name in tree:
                inner = _Writer(self.version)
                inner._field(field, tree[field.json_name], True)
                contents[tag] = inner.data
        self._varint(len(contents))
        for tag, content in sorted(contents.items()):
            self._varint(tag)
            self._varint(len(content))
            self.data += content

    def _field(self, spec: FieldSpec, value: Value, in_tag: bool) -> None:
        compact = in_tag or spec.flexible.covers(self.version)
        nullable = spec.nullable.covers(self.version)
        if value is None and not nullable:
            raise WireError(f"{spec.json_name}: null, which this version does not allow")
        if spec.is_array:
            self._length("int32", compact, value)
            for each in value or ():
                self._element(spec, compact, each)
            return
        if spec.struct is not None and nullable:
            self.data += FIXED["int8"].pack(-1 if value is None else 1)
        if spec.struct is None or value is not None:
            self._element(spec, compact, value)

    def _element(self, spec: FieldSpec, compact: bool, value: Value) -> None:
        if spec.struct is not None:
            self.struct(spec.struct, spec.flexible.covers(self.version), value)
        elif spec.kind in FIXED:
            self.data += FIXED[spec.kind].pack(value)
        else:
            content = value.encode() if isinstance(value, str) else value
            self._length("int16" if spec.kind == "string" else "int32", compact, content)
            self.data += content or b""

    def _length(self, legacy: str, compact: bool, value: Sequence[object] | None) -> None:
        length = -1 if value is None else len(value)
        if compact:
            self._varint(length + 1)
        else:
            self.data += FIXED[legacy].pack(length)

    def _varint(self, value: int) -> None:
        while value >= 0x80:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)


def _type_name(kind: str, compact: bool, nullable: bool) -> str:
    return f"{'compact ' if compact else ''}{'nullable ' if nullable else ''}{kind}"

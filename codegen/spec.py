"""Typed schemas: messages, structs and fields, with a method for everything that depends on the version."""

from __future__ import annotations

from dataclasses import dataclass, field

from mockraft.codegen.versions import ALL, NONE, Versions

FIXED = {
    "bool": "o",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "U",
}
"""Types of fixed size and their format letters; `U` (16s) and `o` (?) are mockraft's, to be usable in a name."""

SIZES = {"o": 1, "b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "U": 16, "B": 1, "x": 1}
"""Bytes per format letter."""

BLOCKS = ("string", "bytes", "records")
"""Types with a length before their bytes."""

Default = bool | int | float | str | bytes | None | tuple[()]
"""A field's default; `()` means an empty array, or a struct with every field at its default."""


class SpecError(ValueError):
    """A schema that cannot be generated from; the text names the file and the field."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a struct. Ranges are as written, not yet clipped to the message's valid versions."""

    name: str
    snake: str
    type: str
    versions: Versions
    default: Default
    nullable_versions: Versions = NONE
    tagged_versions: Versions = NONE
    tag: int = -1
    ignorable: bool = False
    flexible_versions: Versions = ALL
    about: str = ""

    @property
    def is_array(self) -> bool:
        """True if the type is `[]…`."""
        return self.type.startswith("[]")

    @property
    def element(self) -> str:
        """The type without its `[]`."""
        return self.type.removeprefix("[]")

    @property
    def struct(self) -> str | None:
        """The struct's name, if the field or each of its elements is a struct; otherwise None."""
        return None if self.element in FIXED or self.element in BLOCKS else self.element

    def nullable_at(self, version: int) -> bool:
        """Return True if the field may be null in a version."""
        return self.nullable_versions.has(version)

    def tagged_at(self, version: int) -> bool:
        """Return True if the field is in the tag section in a version."""
        return self.tagged_versions.has(version)


@dataclass(frozen=True, slots=True)
class StructSpec:
    """A named group of fields; one Python class."""

    name: str
    fields: tuple[FieldSpec, ...]
    versions: Versions
    about: str = ""

    def plain_at(self, version: int) -> list[FieldSpec]:
        """Return the untagged fields of a version, in order."""
        return [f for f in self.fields if f.versions.has(version) and not f.tagged_at(version)]

    def tagged_at(self, version: int) -> list[FieldSpec]:
        """Return the tagged fields of a version, by tag."""
        found = [f for f in self.fields if f.versions.has(version) and f.tagged_at(version)]
        return sorted(found, key=lambda f: f.tag)

    def absent_at(self, version: int) -> list[FieldSpec]:
        """Return the fields that a version lacks."""
        return [f for f in self.fields if not f.versions.has(version)]


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """One schema file."""

    name: str
    kind: str
    api_key: int
    valid_versions: Versions
    flexible_versions: Versions
    body: StructSpec
    structs: dict[str, StructSpec] = field(default_factory=dict)
    latest_version_unstable: bool = False
    source: str = ""
    sha256: str = ""

    @property
    def response(self) -> str:
        """Name of the response to this request; empty for other messages."""
        return f"{self.name.removesuffix('Request')}Response" if self.kind == "request" else ""

    def flexible_at(self, version: int) -> bool:
        """Return True if a version has compact lengths and tag sections."""
        return self.flexible_versions.has(version)

    def compact_at(self, spec: FieldSpec, version: int) -> bool:
        """Return True if a field's length is compact in a version; RequestHeader.ClientId never is."""
        return self.flexible_at(version) and (spec.flexible_versions.has(version) or spec.tagged_at(version))

    def fixed_at(self, struct: StructSpec, version: int) -> bool:
        """Return True if all structs of a kind have the same size in a version, apart from tagged fields."""
        fields = struct.plain_at(version)
        return bool(fields) and all(f.type in FIXED for f in fields)

    def shaped_at(self, struct: StructSpec, version: int) -> bool:
        """Return True if a struct's size in a version follows from the lengths of its arrays of fixed elements."""
        plain = struct.plain_at(version)
        arrays = [f for f in plain if f.is_array]
        regular = all(self._has_fixed_elements(f, version) and not f.nullable_at(version) for f in arrays)
        others = all(f.is_array or f.type in FIXED for f in plain)
        simple = _has_simple_defaults(struct, version)
        return self.flexible_at(version) and bool(arrays) and regular and others and simple

    def _has_fixed_elements(self, spec: FieldSpec, version: int) -> bool:
        if spec.struct is None:
            return spec.element in FIXED
        struct = self.structs[spec.struct]
        return self.fixed_at(struct, version) and _has_simple_defaults(struct, version)

    def smallest_size(self, struct: StructSpec, version: int) -> int:
        """Return the minimum size of a struct in a version."""
        total = 1 if self.flexible_at(version) else 0
        return total + sum(self._smallest_field(f, version) for f in struct.plain_at(version))

    def _smallest_field(self, spec: FieldSpec, version: int) -> int:
        if spec.is_array:
            return 1 if self.compact_at(spec, version) else 4
        return 1 if spec.struct is not None and spec.nullable_at(version) else self.element_size(spec, version)

    def element_size(self, spec: FieldSpec, version: int) -> int:
        """Return the minimum size of a field, or of one element of an array, in a version."""
        if spec.element in FIXED:
            return SIZES[FIXED[spec.element]]
        if spec.element in BLOCKS:
            return 1 if self.compact_at(spec, version) else (2 if spec.element == "string" else 4)
        return self.smallest_size(self.structs[spec.element], version)


def _has_simple_defaults(struct: StructSpec, version: int) -> bool:
    """Return True if no field that is not among a version's plain ones has a struct as its default."""
    plain = struct.plain_at(version)
    return all(f.is_array or f.default != () for f in struct.fields if f not in plain)

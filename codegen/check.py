"""Checks that a schema can be turned into code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mockraft.codegen.spec import BLOCKS, FIXED, FieldSpec, MessageSpec, SpecError, StructSpec

RESERVED = {
    "api_key",
    "flexible_from",
    "max_version",
    "min_version",
    "read",
    "read_from",
    "unknown_tagged_fields",
    "write",
}
"""Attributes of every message."""

KINDS = {"data", "header", "metadata", "request", "response"}
"""Supported values of a schema's `type`."""

DEPTH_MAX = 50
RESERVED_CLASSES = {"Message", "Struct", "WireError"}
"""Names that a generated module imports."""


def check(spec: MessageSpec) -> None:
    """Raise SpecError for the first fault, with file and field."""
    for struct in (spec.body, *spec.structs.values()):
        for where, fault in _faults(spec, struct):
            raise SpecError(f"{spec.source}: {where}: {fault}")
    checked: set[str] = set()
    for struct in spec.structs.values():
        _check_ends(spec, struct, (), checked)


def _check_ends(spec: MessageSpec, struct: StructSpec, outer: tuple[str, ...], checked: set[str]) -> None:
    """Raise SpecError for a struct that is within itself, or within very many others."""
    if struct.name in outer or len(outer) > DEPTH_MAX:
        raise SpecError(f"{spec.source}: {struct.name}: a struct cannot be within itself, or {DEPTH_MAX} others")
    if struct.name not in checked:
        for field in struct.fields:
            if field.struct in spec.structs:
                _check_ends(spec, spec.structs[field.struct], (*outer, struct.name), checked)
        checked.add(struct.name)


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""Check that names are safe as Python identifiers, as they become code."""


def _faults(spec: MessageSpec, struct: StructSpec) -> Iterator[tuple[str, str]]:
    if struct is spec.body and spec.kind not in KINDS:
        yield spec.name, f"the type {spec.kind!r} is none of {', '.join(sorted(KINDS))}"
    if not _NAME.fullmatch(struct.name):
        yield struct.name, "a name is letters, digits and underscores and begins with a letter"
    if struct is not spec.body and (struct.name == spec.name or struct.name in RESERVED_CLASSES):
        yield struct.name, "a struct cannot have this name"
    seen: set[str] = set()
    for field in struct.fields:
        where = f"{struct.name}.{field.name}"
        if not _NAME.fullmatch(field.name):
            yield where, "a name is letters, digits and underscores and begins with a letter"
        if field.snake in seen:
            yield where, f"a second field is called {field.snake} in Python"
        if field.snake in RESERVED and (struct is spec.body or field.snake == "unknown_tagged_fields"):
            yield where, f"the Python name {field.snake} is taken"
        seen.add(field.snake)
        for fault in _field_faults(spec, field):
            yield where, fault
    for version in spec.valid_versions.numbers():
        tags = [field.tag for field in struct.tagged_at(version)]
        if len(set(tags)) != len(tags):
            yield struct.name, f"version {version} uses a tag twice"


def _field_faults(spec: MessageSpec, field: FieldSpec) -> Iterator[str]:
    if field.element.startswith("[]"):
        yield "arrays of arrays do not exist in the protocol"
    elif field.struct is not None and field.struct not in spec.structs:
        yield f"unknown type {field.type!r}"
    if not field.nullable_versions.empty and field.type in FIXED:
        yield f"a {field.type} cannot be null"
    if (field.tag >= 0) != (not field.tagged_versions.empty):
        yield "tag and taggedVersions belong together"
    if not field.versions.covers(field.tagged_versions):
        yield "taggedVersions has versions that the field has not"
    if not field.tagged_versions.empty:
        tagged = field.tagged_versions.intersect(spec.valid_versions)
        if not spec.flexible_versions.covers(tagged):
            yield "tagged in a version that is not flexible"
    if field.default is None and not field.nullable_versions.covers(field.versions.intersect(spec.valid_versions)):
        if field.type in BLOCKS or field.is_array:
            return
        yield "the default is null, which not every version of the field allows"

"""Fields that a version of a message lacks: what a case cannot send or expect when an older version is negotiated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mockraft.conformance.expectation import MISSING
from mockraft.wire.schema_files import StructSpec, schema


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

"""The table of a message's fields, which `mockraft_speed` reads to make its plans.

One row for a struct, the message first: its name and its fields. A field is (name, type, versions, default, ignorable,
nullable versions, tagged versions, tag, compact versions), without the values at the end that are the usual ones.
Versions are (first, last), within the valid ones. The table is one constant, so that a module without the accelerator
pays nothing. `wire.message.TABLE_FORMAT` changes with these rows.
"""

from __future__ import annotations

from mockraft.codegen.lines import Lines
from mockraft.codegen.spec import FieldSpec, MessageSpec
from mockraft.codegen.versions import ALL, Versions

_USUAL = ("False", "(0, -1)", "(0, -1)", "-1", "None")


def emit_fields(lines: Lines, spec: MessageSpec) -> None:
    """Add the table and the call of the accelerator."""
    structs = [spec.body, *(struct for struct in spec.structs.values() if struct is not spec.body)]
    lines.add("", "_FIELDS = (")
    for struct in structs:
        lines.add(f'    ("{struct.name}", (', *(f"        {_row(spec, field)}," for field in struct.fields), "    )),")
    lines.add(")", "if accelerate is not None:", "    accelerate(_FIELDS, globals())")


def _row(spec: MessageSpec, field: FieldSpec) -> str:
    def clipped(versions: Versions) -> str:
        return str(tuple(versions.intersect(spec.valid_versions)))

    more: tuple[str, ...] = (
        str(field.ignorable),
        clipped(field.nullable_versions),
        clipped(field.tagged_versions),
        str(field.tag),
        "None" if field.flexible_versions == ALL else clipped(field.flexible_versions),
    )
    while more and more[-1] == _USUAL[len(more) - 1]:
        more = more[:-1]
    first = (f'"{field.snake}"', f'"{field.type}"', clipped(field.versions), _default(field))
    return f"({', '.join((*first, *more))})"


def _default(field: FieldSpec) -> str:
    if field.type == "uuid":
        return 'b"' + "\\0" * 16 + '"'
    return '""' if field.default == "" else repr(field.default)

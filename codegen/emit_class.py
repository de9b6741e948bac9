"""The classes of a message: slots, a constructor with the schema's defaults, and a subclass without one for reading."""

from __future__ import annotations

import textwrap

from mockraft.codegen.lines import Lines
from mockraft.codegen.spec import FieldSpec, MessageSpec, StructSpec

_ANNOTATIONS = {
    "bool": "bool",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
}


def annotation(field: FieldSpec) -> str:
    """Return the Python type of a field, for all versions together."""
    element = _ANNOTATIONS.get(field.element, field.struct or "int")
    text = f"list[{element}]" if field.is_array else element
    return text if field.nullable_versions.empty and field.default is not None else f"{text} | None"


def emit_struct(lines: Lines, spec: MessageSpec, struct: StructSpec) -> None:
    """Add the class of a struct; the message's own class gets the members of `Message`."""
    is_message = struct is spec.body
    with lines.block(f"class {struct.name}({'Message' if is_message else 'Struct'}):"):
        _docstring(lines, spec, struct)
        lines.add(
            "", f"__slots__ = ({''.join(f'{field.snake!r}, ' for field in struct.fields).rstrip()})".replace("'", '"')
        )
        if is_message:
            _constants(lines, spec)
        lines.add("")
        _constructor(lines, struct)
        if is_message:
            _methods(lines, spec)
    lines.add("", "", f"_{struct.name} = decoded({struct.name})")


def _docstring(lines: Lines, spec: MessageSpec, struct: StructSpec) -> None:
    if struct is spec.body:
        key = f", api key {spec.api_key}" if spec.api_key >= 0 else ""
        lines.add(f'"""{spec.name} ({spec.kind}{key}), versions {spec.valid_versions}."""')
        return
    about = " ".join(struct.about.split()) or f"{struct.name} of {spec.name}."
    text = about.replace("\\", "\\\\").replace('"', "'")
    wrapped = textwrap.wrap(text, 110)
    wrapped[0] = f'"""{wrapped[0]}'
    wrapped[-1] += '"""'
    lines.add(*wrapped)


def _constants(lines: Lines, spec: MessageSpec) -> None:
    flexible = spec.flexible_versions.intersect(spec.valid_versions)
    lines.add(
        "",
        f"api_key: ClassVar[int] = {spec.api_key}",
        f"min_version: ClassVar[int] = {spec.valid_versions.low}",
        f"max_version: ClassVar[int] = {spec.valid_versions.high}",
        f"flexible_from: ClassVar[int] = {spec.valid_versions.high + 1 if flexible.empty else flexible.low}",
    )
    if spec.latest_version_unstable:
        lines.add("latest_version_unstable: ClassVar[bool] = True")
    if spec.response:
        lines.add(f"response_class: ClassVar[type[{spec.response}]]")


def _constructor(lines: Lines, struct: StructSpec) -> None:
    with lines.block("def __init__("):
        lines.add("self,", "*,")
        for field in struct.fields:
            about = " ".join(field.about.split())
            comment = (
                f"  # {field.versions}"
                + (f", tag {field.tag}" if field.tag >= 0 else "")
                + (f": {about}" if about else "")
            )
            default = "UNSET" if field.default == () else literal(field)
            lines.add(f"{field.snake}: {annotation(field)} = {default},{comment}")
        lines.add("unknown_tagged_fields: Sequence[tuple[int, bytes]] = (),")
    with lines.block(") -> None:"):
        for field in struct.fields:
            lines.add(f"self.{field.snake}: {annotation(field)} = {_initial(field)}")
        lines.add("self.unknown_tagged_fields = unknown_tagged_fields")


def _initial(field: FieldSpec) -> str:
    if field.default != ():
        return field.snake
    fresh = "[]" if field.is_array else f"{field.struct}()"
    return f"{fresh} if {field.snake} is UNSET else {field.snake}"


def literal(field: FieldSpec) -> str:
    """Return the field's default as an expression; a struct's default is not one (see `emit_reader`)."""
    if field.default == () and field.is_array:
        return "[]"
    if field.type == "uuid":
        return "ZERO_UUID"
    return '""' if field.default == "" else repr(field.default)


def _methods(lines: Lines, spec: MessageSpec) -> None:
    name = spec.name
    source = "data: bytes, version: int"
    spend = "spend: Callable[..., None] | None = None"
    for signature, kind, arguments in (
        (f"read({source}) -> {name}", name, "data, 0, None, True"),
        (
            f"read_from({source}, offset: int, {spend}) -> tuple[{name}, int]",
            f"tuple[{name}, int]",
            "data, offset, spend, False",
        ),
    ):
        lines.add("", "@staticmethod")
        with lines.block(f"def {signature}:"):
            with lines.block("try:"):
                lines.add(f"found: {kind} = _READ[version]({arguments})")
            with lines.block("except READ_FAULTS as error:"):
                lines.add(f"raise unreadable({name}, version, error) from error")
            lines.add("return found")
    lines.add("")
    with lines.block("def write(self, version: int) -> bytes:"):
        with lines.block("try:"):
            lines.add("return _WRITE[version](self)")
        with lines.block("except WRITE_FAULTS as error:"):
            lines.add(f"raise unwritable({name}, version, error) from error")

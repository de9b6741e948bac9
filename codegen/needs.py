"""The base of the emitters of functions, and the definitions that the functions of a generated module need."""

from __future__ import annotations

from mockraft.codegen.emit_class import literal
from mockraft.codegen.lines import Lines
from mockraft.codegen.spec import FIXED, FieldSpec, MessageSpec, StructSpec

_MAKERS = {
    "unpack": 'packed("{}").unpack_from',
    "pack": 'packed("{}").pack',
    "iterate": 'packed("{}").iter_unpack',
    "unpack_all": 'unpackers("{}")',
    "unpack_short": 'short_arrays("{}")',
    "unpack_after_string": 'after_strings("{}")',
    "pack_all": 'packers("{}")',
    "pack_string": 'string_packers("{}")',
}


class Needs:
    """Collects names while functions are emitted, then emits their definitions."""

    def __init__(self) -> None:
        self._imports: set[str] = set()
        self._constants: dict[str, str] = {}
        self._tables: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def use(self, name: str) -> str:
        """Import a name of `wire.primitives` and return it."""
        self._imports.add(name)
        return name

    def packing(self, kind: str, letters: str) -> str:
        """Return the name of a module constant that packs or unpacks; `kind` is a key of `_MAKERS`."""
        name = f"{kind}_{letters}"
        self._constants[name] = _MAKERS[kind].format(letters)
        self._imports.add(_MAKERS[kind].split("(")[0])
        return name

    def shapes(self, arguments: str) -> str:
        """Return the name of a `Shapes` table with these arguments, shared by all callers with the same ones."""
        return self._tables.setdefault(arguments, f"_shapes_{len(self._tables)}")

    def function(self, text: str) -> str:
        """Return the name of a function with these parameters and this body, shared by all callers of the same one."""
        return self._functions.setdefault(text, f"_flat_{len(self._functions)}")

    def add_imports(self, lines: Lines, more: set[str]) -> None:
        """Add the import statements; `more` are further names of `wire.primitives`."""
        lines.add("from mockraft.wire.message import Message, Struct, accelerate, decoded, unreadable, unwritable")
        names = sorted(self._imports | more)
        lines.add("from mockraft.wire.primitives import (", *(f"    {name}," for name in names), ")")
        if self._tables:
            lines.add("from mockraft.wire.shapes import Shapes")

    def add_constants(self, lines: Lines) -> None:
        """Add the packers and unpackers."""
        lines.add(*(f"{name} = {made}" for name, made in sorted(self._constants.items())))

    def add_tables(self, lines: Lines) -> None:
        """Add the functions of several callers, and the tables, which need the module's classes."""
        for text, name in self._functions.items():
            lines.add(*f"def {name}{text}".split("\n"), "", "")
        lines.add(*(f"{name} = Shapes({arguments})" for arguments, name in self._tables.items()))


class FunctionEmitter:
    """Emits the function of one version of a message, straight-line code.

    Fixed fields are collected in a run, (format letter, expression) each, together with the length byte that follows
    them, and are packed or unpacked in one call.
    """

    def __init__(self, spec: MessageSpec, version: int, needs: Needs) -> None:
        self._spec = spec
        self._version = version
        self._flexible = spec.flexible_at(version)
        self._needs = needs
        self._lines = Lines(1)
        self._run: list[tuple[str, str]] = []
        self._names = 0

    def _name(self, letter: str) -> str:
        """Return a variable name that the function does not use yet."""
        self._names += 1
        return f"{letter}{self._names}"

    def _shapes(self, struct: StructSpec) -> str:
        """Return the name of the `Shapes` of a struct, and add its definition to the module."""
        return self._needs.shapes(f"_{struct.name}, {self._shape(struct)}")

    def _shape_key(self, var: str, struct: StructSpec) -> str:
        """Return the lengths of a struct's arrays as the key of its shape."""
        return "".join(f"len({var}.{field.snake})," for field in struct.plain_at(self._version) if field.is_array)

    def _shape(self, struct: StructSpec) -> str:
        """Return a struct's fields and constants, as arguments of `Shapes`."""
        plain = struct.plain_at(self._version)
        fields = "".join(f"{self._shape_field(field)}, " for field in plain)
        absent = [(field, not field.ignorable) for field in struct.absent_at(self._version)]
        rest = [*absent, *((field, True) for field in struct.tagged_at(self._version))]
        constants = "".join(f'("{field.snake}", {literal(field)}, {matters}), ' for field, matters in rest)
        return f"({fields.rstrip()}), ({constants.rstrip()})"

    def _shape_field(self, field: FieldSpec) -> str:
        array = "[]" if field.is_array else ""
        if field.struct is None:
            return f'("{field.snake}", "{array}{FIXED[field.element]}")'
        return f'("{field.snake}", "[]", (_{field.struct}, {self._shape(self._spec.structs[field.struct])}))'

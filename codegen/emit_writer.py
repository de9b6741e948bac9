"""Writers: one straight-line function per version of a message."""

from __future__ import annotations

from mockraft.codegen.emit_class import literal
from mockraft.codegen.emit_parts import PartsEmitter, String
from mockraft.codegen.needs import Needs
from mockraft.codegen.spec import FIXED, SIZES, FieldSpec, MessageSpec, StructSpec

FLAT_FIELDS = 3
"""Maximum number of fields of structs that are packed in one call."""

FEW = 8
"""Maximum number of structs of several fields that are packed one by one."""


class WriterEmitter(PartsEmitter):
    """Emits the writer of one version; in the emitted code `m` is the message and `n` a length."""

    def __init__(self, spec: MessageSpec, version: int, needs: Needs) -> None:
        super().__init__(spec, version, needs)
        self._returns = False

    def body(self) -> str:
        """Emit the function's body."""
        body = self._spec.body
        self._returns = all(field.type in FIXED for field in body.plain_at(self._version))
        if not self._returns:
            self._lines.add("r = []")
        self._struct("m", body)
        if self._returns and not self._flexible:
            self._lines.add(f"return {self._pack(self._run)}" if self._run else 'return b""')
        else:
            self._flush()
            if not self._returns or body.tagged_at(self._version):
                self._lines.add('return b"".join(r)')
        return self._lines.text()

    def _struct(self, var: str, struct: StructSpec) -> None:
        self._plain(var, struct)
        if self._flexible:
            self._tags(var, struct)
        else:
            with self._lines.block(f"if {var}.unknown_tagged_fields:"):
                self._lines.add(f"raise {self._needs.use('no_tags')}()")

    def _plain(self, var: str, struct: StructSpec) -> None:
        for field in struct.absent_at(self._version):
            if not field.ignorable:
                self._absent(f"{var}.{field.snake}", field)
        for field in struct.plain_at(self._version):
            self._field(f"{var}.{field.snake}", field)

    def _absent(self, value: str, field: FieldSpec) -> None:
        with self._lines.block(f"if {self._differs(value, field)}:"):
            self._lines.add(f'raise {self._needs.use("inexpressible")}("{field.name}")')

    def _differs(self, value: str, field: FieldSpec) -> str:
        """Return the condition under which a field is not at its default."""
        default = field.default
        if default is None:
            return f"{value} is not None"
        if default == () and not field.is_array:
            struct = self._spec.structs[field.type]
            parts = [self._differs(f"{value}.{child.snake}", child) for child in struct.fields]
            text = " or ".join([*parts, f"{value}.unknown_tagged_fields"])
            return f"({text})" if field.nullable_versions.empty else f"({value} is None or {text})"
        if default == () or default in ("", b""):
            return value if field.nullable_versions.empty else f"({value} or {value} is None)"
        if field.type == "bool":
            return f"not {value}" if default else value
        return f"{value} != {literal(field)}"

    def _field(self, value: str, field: FieldSpec) -> None:
        nullable = field.nullable_at(self._version)
        compact = self._spec.compact_at(field, self._version)
        if field.is_array:
            self._array(value, field, nullable, compact)
        elif field.type in FIXED:
            self._fixed(value, field.type, field.name)
        elif field.struct is None:
            self._block(value, field.type, field.name, nullable, compact)
        elif nullable:
            self._nullable_struct(value, self._spec.structs[field.struct])
        elif "." in value:
            var = self._name("e")
            self._lines.add(f"{var} = {value}")
            self._struct(var, self._spec.structs[field.struct])
        else:
            self._struct(value, self._spec.structs[field.struct])

    def _fixed(self, value: str, kind: str, name: str) -> None:
        if kind == "uuid":
            self._check_uuid(value, name)
        self._run.append((FIXED[kind], value))

    def _nullable_struct(self, value: str, struct: StructSpec) -> None:
        var = self._name("e")
        self._lines.add(f"{var} = {value}")
        if self._string is not None:
            self._flush()
        run = self._run
        with self._lines.block(f"if {var} is None:"):
            self._append(self._pack([*run, ("b", "-1")]))
        with self._lines.block("else:"):
            self._run = [*run, ("b", "1")]
            self._struct(var, struct)
            self._flush()

    def _block(self, value: str, kind: str, name: str, nullable: bool, compact: bool) -> None:
        """Write a string or bytes."""
        block = self._name("b")
        encode = ".encode()" if kind == "string" else ""
        more = " + 1" if compact else ""
        length = self._name("k") if compact and encode else "n"
        self._lines.add(f"{block} = {value}" if nullable or not encode else f"{block} = {value}{encode}")
        if nullable:
            with self._lines.block(f"if {block} is None:"):
                self._lines.add(f"{length} = {0 if compact else -1}", f'{block} = b""')
            with self._lines.block("else:"):
                if encode:
                    self._lines.add(f"{block} = {block}{encode}")
                self._lines.add(f"{length} = len({block}){more}")
        else:
            self._lines.add(f"{length} = len({block}){more}")
        if compact and encode:
            long_form = f'{self._needs.use("write_string_length")}({length}, "{name}")'
            string = self._take_string()
            if string is None:
                self._string, self._run = String(self._run, length, block, long_form), []
                return
            self._string = string
            self._length(length, long_form)
        elif compact:
            self._length("n", f"{self._needs.use('write_uvarint')}(n)", is_long=True)
        else:
            self._run.append(("h" if encode else "i", "n"))
            self._flush()
        self._append(block)

    def _array(self, value: str, field: FieldSpec, nullable: bool, compact: bool) -> None:
        values = self._name("l")
        self._lines.add(f"{values} = {value}")
        if nullable:
            with self._lines.block(f"if {values} is None:"):
                self._lines.add(f"n = {0 if compact else -1}", f"{values} = ()")
            with self._lines.block("else:"):
                self._lines.add(f"n = len({values}){' + 1' if compact else ''}")
        else:
            self._lines.add(f"n = len({values}){' + 1' if compact else ''}")
        if compact:
            self._length("n", f"{self._needs.use('write_uvarint')}(n)")
        else:
            self._run.append(("i", "n"))
            self._flush()
        self._elements(values, field, compact)

    def _elements(self, values: str, field: FieldSpec, compact: bool) -> None:
        element = field.element
        if element == "uuid":
            self._uuids(values, field.name)
        elif element in FIXED:
            pack = self._needs.packing("pack_all", FIXED[element])
            with self._lines.block(f"if {values}:"):
                self._append(f"{pack}[len({values})](*{values})")
        else:
            if field.struct is not None and self._flattens(self._spec.structs[field.struct]):
                self._flat(values, self._spec.structs[field.struct])
                with self._lines.block("else:"):
                    self._loop(values, field, compact)
            elif field.struct is not None and self._spec.shaped_at(self._spec.structs[field.struct], self._version):
                self._shaped(values, self._spec.structs[field.struct])
            else:
                self._loop(values, field, compact)

    def _uuids(self, values: str, name: str) -> None:
        with self._lines.block(f"for u in {values}:"):
            self._check_uuid("u", name)
        self._lines.add(f"{self._out} += {values}")

    def _check_uuid(self, value: str, name: str) -> None:
        with self._lines.block(f"if len({value}) != 16:"):
            self._lines.add(f'raise {self._needs.use("no_uuid")}("{name}")')

    def _loop(self, values: str, field: FieldSpec, compact: bool) -> None:
        var = self._name("e")
        with self._lines.block(f"for {var} in {values}:"):
            if field.struct is None:
                self._block(var, field.element, field.name, False, compact)
            else:
                self._struct(var, self._spec.structs[field.struct])
            self._flush()

    def _shaped(self, values: str, struct: StructSpec) -> None:
        """Write structs of fixed fields and arrays of such; see `ReaderEmitter._shaped_structs`."""
        var, at = self._name("e"), self._name("i")
        writers = f"{self._shapes(struct)}.writers"
        self._lines.add(f"{at} = 0")
        with self._lines.block(f"while {at} < len({values}):"):
            self._lines.add(f"{at} = {writers}.last({values}, {at}, {self._out})")
            self._lines.add(f"if {at} == len({values}): break")
            self._lines.add(f"{var} = {values}[{at}]", f"{at} += 1")
            self._struct(var, struct)
            self._flush()
            self._lines.add(f"{writers}.meet(({self._shape_key(var, struct)}), len({values}) - {at})")

    def _flattens(self, struct: StructSpec) -> bool:
        """Return True if many structs can be packed in one call: few fixed fields, none of which needs a check.

        With more fields, collecting the values costs what the single call saves.
        """
        plain = struct.plain_at(self._version)
        unchecked = all(field.ignorable for field in struct.absent_at(self._version))
        simple = unchecked and not struct.tagged_at(self._version) and all(field.type != "uuid" for field in plain)
        return simple and self._spec.fixed_at(struct, self._version) and len(plain) <= FLAT_FIELDS

    def _flat(self, values: str, struct: StructSpec) -> None:
        """Pack an array of structs as one long struct if none has tagged fields."""
        fields = struct.plain_at(self._version)
        pack = self._needs.packing("pack_all", "".join(FIXED[f.type] for f in fields) + ("x" if self._flexible else ""))
        flat = self._name("f")
        if len(fields) == 1:
            self._lines.add(f"{flat} = [e.{fields[0].snake} for e in {values} if not e.unknown_tagged_fields]")
            with self._lines.block(f"if len({flat}) == len({values}):"):
                self._append(f"{pack}[len({flat})](*{flat})")
            return
        body = "".join(f"        f.append(e.{field.snake})\n" for field in fields)
        loop = f"    for e in l:\n        if e.unknown_tagged_fields: return ()\n{body}"
        function = self._needs.function(f"(l):\n    f = []\n{loop}    return f")
        self._lines.add(f"{flat} = {function}({values}) if len({values}) > {FEW} else ()")
        with self._lines.block(f"if {flat}:"):
            self._append(f"{self._needs.use('pack_flat')}({pack}, {flat}, {len(fields)})")

    def _tags(self, var: str, struct: StructSpec) -> None:
        """Write the tag section: a single zero byte in most messages, so that case comes first."""
        known = [(self._tagged(var, field), field) for field in struct.tagged_at(self._version)]
        unknown = f"{var}.unknown_tagged_fields"
        string = self._take_string()
        run, self._run = self._run, []
        conditions = [self._differs(value, field) for value, field in known] + [unknown]
        if self._returns and struct is self._spec.body:
            with self._lines.block(f"if not ({' or '.join(conditions)}):"):
                self._lines.add(f"return {self._pack(run, 'x')}" if run else 'return b"\\0"')
            if not known:
                self._lines.add(f"return {self._long(None, run, self._unknown_tags(unknown))}")
                return
            self._lines.add('r = [b""]')
            self._known_tags(known, conditions, None, run, "0")
            return
        if string is not None:
            conditions.append(f"{string.length} > 127")
        with self._lines.block(f"if {' or '.join(conditions)}:"):
            if known:
                at = self._name("a")
                self._lines.add(f"{at} = len({self._out})")
                self._append('b""')
                self._known_tags(known, conditions, string, run, at)
            else:
                self._append(self._long(string, run, self._unknown_tags(unknown)))
        with self._lines.block("else:"):
            if string is not None:
                self._append(self._pack_string(string, run, "x"))
            else:
                self._append(self._pack(run, "x") if run else 'b"\\0"')

    def _tagged(self, var: str, field: FieldSpec) -> str:
        """Return the expression of a tagged field's value; a struct gets a name, since several fields are compared."""
        value = f"{var}.{field.snake}"
        if field.struct is None or field.is_array:
            return value
        name = self._name("e")
        self._lines.add(f"{name} = {value}")
        return name

    def _unknown_tags(self, unknown: str) -> str:
        return f"{self._needs.use('write_tags')}({unknown})"

    def _known_tags(
        self,
        known: list[tuple[str, FieldSpec]],
        conditions: list[str],
        string: String | None,
        run: list[tuple[str, str]],
        at: str,
    ) -> None:
        """Write tagged fields; their count, together with what precedes it, takes the place of the part at `at`."""
        out, unknown = self._out, conditions[len(known)]
        count = self._name("t")
        self._lines.add(f"{count} = 0")
        for (value, field), condition in zip(known, conditions, strict=False):
            with self._lines.block(f"if {condition}:"):
                self._lines.add(f"{count} += 1")
                self._tag(value, field)
        if string is None and run:
            first = self._pack([*run, ("B", count)])
        else:
            first = self._long(string, run, f"{self._needs.use('UVARINTS')}[{count}]")
        before = self._long(string, run) or 'b""'
        with self._lines.block(f"if {unknown}:"):
            self._lines.add(f"{self._needs.use('merge_tags')}({out}, {at}, {unknown}, {before})")
        with self._lines.block("else:"):
            self._lines.add(f"{out}[{at}] = {first}")

    def _tag(self, value: str, field: FieldSpec) -> None:
        """Write one tagged field."""
        if field.type in FIXED and field.tag < 128:
            self._fixed(value, field.type, field.name)
            (letter, expression), self._run = self._run[0], []
            self._append(self._pack([("B", str(field.tag)), ("B", str(SIZES[letter])), (letter, expression)]))
            return
        if field.type == "[]uuid" and field.tag < 128 and (field.default is None or field.nullable_versions.empty):
            values = self._name("l")
            self._lines.add(f"{values} = {value}", f"n = len({values})")
            self._append(repr(bytes([field.tag])).replace("'", '"'))
            self._append(f"{self._needs.use('UUIDS_HEADS')}[n] if n < 8 else {self._needs.use('uuids_head')}(n)")
            self._uuids(values, field.name)
            return
        if field.struct is not None and not field.is_array and not field.nullable_at(self._version):
            struct = self._spec.structs[field.struct]
            if field.tag < 128 and self._spec.fixed_at(struct, self._version) and not struct.tagged_at(self._version):
                self._fixed_tag(value, struct, field.tag)
                return
        out, self._out = self._out, self._name("r")
        self._lines.add(f"{self._out} = []")
        self._field(value, field)
        self._flush()
        parts, self._out = self._out, out
        self._append(f"{self._needs.use('write_tag')}({field.tag}, {parts})")

    def _fixed_tag(self, value: str, struct: StructSpec, tag: int) -> None:
        """Write one tagged field that is a struct of fixed fields."""
        self._plain(value, struct)
        run, self._run = self._run, []
        size = sum(SIZES[letter] for letter, _ in run) + 1
        unknown = f"{value}.unknown_tagged_fields"
        with self._lines.block(f"if {unknown}:"):
            body = f"[{self._long(None, run, self._unknown_tags(unknown))}]"
            self._append(f"{self._needs.use('write_tag')}({tag}, {body})")
        with self._lines.block("else:"):
            self._append(self._pack([("B", str(tag)), ("B", str(size)), *run], "x"))

"""Writers: one straight-line function per version of a message."""

from __future__ import annotations

from mockraft.codegen.emit_class import literal
from mockraft.codegen.needs import FunctionEmitter, Needs
from mockraft.codegen.spec import FIXED, SIZES, FieldSpec, MessageSpec, StructSpec


class WriterEmitter(FunctionEmitter):
    """Emits the writer of one version.

    In the emitted code `m` is the message, `r` the list of parts that become its bytes and `n` a length.
    """

    def __init__(self, spec: MessageSpec, version: int, needs: Needs) -> None:
        super().__init__(spec, version, needs)
        self._out = "r"
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

    def _append(self, expression: str) -> None:
        self._lines.add(f"{self._out}.append({expression})")

    def _pack(self, run: list[tuple[str, str]], tail: str = "") -> str:
        """Return the call that packs a run; `tail` adds letters without a value (`x`)."""
        letters = "".join(letter for letter, _ in run) + tail
        return f"{self._needs.packing('pack', letters)}({', '.join(value for _, value in run)})"

    def _flush(self) -> None:
        if self._run:
            self._append(self._pack(self._run))
            self._run = []

    def _length(self, long_form: str) -> None:
        """Write the run and the compact length `n` after it; `long_form` is the expression for 128 and more."""
        with self._lines.block("if n < 128:"):
            self._append(self._pack([*self._run, ("B", "n")]) if self._run else f"{self._needs.use('UVARINTS')}[n]")
        with self._lines.block("else:"):
            self._append(f"{self._pack(self._run)} + {long_form}" if self._run else long_form)
        self._run = []

    def _struct(self, var: str, struct: StructSpec) -> None:
        for field in struct.absent_at(self._version):
            if not field.ignorable:
                self._absent(f"{var}.{field.snake}", field)
        for field in struct.plain_at(self._version):
            self._field(f"{var}.{field.snake}", field)
        if self._flexible:
            self._tags(var, struct)
        else:
            with self._lines.block(f"if {var}.unknown_tagged_fields:"):
                self._lines.add(f"raise {self._needs.use('no_tags')}()")

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
        else:
            var = self._name("e")
            self._lines.add(f"{var} = {value}")
            self._struct(var, self._spec.structs[field.struct])

    def _fixed(self, value: str, kind: str, name: str) -> None:
        if kind == "uuid":
            with self._lines.block(f"if len({value}) != 16:"):
                self._lines.add(f'raise {self._needs.use("no_uuid")}("{name}")')
        self._run.append((FIXED[kind], value))

    def _nullable_struct(self, value: str, struct: StructSpec) -> None:
        var = self._name("e")
        self._lines.add(f"{var} = {value}")
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
        self._lines.add(f"{block} = {value}" if nullable or not encode else f"{block} = {value}{encode}")
        if nullable:
            with self._lines.block(f"if {block} is None:"):
                self._lines.add(f"n = {0 if compact else -1}", f'{block} = b""')
            with self._lines.block("else:"):
                if encode:
                    self._lines.add(f"{block} = {block}{encode}")
                self._lines.add(f"n = len({block}){more}")
        else:
            self._lines.add(f"n = len({block}){more}")
        if compact:
            if encode:
                self._length(f'{self._needs.use("write_string_length")}(n, "{name}")')
            else:
                self._length(f"{self._needs.use('write_uvarint')}(n)")
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
            self._length(f"{self._needs.use('write_uvarint')}(n)")
        else:
            self._run.append(("i", "n"))
            self._flush()
        self._elements(values, field, compact)

    def _elements(self, values: str, field: FieldSpec, compact: bool) -> None:
        element = field.element
        if element == "uuid":
            self._append(f'{self._needs.use("write_uuids")}({values}, "{field.name}")')
        elif element in FIXED:
            pack = self._needs.packing("pack_all", FIXED[element])
            with self._lines.block(f"if {values}:"):
                self._append(f"{pack}[len({values})](*{values})")
        else:
            if field.struct is not None and self._flattens(self._spec.structs[field.struct]):
                self._flat(values, self._spec.structs[field.struct])
                with self._lines.block("else:"):
                    self._loop(values, field, compact)
            elif field.struct is not None and self._is_shaped(self._spec.structs[field.struct]):
                self._shaped(values, self._spec.structs[field.struct])
            else:
                self._loop(values, field, compact)

    def _loop(self, values: str, field: FieldSpec, compact: bool) -> None:
        var = self._name("e")
        with self._lines.block(f"for {var} in {values}:"):
            if field.struct is None:
                self._block(var, field.element, field.name, False, compact)
            else:
                self._struct(var, self._spec.structs[field.struct])
            self._flush()

    def _is_shaped(self, struct: StructSpec) -> bool:
        """Return True if `wire.shapes` can write a struct: no uuids and other fields that are checked one by one."""
        return self._spec.shaped_at(struct, self._version) and self._is_unchecked(struct)

    def _is_unchecked(self, struct: StructSpec) -> bool:
        plain = struct.plain_at(self._version)
        nested = [self._spec.structs[field.struct] for field in plain if field.struct is not None]
        return (
            all(field.element != "uuid" for field in plain)
            and all(field.ignorable for field in struct.absent_at(self._version))
            and not struct.tagged_at(self._version)
            and all(map(self._is_unchecked, nested))
        )

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
        """Return True if many structs can be packed in one call: a single fixed field, without a check for each value.

        With more fields, collecting the values costs what the single call saves.
        """
        version = self._version
        single = self._spec.fixed_at(struct, version) and len(struct.plain_at(version)) == 1
        return single and self._is_unchecked(struct)

    def _flat(self, values: str, struct: StructSpec) -> None:
        """Pack an array of structs as one long struct if none has tagged fields."""
        field = struct.plain_at(self._version)[0]
        letters = FIXED[field.type] + ("x" if self._flexible else "")
        flat = self._name("f")
        pack = self._needs.packing("pack_all", letters)
        self._lines.add(f"{flat} = [e.{field.snake} for e in {values} if not e.unknown_tagged_fields]")
        with self._lines.block(f"if len({flat}) == len({values}):"):
            self._append(f"{pack}[len({flat})](*{flat})")

    def _tags(self, var: str, struct: StructSpec) -> None:
        """Write the tag section: a single zero byte in most messages, so that case comes first."""
        known = struct.tagged_at(self._version)
        unknown = f"{var}.unknown_tagged_fields"
        run, self._run = self._run, []
        conditions = [self._differs(f"{var}.{field.snake}", field) for field in known]
        empty = self._pack(run, "x") if run else 'b"\\0"'
        if self._returns and struct is self._spec.body:
            with self._lines.block(f"if not ({' or '.join([*conditions, unknown])}):"):
                self._lines.add(f"return {empty}")
            self._some_tags(var, known, conditions, run, is_first=True)
            return
        with self._lines.block(f"if {' or '.join([*conditions, unknown])}:"):
            self._some_tags(var, known, conditions, run)
        with self._lines.block("else:"):
            self._append(empty)

    def _some_tags(
        self,
        var: str,
        known: list[FieldSpec],
        conditions: list[str],
        run: list[tuple[str, str]],
        is_first: bool = False,
    ) -> None:
        unknown = f"{var}.unknown_tagged_fields"
        if not known:
            section = f"{self._needs.use('write_tags')}({unknown})"
            section = f"{self._pack(run)} + {section}" if run else section
            self._lines.add(f"return {section}") if is_first else self._append(section)
            return
        at, out = self._name("a"), self._out
        if is_first:
            parts = [self._pack(run), 'b"\\0"'] if run else ['b"\\0"']
            self._lines.add(f"{at} = {len(parts) - 1}", f"r = [{', '.join(parts)}]")
        else:
            self._run = run
            self._flush()
            self._lines.add(f"{at} = len({out})")
            self._append('b"\\0"')
        for field, condition in zip(known, conditions, strict=True):
            with self._lines.block(f"if {condition}:"):
                self._tag(f"{var}.{field.snake}", field)
        with self._lines.block(f"if {unknown}:"):
            self._lines.add(f"{self._needs.use('merge_tags')}({out}, {at}, {unknown})")
        with self._lines.block("else:"):
            self._lines.add(f"{out}[{at}] = {self._needs.use('UVARINTS')}[len({out}) - {at} - 1]")

    def _tag(self, value: str, field: FieldSpec) -> None:
        """Write one tagged field as exactly one part."""
        if field.type in FIXED and field.tag < 128:
            self._fixed(value, field.type, field.name)
            (letter, expression), self._run = self._run[0], []
            self._append(self._pack([("B", str(field.tag)), ("B", str(SIZES[letter])), (letter, expression)]))
            return
        if field.type == "[]uuid" and field.tag < 128 and (field.default is None or field.nullable_versions.empty):
            self._append(f'{self._needs.use("write_uuids_tag")}({field.tag}, {value}, "{field.name}")')
            return
        out, self._out = self._out, self._name("r")
        self._lines.add(f"{self._out} = []")
        self._field(value, field)
        self._flush()
        parts, self._out = self._out, out
        self._append(f"{self._needs.use('write_tag')}({field.tag}, {parts})")

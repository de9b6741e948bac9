"""Readers: one straight-line function per version of a message."""

from __future__ import annotations

from mockraft.codegen.emit_class import literal
from mockraft.codegen.needs import FunctionEmitter, Needs
from mockraft.codegen.spec import FIXED, SIZES, FieldSpec, MessageSpec, StructSpec

FEW = 4
"""Maximum number of structs of fixed fields that are read one by one: an iterator has a price of its own."""


class ReaderEmitter(FunctionEmitter):
    """Emits the reader of one version.

    In the emitted code `d` is the data, `o` the offset, `n` a length as read, `t` the number of tagged fields, and `s`
    the function that is called with the length of every array before its elements are made (`ElementBudget`), or None.
    If `w` is true, the message is the whole data, and its end is not returned: a tuple less.
    """

    def __init__(self, spec: MessageSpec, version: int, needs: Needs) -> None:
        super().__init__(spec, version, needs)
        self._depth = 0
        """Number of arrays of structs around what is read."""
        self._string: tuple[str, str, str] | None = None
        """A string that the run follows: the name of its length, its target and the call that reads a long one."""

    def body(self) -> str:
        """Emit the function's body."""
        self._create("m", self._spec.body)
        self._struct("m", self._spec.body)
        self._flush()
        with self._lines.block("if w:"):
            self._lines.add("if o == len(d): return m")
        with self._lines.block("elif o <= len(d):"):
            self._lines.add("return m, o")
        self._lines.add(f"raise {self._needs.use('wrong_end')}(o, len(d))")
        return self._lines.text()

    def _create(self, target: str, struct: StructSpec) -> None:
        self._lines.add(f"{target} = _{struct.name}()")

    def _fixed(self, letter: str, target: str) -> None:
        self._run.append((letter, target))

    def _flush(self, stay: int = 0) -> None:
        """Unpack the run and the string before it; the offset ends `stay` bytes before the end of the run."""
        run, self._run = self._run, []
        string, self._string = self._string, None
        letters = "".join(letter for letter, _ in run)
        if string is None:
            self._unpack(run, letters, stay)
            return
        length, target, slow = string
        merges = letters not in ("", "B")
        with self._lines.block(f"if 0 < {length} < 128:"):
            if merges:
                names = ", ".join(name for _, name in run)
                unpack = self._needs.packing("unpack_after_string", letters)
                self._lines.add(f"v, {names} = {unpack}[{length}](d, o)", f"{target} = v.decode()")
                self._lines.add(f"o += {length} + {self._size(letters) - stay}")
            else:
                self._lines.add(f"{target} = d[o + 1:(o := o + {length})].decode()")
        with self._lines.block("else:"):
            self._lines.add(f"{target}, o = {slow}")
            if merges:
                self._unpack(run, letters, stay)
        if not merges:
            self._unpack(run, letters, stay)

    def _unpack(self, run: list[tuple[str, str]], letters: str, stay: int) -> None:
        if not run:
            return
        targets = ", ".join(target for _, target in run)
        if letters == "B":
            self._lines.add(f"{targets} = d[o]")
        else:
            comma = "," if len(run) == 1 else ""
            self._lines.add(f"{targets}{comma} = {self._needs.packing('unpack', letters)}(d, o)")
        if self._size(letters) > stay:
            self._lines.add(f"o += {self._size(letters) - stay}")

    @staticmethod
    def _size(letters: str) -> int:
        return sum(SIZES[letter] for letter in letters)

    def _struct(self, var: str, struct: StructSpec) -> None:
        absent = struct.absent_at(self._version)
        for field in absent:
            self._default(f"{var}.{field.snake}", field)
        for field in struct.plain_at(self._version):
            self._field(f"{var}.{field.snake}", field)
        if self._flexible:
            self._tags(var, struct)
        else:
            self._lines.add(f"{var}.unknown_tagged_fields = ()")

    def _default(self, target: str, field: FieldSpec) -> None:
        """Set a field that is not in the bytes to its default."""
        if field.default == () and not field.is_array:
            self._default_struct(target, self._spec.structs[field.type])
            return
        self._lines.add(f"{target} = {literal(field)}")

    def _default_struct(self, target: str, struct: StructSpec) -> None:
        var = self._name("e")
        self._lines.add(f"{target} = {var} = _{struct.name}()")
        for field in struct.fields:
            self._default(f"{var}.{field.snake}", field)
        self._lines.add(f"{var}.unknown_tagged_fields = ()")

    def _field(self, target: str, field: FieldSpec) -> None:
        nullable = field.nullable_at(self._version)
        compact = self._spec.compact_at(field, self._version)
        if field.is_array:
            self._array(target, field, nullable, compact)
        elif field.type in FIXED:
            self._fixed(FIXED[field.type], target)
        elif field.struct is None:
            self._block(target, field.type, field.name, nullable, compact)
        elif nullable:
            self._nullable_struct(target, self._spec.structs[field.struct])
        else:
            var = self._name("e")
            self._create(f"{target} = {var}", self._spec.structs[field.struct])
            self._struct(var, self._spec.structs[field.struct])

    def _nullable_struct(self, target: str, struct: StructSpec) -> None:
        self._fixed("b", "n")
        self._flush()
        with self._lines.block("if n < 0:"):
            self._lines.add(f"{target} = None")
        with self._lines.block("else:"):
            var = self._name("e")
            self._create(f"{target} = {var}", struct)
            self._struct(var, struct)
            self._flush()

    def _block(self, target: str, kind: str, name: str, nullable: bool, compact: bool) -> None:
        """Read a string or bytes."""
        decode = ".decode()" if kind == "string" else ""
        if compact:
            self._compact_block(target, decode, name, nullable)
            return
        self._fixed("h" if kind == "string" else "i", "n")
        self._flush()
        with self._lines.block("if n >= 0:"):
            self._lines.add(f"{target} = d[o:(o := o + n)]{decode}")
        self._null_branch("else:", target, name, nullable)

    def _compact_block(self, target: str, decode: str, name: str, nullable: bool) -> None:
        """Read a compact string or bytes: the length on the wire is one too large, so it counts from its own offset."""
        slow = self._needs.use(f"{'nullable_' if nullable else ''}compact_{'string' if decode else 'bytes'}")
        if decode and not nullable:
            length = self._name("k")
            self._fixed("B", length)
            self._flush(stay=1)
            self._string = (length, target, f'{slow}(d, o + 1, {length}, "{name}")')
            return
        self._fixed("B", "n")
        self._flush(stay=1)
        with self._lines.block("if 0 < n < 128:"):
            self._lines.add(f"{target} = d[o + 1:(o := o + n)]{decode}")
        if nullable:
            with self._lines.block("elif n == 0:"):
                self._lines.add(f"{target} = None", "o += 1")
        if not decode:  # most records have a length of two bytes
            with self._lines.block("elif n > 127 and 0 < d[o + 1] < 128:"):
                self._lines.add("n += (d[o + 1] - 1) * 128", f"{target} = d[o + 2:(o := o + n + 1)]")
        with self._lines.block("else:"):
            self._lines.add(f'{target}, o = {slow}(d, o + 1, n, "{name}")')

    def _null_branch(self, opening: str, target: str, name: str, nullable: bool) -> None:
        with self._lines.block(opening):
            if nullable:
                self._lines.add(f"{target} = None")
            else:
                self._lines.add(f'raise {self._needs.use("null_field")}("{name}")')

    def _array(self, target: str, field: FieldSpec, nullable: bool, compact: bool) -> None:
        size = self._spec.element_size(field, self._version)
        if compact:
            self._fixed("B", "n")
            self._flush()
            slow = self._needs.use("nullable_compact_count" if nullable else "compact_count")
            if field.element in FIXED:
                self._compact_values(target, field, nullable, f'{slow}(d, o, n, {size}, "{field.name}")')
                return
            with self._lines.block("if n < 128:" if nullable else "if 0 < n < 128:"):
                self._lines.add("n -= 1")
            with self._lines.block("else:"):
                self._lines.add(f'n, o = {slow}(d, o, n, {size}, "{field.name}")')
        else:
            self._fixed("i", "n")
            self._flush()
            with self._lines.block("if n > 127:" if size else "if n > 0:"):
                self._lines.add(f'{self._needs.use("check_count")}(d, o, n, {size}, "{field.name}")')
        if nullable or not compact:
            self._null_branch("if n < 0:", target, field.name, nullable)
            with self._lines.block("else:"):
                self._elements(target, field, compact)
        else:
            self._elements(target, field, compact)

    def _compact_values(self, target: str, field: FieldSpec, nullable: bool, slow: str) -> None:
        """Read a compact array of fixed values; empty and short arrays take the fast path."""
        letter = FIXED[field.element]
        unpack = self._needs.packing("unpack_short", letter)
        with self._lines.block("if 1 < n < 128:"):
            self._lines.add(f"if s: s(n - 1{self._level()})")
            self._lines.add(f"{target} = [*{unpack}[n](d, o)]", f"o += {SIZES[letter]} * n - {SIZES[letter]}")
        with self._lines.block("elif n == 1:"):
            self._lines.add(f"{target} = []")
        with self._lines.block("else:"):
            self._lines.add(f"n, o = {slow}")
            if nullable:
                with self._lines.block("if n < 0:"):
                    self._lines.add(f"{target} = None")
                with self._lines.block("else:"):
                    self._values(target, letter)
            else:
                self._values(target, letter)

    def _values(self, target: str, letter: str) -> None:
        unpack = self._needs.packing("unpack_all", letter)
        self._lines.add(f"if s: s(n{self._level()})")
        self._lines.add(f"{target} = [*{unpack}[n](d, o)]", f"o += {SIZES[letter]} * n")

    def _elements(self, target: str, field: FieldSpec, compact: bool) -> None:
        element = field.element
        if element in FIXED:
            self._values(target, FIXED[element])
        elif field.struct is None:
            values, value = self._name("l"), self._name("v")
            self._lines.add(f"{target} = {values} = []", f"if s: s(n{self._level()})")
            with self._lines.block("for _ in range(n):"):
                self._block(value, element, field.name, False, compact)
                self._flush()
                self._lines.add(f"{values}.append({value})")
        else:
            self._structs(target, self._spec.structs[field.struct])

    def _structs(self, target: str, struct: StructSpec) -> None:
        values = self._name("l")
        self._lines.add(f"{target} = {values} = []")
        with self._lines.block("if n:"):  # an iterator over nothing has its price too
            self._lines.add(f"if s: s(n{self._level(of_structs=True)})")
            self._depth += 1
            if self._spec.fixed_at(struct, self._version):
                self._fixed_structs(values, struct)
            elif self._spec.shaped_at(struct, self._version):
                self._shaped_structs(values, struct)
            else:
                self._loop(values, struct, "n")
            self._depth -= 1

    def _level(self, of_structs: bool = False) -> str:
        """Return the argument for an outer array, or one of structs in its elements; other arrays have none."""
        return f", {self._depth + 1}" if self._depth <= of_structs else ""

    def _loop(self, values: str, struct: StructSpec, count: str) -> None:
        with self._lines.block(f"for _ in range({count}):"):
            self._loop_body(values, struct)

    def _loop_body(self, values: str, struct: StructSpec) -> str:
        """Read one element; return the name of its variable."""
        var = self._name("e")
        self._create(var, struct)
        self._struct(var, struct)
        self._flush()
        self._lines.add(f"{values}.append({var})")
        return var

    def _fixed_structs(self, values: str, struct: StructSpec) -> None:
        """Read structs of fixed fields only: many with one iterator, up to the first one that has tagged fields."""
        fields = struct.plain_at(self._version)
        letters = "".join(FIXED[field.type] for field in fields) + ("B" if self._flexible else "")
        size = self._size(letters)
        with self._lines.block(f"if n > {FEW}:"):
            var = self._name("e")
            names = [self._name("v") for _ in fields] + (["t"] if self._flexible else [])
            targets = ", ".join(names) + ("," if len(names) == 1 else "")
            iterate = self._needs.packing("iterate", letters)
            with self._lines.block(f"for {targets} in {iterate}(d[o:o + {size} * n]):"):
                if self._flexible:
                    self._lines.add("if t: break")
                self._create(var, struct)
                for field in (*struct.absent_at(self._version), *struct.tagged_at(self._version)):
                    self._default(f"{var}.{field.snake}", field)
                for field, name in zip(fields, names, strict=False):
                    self._lines.add(f"{var}.{field.snake} = {name}")
                self._lines.add(f"{var}.unknown_tagged_fields = ()", f"{values}.append({var})")
            self._lines.add(f"o += {size} * len({values})", f"n -= len({values})")
        with self._lines.block("if n:"):
            self._loop(values, struct, "n")

    def _shaped_structs(self, values: str, struct: StructSpec) -> None:
        """Read structs of fixed fields and arrays of such (a topic's partitions and their replicas).

        `wire.shapes` reads those whose arrays have the lengths of most; the others are read field by field.
        """
        count, shapes = self._name("c"), self._shapes(struct)
        self._lines.add(f"{count} = n")
        with self._lines.block(f"while len({values}) < {count}:"):
            with self._lines.block("if s is None:"):
                self._lines.add(f"o = {shapes}.last(d, o, {count} - len({values}), {values})")
                self._lines.add(f"if len({values}) == {count}: break")
            var = self._loop_body(values, struct)
            key = self._shape_key(var, struct)
            self._lines.add(f"if s is None: {shapes}.meet(({key}), {count} - len({values}))")

    def _tags(self, var: str, struct: StructSpec) -> None:
        known = struct.tagged_at(self._version)
        for field in known:
            self._default(f"{var}.{field.snake}", field)
        self._fixed("B", "t")
        self._flush()
        misplaced = [f for f in struct.fields if f.tag >= 0 and f.tag not in {k.tag for k in known}]
        if not known and not misplaced:
            with self._lines.block("if t:"):
                self._lines.add(f"{var}.unknown_tagged_fields, o = {self._needs.use('read_tags')}(d, o, t, s)")
            with self._lines.block("else:"):
                self._lines.add(f"{var}.unknown_tagged_fields = ()")
            return
        self._lines.add(f"{var}.unknown_tagged_fields = ()")
        with self._lines.block("if t:"):
            self._known_tags(var, known, misplaced)

    def _known_tags(self, var: str, known: list[FieldSpec], misplaced: list[FieldSpec]) -> None:
        unknown, tag, end = self._name("u"), self._name("t"), self._name("p")
        self._lines.add(f"{unknown} = None")
        with self._lines.block("if t > 127:"):
            self._lines.add(f"t, o = {self._needs.use('tag_count')}(d, o, t)")
        self._lines.add("if s: s(t, 0)")
        with self._lines.block("for _ in range(t):"):
            self._lines.add(f"{tag} = d[o]", "n = d[o + 1]", "o += 2")
            with self._lines.block(f"if {tag} > 127 or n > 127:"):
                self._lines.add(f"{tag}, n, o = {self._needs.use('tag_header')}(d, o - 2)")
            self._lines.add(f"{end} = o + n")
            word = "if"
            for field in known:
                with self._lines.block(f"{word} {tag} == {field.tag}:"):
                    self._field(f"{var}.{field.snake}", field)
                    self._flush()
                    with self._lines.block(f"if o != {end}:"):
                        self._lines.add(f'raise {self._needs.use("wrong_tag_size")}("{field.name}", o)')
                word = "elif"
            for field in misplaced:
                with self._lines.block(f"{word} {tag} == {field.tag}:"):
                    self._lines.add(f'raise {self._needs.use("misplaced_tag")}("{field.name}", o)')
                word = "elif"
            with self._lines.block("else:"):
                with self._lines.block(f"if {unknown} is None:"):
                    self._lines.add(f"{var}.unknown_tagged_fields = {unknown} = []")
                self._lines.add(f"{unknown}.append(({tag}, d[o:{end}]))", f"o = {end}")

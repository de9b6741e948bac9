"""Source lines under construction, with the imports and definitions that they need."""

from mockraft.codegen.lines import Lines
from mockraft.codegen.needs import Needs


class TestLines:
    def test_indents_lines_of_a_block(self) -> None:
        lines = Lines()
        with lines.block("if n:"):
            lines.add("a()", "", "b()")
        lines.add("c()")
        assert lines.text() == "if n:\n    a()\n\n    b()\nc()\n"

    def test_an_empty_block_passes(self) -> None:
        lines = Lines(1)
        with lines.block("else:"):
            pass
        assert lines.text() == "    else:\n        pass\n"

    def test_starts_at_the_given_depth(self) -> None:
        lines = Lines(2)
        lines.add("return m, o")
        assert lines.text() == "        return m, o\n"


class TestNeeds:
    def test_defines_each_packer_once_with_its_import(self) -> None:
        needs = Needs()
        assert needs.packing("unpack", "iB") == "unpack_iB"
        assert needs.packing("unpack", "iB") == "unpack_iB"
        assert needs.packing("unpack_all", "U") == "unpack_all_U"
        constants, imports = Lines(), Lines()
        needs.add_constants(constants)
        needs.add_imports(imports, set())
        assert constants.text() == 'unpack_all_U = UNPACKERS["U"]\nunpack_iB = packed("iB").unpack_from\n'
        assert "    UNPACKERS,\n    packed,\n" in imports.text()
        assert "Shapes" not in imports.text()

    def test_shares_tables_with_equal_arguments(self) -> None:
        needs = Needs()
        assert needs.shapes("_A, (), ()") == needs.shapes("_A, (), ()") == "_shapes_0"
        assert needs.shapes("_B, (), ()") == "_shapes_1"
        tables, imports = Lines(), Lines()
        needs.add_tables(tables)
        needs.add_imports(imports, {"UNSET"})
        assert tables.text() == "_shapes_0 = Shapes(_A, (), ())\n_shapes_1 = Shapes(_B, (), ())\n"
        assert "from mockraft.wire.shapes import Shapes\n" in imports.text()
        assert "    UNSET,\n" in imports.text()

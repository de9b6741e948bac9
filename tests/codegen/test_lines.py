"""Source lines under construction."""

from mockraft.codegen.lines import Lines


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

"""Invented mini-schemas and the code they become: a change of the generator's output is reviewed here.

`REWRITE_GOLDEN=1 python -m pytest tests/codegen/test_emit_golden.py` writes the present output.
"""

import os
from pathlib import Path

from mockraft.codegen.check import check
from mockraft.codegen.emit_module import emit_module
from mockraft.codegen.parse import parse

from ..rows import each_row

GOLDEN = Path(__file__).parent / "golden"
SCHEMAS = sorted(GOLDEN.glob("*.json"))


@each_row("schema", SCHEMAS)
def test_a_schema_becomes_the_expected_module(schema: Path) -> None:
    spec = parse(schema.read_text(), schema.name)
    check(spec)
    module = emit_module(spec)
    expected = schema.with_suffix(".py.txt")
    if os.environ.get("REWRITE_GOLDEN"):
        expected.write_text(module)
    assert module == expected.read_text()


def test_every_expected_module_has_its_schema() -> None:
    assert {path.name.removesuffix(".py.txt") for path in GOLDEN.glob("*.py.txt")} == {path.stem for path in SCHEMAS}

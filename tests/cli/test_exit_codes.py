"""Exit codes: one meaning for each number in all commands, in their help and in the documentation."""

import ast
import re
from pathlib import Path

from mockraft import cli
from mockraft.cli.exit_codes import ExitCode

from ..rows import each_row

ENTRY = Path(str(cli.__file__))
SOURCES = sorted(path for path in ENTRY.parent.rglob("*.py") if path != ENTRY)
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
ENDS = ("Exit", "SystemExit", "exit", "end", "_fail")
ALWAYS_LISTED = {"DONE", "USAGE"}


def test_documentation_has_the_meaning_of_every_code() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+?) \|", PAGE.read_text(), re.MULTILINE)
    assert rows == [(f"{code:d}", code.meaning) for code in ExitCode]


@each_row("path", SOURCES)
def test_command_ends_with_a_code_of_the_table_that_its_help_lists(path: Path) -> None:
    ended: set[str] = set()
    listed: set[str] = set()
    has_help = False
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        codes = {ast.unparse(each).removeprefix("ExitCode.") for each in call.args if is_code(each)}
        if name == "exit_codes":
            has_help = True
            listed |= codes | ALWAYS_LISTED | {"FAILED" for each in call.keywords if each.arg == "failed"}
        elif name == "end_without":
            ended.add("MISSING")
        elif name in ENDS:
            ended |= codes
            assert [each for each in call.args if ast.unparse(each).isdigit()] == []
    assert not has_help or ended <= listed
    assert path.name == "exit_codes.py" or "Exit codes:" not in path.read_text()


def is_code(node: ast.expr) -> bool:
    return ast.unparse(node).startswith("ExitCode.")

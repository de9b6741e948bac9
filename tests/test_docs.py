"""Check that code and commands in the documentation are real."""

import re
from pathlib import Path

import pytest
from mockraft.cli import application
from typer import Context
from typer.main import get_group

from .named_tests import names_in

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("test_howto_*.py")))


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def squeezed(code: str) -> str:
    """Return code without layout, so that quotes may differ in indentation and line breaks."""
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", code))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_are_quoted_from_tested_examples(document: Path) -> None:
    missing = [block for block in blocks(document, "python") if squeezed(block) not in squeezed(EXAMPLES)]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_their_options_exist(document: Path) -> None:
    group = get_group(application())
    context = Context(group)
    wrong = []
    for block in blocks(document, "console"):
        for line in re.findall(r"^\$ (?:.*\| *)?mockraft ([a-z-]+)(.*)", block.replace("\\\n", " "), re.MULTILINE):
            name, rest = line
            command = group.get_command(context, name)
            assert command is not None, name
            subcommand = rest.split()[0] if rest.split() else ""
            command = getattr(command, "commands", {}).get(subcommand, command)
            known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            wrong += [
                f"mockraft {name} {option}"
                for option in re.findall(r"(?<=\s)--[a-z-]+", rest.split("#")[0])
                if option not in known
            ]
    assert wrong == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_linked_tests_exist(document: Path) -> None:
    named = re.findall(r"\[`(test_\w+)`\]\((?:\.\./)*(tests/[\w/]+\.py)\)", document.read_text())
    assert [f"{name} in {path}" for name, path in named if name not in names_in(path)] == []


def test_readme_has_a_python_example() -> None:
    assert blocks(ROOT / "README.md", "python") != []

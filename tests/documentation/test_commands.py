"""Every command and every option that a page names exists: in prose, in tables and in blocks of commands."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mockraft.cli import application
from typer import Context
from typer.main import get_command

from .blocks import PAGES, ROOT

pytestmark = pytest.mark.one_python

NAMED = [*PAGES, *sorted((ROOT / "clients").glob("*/README.md")), ROOT / "pytest_mockraft" / "README.md"]
OF_OTHER_PROGRAMS = {
    "--again",  # make mutants
    "--bootstrap-server",
    "--broker-list",
    "--cancel",
    "--no-initial-controllers",
    "--topic-list",
    "--verify",
}
"""Options in prose that belong to make targets, Kafka's tools and Docker."""

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_COMMAND = re.compile(r"(?:^|[|(&] *|\$ )mockraft (?=[a-z-])(.*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def _texts(page: Path) -> Iterator[str]:
    """Yield code in prose and the lines of commands; code in a language of its own is for that language's tests."""
    text = page.read_text()
    for kind, body in _BLOCK.findall(text):
        if kind in ("", "console", "text"):
            lines = body.replace("\\\n", " ").splitlines()
            yield from (line for line in lines if kind != "console" or line.startswith("$ "))
    for span in _SPAN.findall(_BLOCK.sub("", text)):
        yield " ".join(span.split())


@cache
def _options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


@cache
def _below(command: Any) -> dict[str, Any]:
    """Return the subcommands of a group by name; a command has none."""
    if not hasattr(command, "list_commands"):
        return {}
    context = Context(command)
    return {name: command.get_command(context, name) for name in command.list_commands(context)}


@cache
def _root() -> Any:
    return get_command(application())


def _walk(command: Any) -> Iterator[Any]:
    yield command
    for below in _below(command).values():
        yield from _walk(below)


def _mistakes(root: Any, words: list[str]) -> Iterator[str]:
    """Yield subcommands and options that a command of `mockraft` does not have."""
    command, known, name = root, {*_options(root)}, "mockraft"
    while words and words[0] in (commands := _below(command)):
        command, name = commands[words[0]], f"{name} {words[0]}"
        known |= _options(command)
        words = words[1:]
    if words[:1] == ["ready"]:
        return  # the line that says so
    if words and re.fullmatch("[a-z][a-z-]*", words[0]) and _below(command):
        yield f"{name} {words[0]}"
    yield from (f"{name} {word}" for word in map(_option_of, words) if word and word not in known)


def _option_of(word: str) -> str | None:
    found = _OPTION.match(word)
    return found[0] if found else None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(re.split(r" [|>&]|  #|\)", text)[0])
    except ValueError:
        return text.split()


def _is_of_the_plugin(option: str, config: pytest.Config) -> bool:
    return option.startswith("--mockraft-") and config.getoption(option, default=pytest) is not pytest


@pytest.mark.parametrize("page", NAMED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_named_commands_and_options_exist(page: Path, pytestconfig: pytest.Config) -> None:
    root = _root()
    known = {option for command in _walk(root) for option in _options(command)} | OF_OTHER_PROGRAMS
    wrong: list[str] = []
    for text in _texts(page):
        for command in _COMMAND.findall(text):
            wrong += _mistakes(root, _words(command))
        if text.startswith("--"):
            unknown = (option for option in _OPTION.findall(text) if option not in known)
            wrong += [option for option in unknown if not _is_of_the_plugin(option, pytestconfig)]
    assert wrong == []


def test_options_of_other_programs_are_named() -> None:
    texts = "\n".join(text for page in NAMED for text in _texts(page))
    assert {option for option in OF_OTHER_PROGRAMS if option not in texts} == set()

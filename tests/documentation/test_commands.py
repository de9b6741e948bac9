"""Every command and every option that a page names exists: in prose, in tables and in blocks of commands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft.cli.command_line import Command
from mockraft.cli.commands import MOCKRAFT

from .blocks import PAGES, ROOT

pytestmark = pytest.mark.one_python

NAMED = [*PAGES, *sorted((ROOT / "clients").glob("*/README.md")), ROOT / "pytest_mockraft" / "README.md"]
OF_OTHER_PROGRAMS = {
    "--add-scram",
    "--again",  # make mutants
    "--bootstrap-server",
    "--broker-list",
    "--cancel",
    "--throttle",
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


def _options(command: Command) -> set[str]:
    return {flag for option in command.options for flag in option.flags} | {"--help"}


def _walk(command: Command) -> Iterator[Command]:
    yield command
    for below in command.subcommands.values():
        yield from _walk(below)


def _mistakes(root: Command, words: list[str]) -> Iterator[str]:
    """Yield subcommands and options that a command of `mockraft` does not have."""
    command, known, name = root, _options(root), "mockraft"
    while words and words[0] in command.subcommands:
        command, name = command.subcommands[words[0]], f"{name} {words[0]}"
        known |= _options(command)
        words = words[1:]
    if words[:1] == ["ready"]:
        return  # the line that says so
    if words and re.fullmatch("[a-z][a-z-]*", words[0]) and command.subcommands:
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
    known = {option for command in _walk(MOCKRAFT) for option in _options(command)} | OF_OTHER_PROGRAMS
    wrong: list[str] = []
    for text in _texts(page):
        for command in _COMMAND.findall(text):
            wrong += _mistakes(MOCKRAFT, _words(command))
        if text.startswith("--"):
            unknown = (option for option in _OPTION.findall(text) if option not in known)
            wrong += [option for option in unknown if not _is_of_the_plugin(option, pytestconfig)]
    assert wrong == []


def test_options_of_other_programs_are_named() -> None:
    texts = "\n".join(text for page in NAMED for text in _texts(page))
    assert {option for option in OF_OTHER_PROGRAMS if option not in texts} == set()

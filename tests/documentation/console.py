"""Console blocks of the documentation: what they run, what they show, and where they can run.

Comments before a block have, on one line each:

    <!-- marks: real_kafka -->                        pytest marks of the block, as of Python blocks
    <!-- file: test_broker.py -->                     the block, of any kind, is a file that later commands use
    <!-- before: mockraft serve --port 9093 -->       a command that the page leaves to the reader
    <!-- exit code: 1 -->                             how the block's last command ends, if not with 0
    <!-- not run: installs from a package index -->   the block cannot run in a test, and why
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path

_BLOCK = re.compile(
    r"(?P<comments>(?:^ *<!--.*?-->\n)*)^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL
)
_COMMENT = re.compile(r"<!-- (marks|file|before|exit code|not run): (.*?) -->")


@dataclass(frozen=True)
class Command:
    line: int
    text: str
    shown: tuple[str, ...] = ()
    """Output as the page shows it; empty if it shows none."""
    exit_code: int = 0


@dataclass
class Block:
    """A block that a page's reader pastes: a file, commands, or both."""

    line: int
    marks: frozenset[str] = frozenset()
    file: tuple[str, str] | None = None
    commands: list[Command] = field(default_factory=list)
    not_run: str | None = None


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page that are console blocks or files of later ones, in order."""
    text = page.read_text()
    found = []
    for match in _BLOCK.finditer(text):
        comments = _COMMENT.findall(match["comments"])
        line = text.count("\n", 0, match.start("text")) + 1
        body = textwrap.dedent(match["text"])
        block, exit_code = Block(line), 0
        for name, value in comments:
            if name == "marks":
                block.marks = frozenset(mark.strip() for mark in value.split(","))
            elif name == "file":
                block.file = (value, body)
            elif name == "before":
                block.commands.append(Command(line, value))
            elif name == "exit code":
                exit_code = int(value)
            else:
                block.not_run = value
        if match["kind"] == "console":
            block.commands += _commands(body, line)
            block.commands[-1] = replace(block.commands[-1], exit_code=exit_code)
        if block.commands or block.file:
            found.append(block)
    return found


def _commands(body: str, first_line: int) -> list[Command]:
    commands: list[Command] = []
    lines = body.splitlines()
    number = 0
    while number < len(lines):
        start = number
        assert lines[number].startswith("$ "), f"line {first_line + number} is neither a command nor its output"
        while lines[number].endswith("\\"):
            number += 1
        text = "\n".join(lines[start : number + 1]).removeprefix("$ ")
        number += 1
        output_start = number
        while number < len(lines) and not lines[number].startswith("$ "):
            number += 1
        commands.append(Command(first_line + start, text, tuple(lines[output_start:number])))
    return commands


_VARYING = (
    # Kafka's ids in base64, before durations, which may be a part of one; not every id has a digit.
    (re.compile(r"(?<![\w-])(?=[\w-]*(?:\d|[a-z][A-Z]))[\w-]{22}(?![\w-])"), "<id>"),
    (re.compile(r"\b\d+(\.\d+)? ?(s|ms)\b"), "# s"),  # durations
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?\b"), "##:##:##"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):[2-6]\d{4}\b"), "127.0.0.1:#####"),  # ports that the system chose
    (re.compile(r"\b\d+(?= of \d+ responses as captured)"), "#"),  # a busy machine fences brokers late
    (re.compile(r"(?<=  )\d+\.\d(?=  |$)"), "#"),  # milliseconds in a table
    (re.compile(r" {2,}|-{4,}"), "  "),  # widths of columns
)


def normalized(line: str) -> str:
    """Return a line of output without times, durations, ids, ports that the system chose, and widths of columns."""
    for pattern, common in _VARYING:
        line = pattern.sub(common, line)
    return line.strip()


def matches(shown: tuple[str, ...], output: str, *, is_complete: bool) -> bool:
    """Compare output with what a page shows; … there is any text in a line, or any lines where it stands alone."""
    parts = [
        r"(?:.*\n)*?" if line.strip() == "…" else ".*?".join(map(re.escape, normalized(line).split("…"))) + r"\n"
        for line in shown
    ]
    found = "".join(f"{normalized(line)}\n" for line in output.strip("\n").splitlines())
    pattern = re.compile("".join(parts))
    return (pattern.fullmatch(found) if is_complete else pattern.match(found)) is not None

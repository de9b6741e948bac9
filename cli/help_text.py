"""The help of a command: usage, explanation, options under their headings, subcommands."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mockraft.cli.command_line import Command
from mockraft.kafka_api.options import REQUIRED, Milliseconds, Option

WIDTH_MAX = 120
NAMES_WIDTH_MAX = 34
"""Longer names of an option have their explanation on the next line."""

_METAVARS: Mapping[object, str] = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH", Milliseconds: "TIME"}


def help_text(command: Command, path: str) -> str:
    """Return the help, as wide as the terminal, at most `WIDTH_MAX`."""
    width = min(WIDTH_MAX, shutil.get_terminal_size().columns)
    parts = [_usage(command, path), *_paragraphs(command.explanation, width)]
    arguments = [(option.metavar, option.help) for option in command.options if option.is_argument]
    if arguments:
        parts.append(_listing("Arguments", arguments, width))
    options = [option for option in command.options if not option.is_argument]
    headings = command.headings or ["Options"]
    for heading in headings:
        shown = [option for option in options if option.group == heading or not command.headings]
        rows = [(_names(option), _about(option, command)) for option in shown]
        if heading == headings[-1]:
            rows.append(("--help", "Show this message and exit."))
        parts.append(_listing(heading, rows, width))
    listing = command.listing
    if not listing and command.subcommands:
        listing = {"Commands": {name: each.summary for name, each in command.subcommands.items()}}
    longest = max((len(name) for listed in listing.values() for name in listed), default=0)
    parts += [_listing(heading, [*listed.items()], width, longest) for heading, listed in listing.items()]
    return "\n\n".join([*parts, *_paragraphs(command.ending, width)])


def _usage(command: Command, path: str) -> str:
    words = [f"Usage: {path} [OPTIONS]"]
    for option in command.options:
        if option.is_argument:
            name = option.metavar.strip("[]")
            name += "..." if option.is_list and not name.endswith(("...", "…")) else ""
            words.append(name if option.default is REQUIRED else f"[{name}]")
    if command.subcommands:
        words.append("COMMAND [ARGS]..." if command.run is None else "[COMMAND] [ARGS]...")
    return " ".join(words)


def _paragraphs(text: str, width: int) -> Iterator[str]:
    """Yield the paragraphs of a text, indented; those with an indented line stay as they are."""
    for paragraph in textwrap.dedent(text).strip().split("\n\n"):
        if any(line.startswith(" ") for line in paragraph.splitlines()):
            yield textwrap.indent(paragraph.strip("\n"), "  ")
        elif paragraph:
            yield textwrap.fill(paragraph, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _listing(heading: str, rows: Sequence[tuple[str, str]], width: int, names_width: int = 0) -> str:
    names_width = max(names_width, *(len(name) for name, _ in rows if len(name) <= NAMES_WIDTH_MAX), 0)
    lines = [f"{heading}:"]
    for name, about in rows:
        wrapped: Sequence[str] = textwrap.wrap(about, max(width - names_width - 4, 20), break_on_hyphens=False) or [""]
        first = f"  {name:{names_width}}  "
        if len(name) > names_width:
            lines.append(f"  {name}")
            first = " " * (names_width + 4)
        lines.append(f"{first}{wrapped[0]}".rstrip())
        lines += [" " * (names_width + 4) + line for line in wrapped[1:]]
    return "\n".join(lines)


def _names(option: Option) -> str:
    names = ", ".join(sorted(option.flags, key=lambda flag: flag.startswith("--")))
    return names if option.kind is bool else f"{names} {metavar(option)}"


def metavar(option: Option) -> str:
    """Return the word for an option's value: its own, its choices, or its type."""
    return option.metavar or "|".join(option.choices) or _METAVARS.get(option.kind, "TEXT")


def _about(option: Option, command: Command) -> str:
    notes = [
        f"env var: {', '.join(option.variables)}" if option.variables and not command.table else "",
        f"default: {option.default_text}" if option.default_text else "",
        option.bounds,
        "required" if option.default is REQUIRED else "",
    ]
    shown = "; ".join(filter(None, notes))
    return f"{option.help}  [{shown}]" if shown else option.help

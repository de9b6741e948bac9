"""Commands, the reader of their command lines, and their `--help`; completion is in completion.py.

A command is a function. Its parameters are its options: a dataclass whose fields are declared with `option(…)`
(mockraft.kafka_api.options), or single ones as `Annotated[int, Option(help=…)]`:

    @dataclass(frozen=True, kw_only=True)
    class Options:
        brokers: int = option(3, lowest=0, help="How many simulated brokers.")

    def run(options: Options) -> None: ...

    COMMAND = Command("run", run, "Run a controller with simulated brokers.")

Options may stand before, between and behind arguments; `--` ends them. An option that a group of commands has may also
be given before the subcommand. A value that cannot be is an OptionError: one line on stderr with the option's name,
and exit code 2.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn, get_args, get_origin

from mockraft.cli.exit_codes import ExitCode
from mockraft.kafka_api.options import REQUIRED, Milliseconds, Option, OptionError, options_of, typed
from mockraft.wire.names import did_you_mean, similar_names
from mockraft.wire.printable import printable_line

WIDTH_MAX = 120
NAMES_WIDTH_MAX = 34
"""Longer names of an option have their explanation on the next line."""
_ERROR_MAX = 2_000
_METAVARS: Mapping[object, str] = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH", Milliseconds: "TIME"}
_NUMBER = re.compile(r"-\d+(\.\d+)?")
_BOOLEANS = {**dict.fromkeys(("true", "1", "yes", "on"), True), **dict.fromkeys(("false", "0", "no", "off"), False)}


@dataclass(frozen=True)
class Command:
    """A command, or a group of commands: one with `subcommands`, which does by itself what `run` does, if anything.

    `about` is its help, by default the docstring of `run`; `ending` follows the options. `table` are options that `run`
    takes as a dict, with `given`, the names of those that were given; without it they are the parameters of `run`.
    `headings` are groups of options in the order of the help, `listing` the lines of subcommands by heading.
    """

    name: str
    run: Callable[..., object] | None = None
    about: str = ""
    subcommands: Mapping[str, Command] = field(default_factory=dict)
    ending: str = ""
    table: Sequence[Option] = ()
    headings: Sequence[str] = ()
    listing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The line for lists of commands."""
        return self.explanation.partition("\n")[0]

    @property
    def explanation(self) -> str:
        """The text of the help before the options."""
        return (self.about or inspect.getdoc(self.run) or "").strip()

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Options and arguments."""
        return tuple(self.table) or (() if self.run is None else tuple(_parameters(self.run)))

    def call(self, path: str, arguments: Sequence[str], before: Mapping[str, object]) -> object:
        """Read the arguments and run the command, or the subcommand that they name; `path` is how it was called.

        `before` are options that were given before the name of a subcommand.
        """
        with _named(path, self.options):
            found = read(self.options, arguments, self.subcommands, wants_help=lambda: self.help(path))
        if found.subcommand is not None:
            given = {name: found.values[name] for name in found.given}
            return self.subcommands[found.subcommand].call(
                f"{path} {found.subcommand}", found.rest, {**before, **given}
            )
        with _named(path, self.options):
            if self.run is None:
                self.help(path, ExitCode.USAGE)
            known = {option.name for option in self.options}
            values = found.values | {name: value for name, value in before.items() if name not in found.given}
            if unknown := [name for name in before if name not in known]:
                raise OptionError(f"it is no option of {path}", f"--{unknown[0].replace('_', '-')}")
            _check_complete(self.options, values)
            if self.table:
                return self.run(values | {"given": frozenset(found.given)})
            return self.run(**_as_parameters(self.run, values))

    def help(self, path: str, code: ExitCode = ExitCode.DONE) -> NoReturn:
        """Print the help and exit."""
        print(help_text(self, path))
        raise SystemExit(code)


class Reading(NamedTuple):
    """The meaning of arguments: values by option, names of the options given, and a subcommand with the rest."""

    values: dict[str, object]
    given: set[str]
    subcommand: str | None = None
    rest: Sequence[str] = ()


def read(
    options: Sequence[Option],
    arguments: Sequence[str],
    subcommands: Mapping[str, object] | None = None,
    *,
    wants_help: Callable[[], object] = lambda: None,
) -> Reading:
    """Read the values of options from arguments, then from their variables, then their defaults. OptionError.

    Values that must be given and are not are REQUIRED. Reading ends at the name of a subcommand.
    """
    texts: dict[str, list[str]] = {}
    words: list[str] = []
    by_flag = {flag: option for option in options for flag in option.flags}
    rest = list(reversed(arguments))
    subcommand = None
    while rest:
        word = rest.pop()
        if word == "--":
            words += reversed(rest)
            break
        if word[:1] != "-" or word == "-" or _NUMBER.fullmatch(word):
            if subcommands:
                subcommand = _known(word, subcommands)
                break
            words.append(word)
            continue
        if word in ("--help", "-h") and word not in by_flag:
            wants_help()
        _take(word, rest, by_flag, texts)
    _take_words([option for option in options if option.is_argument], words, texts)
    values = {option.name: option.default for option in options}
    given = set(texts)
    for option in options:
        if option.name in texts:
            values[option.name] = _value(option, texts[option.name])
        elif variable := variable_of(option):
            given.add(option.name)
            values[option.name] = _value_of_variable(option, os.environ[variable])
    return Reading(values, given, subcommand, list(reversed(rest)))


def variable_of(option: Option) -> str | None:
    """Return the first environment variable that has the option's value; an empty one is as none.

    Kubernetes sets MOCKRAFT_PORT to a URL in the pods beside a service called mockraft: that is no port.
    """
    values = {variable: os.environ.get(variable, "") for variable in option.variables}
    return next((variable for variable, text in values.items() if text and not text.startswith("tcp://")), None)


def _take(word: str, rest: list[str], by_flag: Mapping[str, Option], texts: dict[str, list[str]]) -> None:
    """Take the option that a word begins with, and its value, which may be the next of `rest`."""
    if word.startswith("--"):
        flag, equals, text = word.partition("=")
    else:
        flag, text = word[:2], word[2:].removeprefix("=")
        equals = text
    option = by_flag.get(flag)
    if option is None:
        near = similar_names(flag, by_flag, limit=1)
        raise OptionError(f"there is no option {flag}" + (f"; did you mean {near[0]}?" if near else ""))
    found = texts.setdefault(option.name, [])
    if option.kind is bool:
        if equals and word.startswith("--"):
            raise OptionError(f"it takes no value, and not {text!r}", flag)
        if equals:
            rest.append(f"-{text}")  # -gc is -g -c
        if option.action is not None:
            option.action()
            raise SystemExit(ExitCode.DONE)
        found.append("true")
    elif equals:
        found.append(text)
    elif not rest or rest[-1] in by_flag:
        raise OptionError("it needs a value", flag)
    else:
        found.append(rest.pop())


def _take_words(arguments: Sequence[Option], words: list[str], texts: dict[str, list[str]]) -> None:
    """Give the words that are no options to the arguments, in their order; a list takes all that are left."""
    for option in arguments:
        if words:
            texts[option.name] = words[:] if option.is_list else words[:1]
            del words[: len(texts[option.name])]
    if words:
        raise OptionError(f"{words[0]!r} is one argument too many")


def _known(word: str, subcommands: Mapping[str, object]) -> str:
    if word in subcommands:
        return word
    raise OptionError(f"there is no command {word!r}; {did_you_mean(word, subcommands)}")


def _value(option: Option, texts: Sequence[str]) -> object:
    if option.kind is bool:
        return True
    return [option.read(text) for text in texts] if option.is_list else option.read(texts[-1])


def _value_of_variable(option: Option, text: str) -> object:
    if option.kind is bool:
        if text.lower() not in _BOOLEANS:
            raise OptionError(f"{text!r} is neither true nor false", option.flag)
        return _BOOLEANS[text.lower()]
    texts = text.split(os.pathsep) if option.kind is Path else text.split()
    return _value(option, texts if option.is_list else [text])


def _check_complete(options: Sequence[Option], values: Mapping[str, object]) -> None:
    missing = [option.flag for option in options if values[option.name] is REQUIRED]
    if missing:
        raise OptionError(f"{' and '.join(missing)} must be given")


def _parameters(run: Callable[..., object]) -> Iterator[Option]:
    """Yield the options of a function's parameters."""
    for each in inspect.signature(run, eval_str=True).parameters.values():
        if is_dataclass(each.annotation):
            yield from options_of(each.annotation)  # type: ignore[arg-type]  # a class, as an annotation
        elif get_origin(each.annotation) is Annotated:
            kind, declared = get_args(each.annotation)
            default = REQUIRED if each.default is inspect.Parameter.empty else each.default
            yield replace(typed(declared, each.name, kind), default=default)


def _as_parameters(run: Callable[..., object], values: Mapping[str, object]) -> dict[str, object]:
    """Return values as the parameters of a function."""
    found: dict[str, object] = {}
    for each in inspect.signature(run, eval_str=True).parameters.values():
        if is_dataclass(each.annotation):
            names = [declared.name for declared in fields(each.annotation)]
            found[each.name] = each.annotation(**{name: values[name] for name in names})  # type: ignore[operator]
        else:
            found[each.name] = values[each.name]
    return found


@contextmanager
def _named(path: str, options: Sequence[Option]) -> Iterator[None]:
    """Print an OptionError of the block as one line with the command and the option, and exit with code 2.

    The option has its variable behind it where the value comes from there.
    """
    try:
        yield
    except OptionError as error:
        variable = next((variable_of(each) for each in options if error.flag in each.flags), None)
        flag = f"{error.flag} (env var: '{variable}')" if variable else error.flag
        about = printable_line(f"{flag}: {error}" if flag else str(error), _ERROR_MAX)
        print(f"{path}: {about}", file=sys.stderr)
        raise SystemExit(ExitCode.USAGE) from None


def help_text(command: Command, path: str) -> str:
    """Return the help, as wide as the terminal, at most `WIDTH_MAX`."""
    import shutil

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

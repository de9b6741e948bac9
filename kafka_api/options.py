"""Options, each declared once: type, default, bounds, help and group.

    @dataclass(frozen=True, kw_only=True)
    class Options:
        brokers: int = option(3, lowest=0, help="How many simulated brokers.")

The declaration is kept in the field's metadata; `options_of` reads the fields of a class. Everything that has to do
with options is made from that: the command line with its help and completion (mockraft.cli.command_line), environment
variables and docs/reference/serve-options.md (mockraft.cli.serve.options), and checks of what a test passes to
`Controller(…)` (`check_option`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, dataclass, field, fields, replace
from enum import Enum
from math import inf
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from mockraft.wire.names import similar_names

T = TypeVar("T")

LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1
PORT_MAX: Final = 65_535

Milliseconds = NewType("Milliseconds", int)
"""A time that is given with its unit: 500ms, 9s, 2m, 1h; a number alone is milliseconds."""

REQUIRED: Final = object()
"""The default of an option that must be given."""

_UNITS_MS: Final = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_DECLARED: Final = "option"
_SPELLED: Final = {int: "an integer", bool: "True or False", str: "a text", NoneType: "None"}


class OptionError(Exception):
    """A value that an option cannot have; `flag` names the option, empty where the message does."""

    def __init__(self, message: str, flag: str = "") -> None:
        super().__init__(message)
        self.flag = flag


@contextmanager
def blaming(flag: str, *errors: type[Exception]) -> Iterator[None]:
    """Report these errors of the block, by default ValueError, as those of an option."""
    caught = errors or (ValueError,)
    try:
        yield
    except caught as error:
        about = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            about = f"{os.fspath(error.filename)}: {error.strerror}"
        raise OptionError(about, flag) from error


@dataclass(slots=True, kw_only=True)
class Option:
    """One option, or an argument, which is given by its place.

    `kind` is the type of a value on the command line, by default that of the field: int, float, bool, str, Path,
    Milliseconds or an Enum. An `is_list` option may be repeated; one `by_commas` has several values in one text.
    Numbers are from `lowest` to `highest`. `group` is the heading in --help. `choices` are the only values, `completes`
    are some that shells suggest, or a function that returns them. A secret is not for command lines, which other users
    of the machine can see: `in_a_file` is the option to give it by, and its environment variable. `action` is done at
    once, in place of the command.
    """

    name: str = ""
    flags: tuple[str, ...] = ()
    kind: Any = None
    default: object = REQUIRED
    group: str = ""
    help: str = ""
    lowest: float | None = None
    highest: float = LONG_MAX
    is_list: bool = False
    by_commas: bool = False
    is_argument: bool = False
    metavar: str = ""
    shown_default: str | None = None
    choices: tuple[str, ...] = ()
    completes: Sequence[str] | Callable[[], Iterable[str]] = ()
    variables: tuple[str, ...] = ()
    is_secret: bool = False
    action: Callable[[], None] | None = None

    @property
    def in_a_file(self) -> Option:
        """The option for a file with the value of this secret one."""
        name, about = f"{self.name}_file", f"File with the value of {self.flag}, on one line."
        return Option(
            name=name,
            flags=(f"{self.flag}-file",),
            kind=Path,
            default=None,
            group=self.group,
            help=about,
            variables=tuple(f"{each}_FILE" for each in self.variables),
        )

    @property
    def flag(self) -> str:
        """The option on the command line; the name of an argument."""
        return self.metavar if self.is_argument else self.flags[0]

    @property
    def bounds(self) -> str:
        """The bounds in words, without those of a Java type; empty for none."""
        if self.lowest is None or self.kind not in (int, float):
            return ""
        shown = f"{self.lowest:g}" if isinstance(self.lowest, float) else str(self.lowest)
        return f"at least {shown}" if self.highest in (INT_MAX, LONG_MAX) else f"{shown} to {self.highest}"

    @property
    def default_text(self) -> str:
        """The default as help and pages show it; empty for none."""
        if self.shown_default is not None:
            return self.shown_default
        default = self.default.value if isinstance(self.default, Enum) else self.default
        is_shown = default not in (None, REQUIRED, "", ()) and self.kind is not bool and not self.is_list
        return str(default) if is_shown else ""

    def read(self, text: str) -> object:
        """Return the value of a text. OptionError."""
        if self.by_commas:
            return tuple(self._one(each.strip()) for each in text.split(",") if each.strip())
        return self._one(text)

    def _one(self, text: str) -> object:
        if self.choices:
            text = self._chosen(text)
        if self.kind in (int, float):
            return self._number(text)
        try:
            return milliseconds(text) if self.kind is Milliseconds else self.kind(text)
        except ValueError as error:
            raise OptionError(str(error), self.flag) from None

    def _chosen(self, text: str) -> str:
        for choice in self.choices:
            if text.lower() == choice.lower():
                return choice
        near = similar_names(text, self.choices, limit=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise OptionError(f"{text!r} is none of {', '.join(self.choices)}{hint}", self.flag)

    def _number(self, text: str) -> float:
        try:
            number: float = self.kind(text)
        except ValueError:
            about = "is not a whole number" if self.kind is int else "is not a number"
            raise OptionError(f"{text!r} {about}", self.flag) from None
        if (self.lowest is not None and not self.lowest <= number <= self.highest) or number != number:
            raise OptionError(f"it must be {self.bounds or 'a number'}, not {text}", self.flag)
        return number


def milliseconds(text: str) -> Milliseconds:
    """Parse 500ms, 9s, 2m, 1h, or milliseconds without a unit. ValueError."""
    given = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text)
    if given is None:
        raise ValueError(f"{text!r} is no time: 500ms, 9s, 2m, 1h")
    return Milliseconds(round(float(given[1]) * _UNITS_MS[given[2]]))


def option(default: T, *flags: str, **settings: Any) -> T:
    """Declare an option as a dataclass field; `settings` are fields of `Option`. A secret is not in the `repr`."""
    declared = Option(flags=flags, default=default, **settings)
    metadata = {_DECLARED: declared}
    if isinstance(default, dict):
        copied: object = field(default_factory=lambda: dict(default), repr=not declared.is_secret, metadata=metadata)
        return cast(T, copied)
    return field(default=default, repr=not declared.is_secret, metadata=metadata)


def required(*flags: str, **settings: Any) -> Any:
    """Declare an option that must be given."""
    return field(metadata={_DECLARED: Option(flags=flags, **settings)})


def argument(default: T, **settings: Any) -> T:
    """Declare an argument as a dataclass field."""
    return option(default, is_argument=True, **settings)


def options_of(cls: type, hints: Mapping[str, object] | None = None) -> tuple[Option, ...]:
    """Return the options that the fields of a dataclass declare, in their order."""
    types: Mapping[str, object] = get_type_hints(cls) if hints is None else hints
    return tuple(of_field(each, types[each.name]) for each in fields(cls) if _DECLARED in each.metadata)


def of_field(declared: Field[object], annotation: object) -> Option:
    """Return the option of a field."""
    return typed(declared.metadata[_DECLARED], declared.name, annotation)


def typed(declared: Option, name: str, annotation: object, default: object = REQUIRED) -> Option:
    """Return a declared option with its name, and what follows from its type."""
    kind, is_list, by_commas = declared.kind or annotation, declared.is_list, declared.by_commas
    if get_origin(kind) in (UnionType, Union):
        kind = next(each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is list:
        kind, is_list = get_args(kind)[0], True
    elif get_origin(kind) is tuple:
        kind, by_commas = get_args(kind)[0], True
    choices = declared.choices
    if get_origin(kind) is Literal:
        kind, choices = str, get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        choices = tuple(str(each.value) for each in kind)
    elif kind not in (int, float, bool, str, Path, Milliseconds):
        kind, is_list = str, True  # a mapping, as NAME=VALUE
    assert declared.lowest is not None or declared.highest == LONG_MAX, f"{name}: highest needs a lowest"
    flags = declared.flags or (f"--{name.rstrip('_').replace('_', '-')}",)
    metavar = declared.metavar or (name.upper() if declared.is_argument else "")
    return replace(
        declared,
        name=name,
        flags=() if declared.is_argument else flags,
        kind=kind,
        default=declared.default if default is REQUIRED else default,
        is_list=is_list,
        by_commas=by_commas,
        metavar=metavar,
        choices=choices,
    )


def check_option(name: str, value: object, kind: object, lowest: float = -inf, highest: float = inf) -> None:
    """Raise TypeError for a value that is not of the declared type, ValueError for an integer out of its bounds.

    The types that are checked are int, bool, str, one of these or None, and a Literal.
    """
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    fits = any(type(value) is each or (each is str and isinstance(value, str)) for each in kinds)
    if not fits and all(each in _SPELLED for each in kinds):
        raise TypeError(f"{name}={value!r}: it must be {' or '.join(_SPELLED[each] for each in kinds)}")
    if get_origin(kind) is Literal and value not in get_args(kind):
        raise ValueError(f"{name}={value!r}: it must be {' or '.join(map(repr, get_args(kind)))}")
    if type(value) is int and not lowest <= value <= highest:
        bounds = f"{lowest} to {highest}" if highest < inf else f"at least {lowest}"
        raise ValueError(f"{name}={value}: it must be {bounds}")

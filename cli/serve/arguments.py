"""Reader of plain `mockraft serve` arguments, without Typer.

Importing Typer and building its validators takes a third of the time until a controller listens. Everything that is
not plain (help, abbreviations, wrong values) is left to Typer, which has the messages for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mockraft.cli.serve.options import OPTIONS, defaults, variables
from mockraft.server.options import Option

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_INTEGER = re.compile(r"-?[0-9]+")

_BY_FLAG = {option.flag: option for option in OPTIONS.values()}


class NotPlainError(Exception):
    """Arguments that Typer must read."""


def read(arguments: Sequence[str]) -> dict[str, object] | None:
    """Return every option of `serve` for these arguments and variables, and the names of those given in `given`.

    None where Typer must read them.
    """
    options = defaults()
    lists: dict[str, list[object]] = {}
    given: set[str] = set()
    rest = list(reversed(arguments))
    try:
        while rest:
            flag, equals, text = rest.pop().partition("=")
            option = _BY_FLAG[flag]
            name = option.name
            if name in given and not (option.is_list or option.kind is bool):
                return None
            if option.kind is bool:
                if equals:
                    return None
                options[name] = True
            elif option.is_list:
                lists.setdefault(name, []).append(_value(option, text if equals else rest.pop()))
            else:
                options[name] = _value(option, text if equals else rest.pop())
            given.add(name)
        for name, text in variables().items():
            if name not in given:
                if OPTIONS[name].is_list:
                    return None
                options[name] = _value(OPTIONS[name], text)
                given.add(name)
    except (KeyError, IndexError, NotPlainError):
        return None
    return {**options, **lists, "given": frozenset(given)}


def _value(option: Option, text: str) -> object:
    if text.startswith("-"):
        raise NotPlainError
    if option.kind is bool:
        return _BOOLEANS[text]
    if option.kind is not int:
        return option.kind(text)
    if _INTEGER.fullmatch(text) is None:
        raise NotPlainError
    number = int(text)
    too_small = option.lowest is not None and number < option.lowest
    if too_small or (option.highest is not None and number > option.highest):
        raise NotPlainError
    return number

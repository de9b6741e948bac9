"""The arguments of `mockraft serve`, read without Typer where they are plain.

Typer makes a validator of pydantic's for every option: that takes a third of the time until a controller listens.
What is not plain (help, abbreviations, anything wrong) is left to Typer, which has the words for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer.models import OptionInfo

_INTEGER = re.compile(r"-?[0-9]+")


class NotPlainError(Exception):
    """Arguments for Typer to read."""


def read(command: Callable[..., None], arguments: Sequence[str]) -> dict[str, Any] | None:
    """The parameters that a command gets for arguments, None where Typer must read them."""
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    names = {_flag(name, hint): name for name, hint in hints.items()}
    # As inspect.signature has them, of a function whose parameters all have a default.
    options: dict[str, Any] = dict(zip(hints, command.__defaults__ or (), strict=True))
    given: set[str] = set()
    rest = list(reversed(arguments))
    try:
        while rest:
            flag, equals, text = rest.pop().partition("=")
            name = names[flag]
            kinds = _kinds(hints[name])
            if kinds == {bool}:
                options[name] = _only(not equals, True)
            else:
                value = _value(hints[name], kinds, text if equals else rest.pop())
                is_list = any(getattr(kind, "__origin__", None) is list for kind in kinds)
                options[name] = [*(options[name] or []), value] if is_list else _only(name not in given, value)
            given.add(name)
    except (KeyError, IndexError, NotPlainError):
        return None
    return options


def _flag(name: str, hint: Any) -> str:
    declared: Sequence[str] = _option(hint).param_decls or ()
    return declared[0] if declared else f"--{name.replace('_', '-')}"


def _option(hint: Any) -> OptionInfo:
    option = get_args(hint)[1]
    assert isinstance(option, OptionInfo)
    return option


def _kinds(hint: Any) -> set[Any]:
    """The types of an option, None aside."""
    kind = get_args(hint)[0]
    is_union = type(None) in get_args(kind)
    return {each for each in (get_args(kind) if is_union else (kind,)) if each is not type(None)}


def _value(hint: Any, kinds: set[Any], text: str) -> Any:
    if text.startswith("-"):
        raise NotPlainError
    (kind,) = (get_args(each)[0] if get_args(each) else each for each in kinds)
    if kind is int:
        option = _option(hint)
        number = int(_only(_INTEGER.fullmatch(text) is not None, text))
        too_small = option.min is not None and number < option.min
        too_large = option.max is not None and number > option.max
        return _only(not too_small and not too_large, number)
    return _only(kind in (str, Path), kind(text))


def _only(is_plain: bool, value: Any) -> Any:
    if not is_plain:
        raise NotPlainError
    return value

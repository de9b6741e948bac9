"""Checks of the values that a test gives to the options of a controller or a simulated broker."""

from __future__ import annotations

from math import inf
from types import NoneType, UnionType
from typing import Final, Literal, get_args, get_origin

_SPELLED: Final = {int: "an integer", bool: "True or False", str: "a text", NoneType: "None"}


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

"""Text for people: names from the wire cannot steer the terminal, or pretend to be other lines.

Characters that are not printable (control characters, with which escape sequences begin, and those that change the
direction of text or are invisible) become JSON's escapes, so that JSON stays JSON: `\\u001b`, `\\u202e`.
"""

from __future__ import annotations

import json
from typing import Final


class _Escapes(dict[int, str]):
    """The text of each code point, for `str.translate`; those of `kept` stay."""

    def __init__(self, kept: str = "") -> None:
        super().__init__({ord(each): each for each in kept})

    def __missing__(self, code: int) -> str:
        character = chr(code)  # not kept: clients choose them
        return character if character.isprintable() else json.dumps(character)[1:-1]


_LINES: Final = _Escapes("\n\t")
_ONE_LINE: Final = _Escapes()


def printable(text: str) -> str:
    """Return text that may have several lines, and tabs, with all else that is not printable escaped."""
    return text if text.isprintable() else text.translate(_LINES)


def printable_line(text: str, most: int | None = None) -> str:
    """Return text as a single line with all that is not printable escaped; longer than `most`, it is cut first."""
    if most is not None and len(text) > most:
        return f"{printable_line(text[:most])}… ({len(text):,} characters)"
    return text if text.isprintable() else text.translate(_ONE_LINE)


def printable_value(value: object) -> object:
    """Return a value that a template shows, printable if it is text; text that is marked safe stays."""
    return printable(value) if type(value) is str else value

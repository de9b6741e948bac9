"""The text of a Java `.properties` file, as `java.util.Properties` loads and stores it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_ENDS = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LETTER_OF = {sign: letter for letter, sign in _LETTERS.items()}
_WHITE = " \t\f"


def read(data: bytes) -> dict[str, str]:
    """Return every key with its last value, read as ISO 8859-1 with `\\uXXXX`. ValueError for an invalid `\\u`."""
    pairs = (_PAIR.match(line) for line in _logical_lines(data.decode("latin-1")))
    return {_ESCAPE.sub(_unescaped, pair[1]): _ESCAPE.sub(_unescaped, pair[2]) for pair in pairs if pair}


def write(properties: Mapping[str, str]) -> bytes:
    """Return the file with these pairs, in this order, under an empty comment as in Kafka's files."""
    lines = ["#", *(f"{_escaped(key, _WHITE)}={_escaped(value)}" for key, value in properties.items())]
    return ("\n".join(lines) + "\n").encode("ascii")


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines without blank ones and comments; a backslash at the end joins a line with the next."""
    pending: str | None = None
    for natural in _ENDS.split(text):
        line = natural.lstrip(_WHITE)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
        else:
            yield line
            pending = None
    if pending:
        yield pending


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] != "u":
        return _LETTERS.get(escape, escape)
    if not re.fullmatch("u[0-9a-fA-F]{4}", escape):
        raise ValueError(r"Malformed \uxxxx encoding.")
    return chr(int(escape[1:], 16))


def _escaped(text: str, spaces: str = "") -> str:
    """Escape as Properties.store does; a space is escaped in a key, and at the start of a value."""
    signs = []
    for index, sign in enumerate(text):
        if sign in _LETTER_OF:
            signs.append("\\" + _LETTER_OF[sign])
        elif sign in "\\=:#!" or (sign == " " and (spaces or index == 0)):
            signs.append("\\" + sign)
        elif " " <= sign <= "~":
            signs.append(sign)
        else:
            units = sign.encode("utf-16-be", "surrogatepass")
            signs += [f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2)]
    return "".join(signs)

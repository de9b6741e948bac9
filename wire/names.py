"""Names as JSON and Python spell them, and hints for unknown ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from keyword import iskeyword

_LISTED_MAX = 32
"""A longer list of known names helps nobody; the similar ones of it are shown."""

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def similar_names(name: object, known: Iterable[str], limit: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return the known names that are most like an unknown one, whatever their case; the most similar first."""
    # Imported here: only errors need it.
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    return [by_lower[found] for found in get_close_matches(str(name).lower(), by_lower, limit, cutoff)]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the hint of every error about an unknown name: similar names, or all known ones if none is similar."""
    names = list(known)
    if near := similar_names(name, names):
        return f"did you mean {' or '.join(near)}?"
    if len(names) > _LISTED_MAX:
        return f"there are {len(names)}, among them {', '.join(similar_names(name, names, cutoff=0) or names[:3])}"
    return f"there are: {', '.join(names) or 'none'}"


def attribute(name: str) -> str:
    """Return the attribute of a field: `current_metadata_offset`, and with a trailing underscore for a keyword."""
    text = _WORD_STARTS.sub("_", name).lower()
    return text + "_" if iskeyword(text) else text


def snake(name: str) -> str:
    """Return `currentMetadataOffset` as Python spells it; a snake_case name stays as it is."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def camel(name: str) -> str:
    """Return `current_metadata_offset` as JSON spells it."""
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(word.capitalize() for word in rest)

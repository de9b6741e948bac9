"""What is wrong with a stub that somebody wrote, said so that they can mend it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")

_WORDS = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}


class StubError(ValueError):
    """A stub cannot be made of what was given; `field` is where that stands (`match.where.brokerId`)."""

    def __init__(self, what: str, field: str = "") -> None:
        super().__init__(f"{field}: {what}" if field else what)
        self.what = what
        self.field = field

    def within(self, outer: str) -> StubError:
        """The same, of a field that stands in another one."""
        inner = f"{outer}{self.field}" if self.field.startswith("[") else f"{outer}.{self.field}"
        return StubError(self.what, inner if self.field else outer)


def unknown(what: str, name: object, there_are: Iterable[str]) -> str:
    """Says that there is no such thing, and which one may have been meant."""
    names = list(there_are)
    lowered = {known.lower(): known for known in names}
    near = [lowered[found] for found in get_close_matches(str(name).lower(), lowered, 3)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"
    return f"there is no {what} {name!r}; {hint}"


def snake(name: str) -> str:
    """`currentMetadataOffset` as Python spells it; a name that is in snake_case already stays."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def camel(name: str) -> str:
    """`current_metadata_offset` as JSON spells it."""
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(word.capitalize() for word in rest)


def read_parameters(kind: type[T], given: Mapping[str, Any], what: str) -> T:
    """A dataclass from JSON: names in camelCase or snake_case, values of the annotated plain types.

    Raises StubError that names what is unknown, missing or of the wrong type.
    """
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in given.items():
        attribute = snake(str(name))
        if attribute not in known:
            raise StubError(unknown(f"parameter of {what}", name, map(camel, known)), str(name))
        wanted = hints[attribute]
        if wanted is float and type(value) is int:
            value = float(value)
        if wanted in _WORDS and type(value) is not wanted:
            raise StubError(f"expected {_WORDS[wanted]}, got {value!r}", camel(attribute))
        values[attribute] = value
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise StubError(f"{what} needs it", camel(name))
    return kind(**values)


def write_parameters(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, named as in JSON."""
    return {
        camel(field.name): getattr(value, field.name)
        for field in fields(value)
        if field.init and (field.default is MISSING or getattr(value, field.name) != field.default)
    }

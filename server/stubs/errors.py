"""Errors in stubs that somebody wrote, and the reading of parameters from JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, TypeVar

from mockraft.wire.names import camel, did_you_mean, snake

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
K = TypeVar("K", int, str)

_PLAIN = {
    "bool": (bool, "true or false"),
    "int": (int, "an integer"),
    "float": (float, "a number"),
    "str": (str, "a text"),
}
"""Plain types by their annotation, which is a text (`from __future__ import annotations`)."""


class StubError(ValueError):
    """A stub cannot be made from what was given; `field` is the path to it (`match.where.brokerId`)."""

    def __init__(self, what: str, field: str = "") -> None:
        super().__init__(f"{field}: {what}" if field else what)
        self.what = what
        self.field = field

    def within(self, outer: str) -> StubError:
        """Return the same error for a field inside another one."""
        inner = f"{outer}{self.field}" if self.field.startswith("[") else f"{outer}.{self.field}"
        return StubError(self.what, inner if self.field else outer)


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return the text for an unknown name, with similar names."""
    return f"there is no {what} {name!r}; {did_you_mean(name, known)}"


def check_known(scope: str, expected: object, known: Collection[K], meets: Callable[[K], object]) -> None:
    """Raise StubError if a condition on nodes, brokers or listeners meets none that there is, if there are any."""
    if not known or any(map(meets, known)):
        return
    hint = did_you_mean(expected, map(str, known)) if scope == "listener" else f"there are {sorted(known)}"
    raise StubError(f"no {scope} {expected}: {hint}", f"match.{scope}")


def read_parameters(kind: type[T], given: Mapping[str, object], what: str) -> T:
    """Read a dataclass from JSON: names in camelCase or snake_case, values of the annotated plain types.

    Raise StubError that names what is unknown, missing or of the wrong type.
    """
    known = {field.name: field for field in fields(kind) if field.init}
    values: dict[str, object] = {}
    for name, value in given.items():
        attribute = snake(str(name))
        if attribute not in known:
            raise StubError(unknown(f"parameter of {what}", name, map(camel, known)), str(name))
        wanted, described = _PLAIN.get(str(known[attribute].type), (None, ""))
        if wanted is float and type(value) is int:
            value = float(value)
        if wanted is not None and type(value) is not wanted:
            raise StubError(f"expected {described}, got {value!r}", camel(attribute))
        values[attribute] = value
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise StubError(f"{what} needs it", camel(name))
    return kind(**values)


def write_parameters(value: DataclassInstance) -> dict[str, object]:
    """Return the fields of a dataclass that differ from their defaults, named as in JSON."""
    return {
        camel(field.name): getattr(value, field.name)
        for field in fields(value)
        if field.init and (field.default is MISSING or getattr(value, field.name) != field.default)
    }

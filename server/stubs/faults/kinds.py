"""What kinds of faults there are and what each may be told: one table for every door and the docs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from mockraft.server.double import Double
    from mockraft.server.stubs.faults.toxics import Toxic

REQUIRED: Final = object()
"""The default of a parameter that has none: it must be said."""

_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "string": (str,),
    "choice": (str,),
    "bool": (bool,),
    "json": (dict, list, str, int, float, bool, type(None)),
}


def camel(name: str) -> str:
    """A snake_case name as JSON says it."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def snake(name: str) -> str:
    """A camelCase name as Python says it; one that is so already stays."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found.group().lower(), name)


def near(name: str, names: Iterable[str]) -> str:
    """A hint at what a name that is not there may have meant: "; did you mean …?" or what there is."""
    names = list(names)
    close = difflib.get_close_matches(name, names, 1, 0.6)
    return f"; did you mean {close[0]}?" if close else f"; there is {', '.join(names) or 'none'}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that a kind of fault may be told; `type` is int, float, string, bool, choice or json.

    `default` is REQUIRED where it must be said. Numbers are from `minimum` to `maximum`. `grows`: a plan's ramp has it
    grow from 0. `drawn` are the lowest and highest value that chaos draws; without it chaos leaves the default.
    """

    name: str
    type: str
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    grows: bool = False
    drawn: tuple[float, float] | None = None

    def read(self, value: Any) -> Any:
        """The value, checked. Raises ValueError that says what it may be."""
        said = f"params.{camel(self.name)}={value!r}"
        is_bool = isinstance(value, bool) and self.type not in ("bool", "json")
        if is_bool or not isinstance(value, _TYPES[self.type]):
            raise ValueError(f"{said}: it is a{'n' if self.type == 'int' else ''} {self.type} ({self.help})")
        if self.choices and value not in self.choices:
            raise ValueError(f"{said}: it is one of {', '.join(self.choices)}")
        number: Any = value
        if self.minimum is not None and number < self.minimum:
            raise ValueError(f"{said}: it is at least {self.minimum:g} ({self.help})")
        if self.maximum is not None and number > self.maximum:
            raise ValueError(f"{said}: it is at most {self.maximum:g} ({self.help})")
        return value

    def to_json(self) -> dict[str, Any]:
        """What a form needs to ask for it."""
        is_required = self.default is REQUIRED
        tree: dict[str, Any] = {
            "name": camel(self.name),
            "type": self.type,
            "required": is_required,
            "default": None if is_required else self.default,
            "help": self.help,
        }
        if self.choices:
            tree["choices"] = list(self.choices)
        return tree


Undo = Callable[[], None]


class InForce(NamedTuple):
    """A preset that is switched on: how to take away what it put, and how often it was met so far."""

    undo: Undo
    fired: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault. It is a preset, which is switched on by `on(double, params)`, or a toxic of connections' bytes.

    `params` have every parameter by its snake_case name. What `on` gives takes the preset's work back again.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    on: Callable[[Double, Mapping[str, Any]], Undo | InForce] | None = None
    toxic: type[Toxic] | None = None

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters by snake_case name, from names in either case. Raises ValueError that names the parameter."""
        known = {parameter.name: parameter for parameter in self.parameters}
        said = {snake(name): value for name, value in params.items()}
        for name in said:
            if name not in known:
                raise ValueError(
                    f"params.{camel(name)}: {self.name} has no such parameter{near(camel(name), map(camel, known))}"
                )
        for name, parameter in known.items():
            if name not in said and parameter.default is REQUIRED:
                raise ValueError(f"params.{camel(name)}: {self.name} must be told it ({parameter.help})")
        return {
            name: parameter.read(said[name]) if name in said else parameter.default for name, parameter in known.items()
        }

    def to_json(self) -> dict[str, Any]:
        """The kind as the page and the command line list it."""
        return {
            "name": self.name,
            "summary": self.summary,
            "preset": self.on is not None,
            "parameters": [parameter.to_json() for parameter in self.parameters],
        }

"""Kinds of faults and their parameters: one table for Python, HTTP, the command line and the docs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from mockraft.wire.names import camel, did_you_mean, snake

if TYPE_CHECKING:
    from mockraft.server.stubs.faults.target import FaultTarget
    from mockraft.server.stubs.faults.toxics import Toxic
    from mockraft.wire.json_form import Json, Tree


class Required(Enum):
    """Default of a required parameter."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED

_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "string": (str,),
    "choice": (str,),
    "bool": (bool,),
    "json": (dict, list, str, int, float, bool, type(None)),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kind of fault; `type` is int, float, string, bool, choice or json.

    `default` is REQUIRED where there is none. Numbers are from `minimum` to `maximum`. `grows`: a plan's ramp raises it
    from 0. `drawn` are the lowest and highest value that chaos draws; without it chaos leaves the default.
    """

    name: str
    type: str
    default: Json | Required
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    grows: bool = False
    drawn: tuple[float, float] | None = None

    def read(self, value: Json) -> Json:
        """Return the checked value. Raise ValueError that names the allowed values."""
        field = f"params.{camel(self.name)}={value!r}"
        is_bool = isinstance(value, bool) and self.type not in ("bool", "json")
        if is_bool or not isinstance(value, _TYPES[self.type]):
            raise ValueError(f"{field}: must be a{'n' if self.type == 'int' else ''} {self.type} ({self.help})")
        if self.choices and value not in self.choices:
            raise ValueError(f"{field}: must be one of {', '.join(self.choices)}")
        if isinstance(value, int | float):
            if self.minimum is not None and value < self.minimum:
                raise ValueError(f"{field}: must be at least {self.minimum:g} ({self.help})")
            if self.maximum is not None and value > self.maximum:
                raise ValueError(f"{field}: must be at most {self.maximum:g} ({self.help})")
        return value

    def to_json(self) -> Tree:
        """Return what a form needs to show an input for it."""
        tree: Tree = {
            "name": camel(self.name),
            "type": self.type,
            "required": self.default is REQUIRED,
            "default": None if self.default is REQUIRED else self.default,
            "help": self.help,
        }
        return tree | ({"choices": self.choices} if self.choices else {})


class Params(dict[str, "Json"]):
    """Checked parameters of a fault by snake_case name, read as the type that the table of its kind gives them."""

    def number(self, name: str) -> float:
        """Return a number; AssertionError if the table gives the parameter another type or no value."""
        value = self[name]
        assert isinstance(value, int | float), name
        return value

    def integer(self, name: str) -> int:
        """Return an integer, as `number`."""
        value = self[name]
        assert isinstance(value, int), name
        return value

    def text(self, name: str) -> str:
        """Return a text, as `number`."""
        value = self[name]
        assert isinstance(value, str), name
        return value


Undo = Callable[[], None]


class InForce(NamedTuple):
    """A preset that is switched on: how to take it back, and how often it took effect so far."""

    undo: Undo
    fired: Callable[[], int]


SwitchOn: TypeAlias = "Callable[[FaultTarget, Params], Undo | InForce]"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: a preset, switched on by `on(double, params)`, or a toxic of connections' bytes.

    `params` have every parameter by its snake_case name. What `on` returns takes the preset's work back again.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    on: SwitchOn | None = None
    toxic: type[Toxic] | None = None

    def check_names(self, names: Iterable[str], spelled: Callable[[str], str] = str) -> None:
        """Raise ValueError for a name that is no parameter's; the names are shown as JSON spells them, or Python."""
        known = [parameter.name for parameter in self.parameters]
        for name in names:
            if name not in known:
                hint = did_you_mean(name, map(spelled, known))
                raise ValueError(f"params.{spelled(name)}: {self.name} has no such parameter; {hint}")

    def read(self, params: Mapping[str, Json]) -> Params:
        """Return all parameters by snake_case name, from names in either case. ValueError names the parameter."""
        given = {snake(name): value for name, value in params.items()}
        self.check_names(given, camel)
        checked = Params()
        for parameter in self.parameters:
            name = parameter.name
            if name in given:
                checked[name] = parameter.read(given[name])
            elif parameter.default is REQUIRED:
                raise ValueError(f"params.{camel(name)}: {self.name} requires it ({parameter.help})")
            else:
                checked[name] = parameter.default
        return checked

    def to_json(self) -> Tree:
        """Return the kind as the live page and the command line list it."""
        return {
            "name": self.name,
            "summary": self.summary,
            "preset": self.on is not None,
            "parameters": [parameter.to_json() for parameter in self.parameters],
        }

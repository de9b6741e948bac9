"""Options of a command as the fields of a dataclass: each is declared once, and they are passed on as one object.

    @dataclass(frozen=True, kw_only=True)
    class Options:
        brokers: int = option(3, min=0, help="How many simulated brokers.")

`as_typer(run)` is the function that Typer reads. Commands share options by inheriting or taking the same class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

T = TypeVar("T")

_TYPER = "typer"


def option(default: T, *names: str, **settings: Any) -> T:
    """Declare an option with its default; names and settings are those of `typer.Option`."""
    return field(default=default, metadata={_TYPER: typer.Option(*names, **settings)})


def required(*names: str, **settings: Any) -> Any:
    """Declare an option that must be given."""
    return field(metadata={_TYPER: typer.Option(*names, **settings)})


def argument(default: T, **settings: Any) -> T:
    """Declare an argument; the settings are those of `typer.Argument`."""
    return field(default=default, metadata={_TYPER: typer.Argument(**settings)})


def as_typer(run: Callable[..., None]) -> Callable[..., None]:
    """Return the form of a command in which each field of a dataclass that it takes is a parameter."""
    taken = inspect.signature(run, eval_str=True).parameters.values()
    classes: dict[str, Any] = {each.name: each.annotation for each in taken if is_dataclass(each.annotation)}

    def command(**given: Any) -> None:
        for name, cls in classes.items():
            given[name] = cls(**{each.name: given.pop(each.name) for each in fields(cls)})
        run(**given)

    parameters = [found for each in taken for found in _parameters(each)]
    command.__dict__["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = run.__doc__
    return command


def _parameters(taken: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """Yield the parameter, or those for the fields of its class."""
    if not is_dataclass(taken.annotation):
        yield taken.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        return
    hints: dict[str, Any] = get_type_hints(taken.annotation)
    for each in fields(taken.annotation):
        yield inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=Annotated[hints[each.name], each.metadata[_TYPER]],
        )

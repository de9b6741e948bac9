"""A timed script for a fleet as data: a JSON or TOML file with one list, `steps`.

A step has a time (`at_s`, seconds after the start), an action (`do`) and a selection of brokers: `brokers` (ids) and
`racks` filter, `count` or `percent` then draw from the rest by the run's seed. `over_s` spreads the step over so many
seconds. See `Do` for the fields of each action; docs/how-to/brokers/fleets.md has examples.
"""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any


class ScriptError(ValueError):
    """A script is invalid; the text names the place and the allowed values."""


class Do(Enum):
    """The action of a step; the values are those of `do`."""

    KILL = "kill"
    STOP = "stop"
    ROLLING_RESTART = "rolling-restart"
    FREEZE = "freeze"
    DISCONNECT = "disconnect"
    FAIL_LOG_DIR = "fail-log-dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStep:
    """One step; times are seconds.

    `back_after_s`: a killed or stopped broker starts again, a frozen one resumes, after so long; never when None. A
    rolling restart stops `at_once` brokers every `every_s` and starts each again `back_after_s` after its stop began.
    """

    do: Do
    at_s: float = 0.0
    brokers: tuple[int, ...] | None = None
    racks: tuple[str, ...] | None = None
    count: int | None = None
    percent: float | None = None
    over_s: float = 0.0
    back_after_s: float | None = None
    at_once: int = 1
    every_s: float = 10.0


_COMMON = {"do", "at_s", "brokers", "racks", "count", "percent"}
_OWN = {
    Do.KILL: {"over_s", "back_after_s"},
    Do.STOP: {"over_s", "back_after_s"},
    Do.ROLLING_RESTART: {"at_once", "every_s", "back_after_s"},
    Do.FREEZE: {"over_s", "back_after_s"},
    Do.DISCONNECT: {"over_s"},
    Do.FAIL_LOG_DIR: {"over_s"},
}


def read_script(path: Path) -> tuple[ScriptStep, ...]:
    """Read the steps of a file: TOML when its name ends in .toml, else JSON. Raises OSError and ScriptError."""
    try:
        text = path.read_text()
        tree = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ScriptError(f"{path} is no {kind}: {error}") from None
    try:
        return steps_of(tree)
    except ScriptError as error:
        raise ScriptError(f"{path}: {error}") from None


def steps_of(tree: Any) -> tuple[ScriptStep, ...]:
    """Return the steps of a parsed script. Raises ScriptError."""
    if not isinstance(tree, dict) or set(tree) != {"steps"} or not isinstance(tree["steps"], list):
        raise ScriptError('a script is one object with one list, {"steps": […]}')
    return tuple(_step(f"steps[{number}]", each) for number, each in enumerate(tree["steps"]))


def _step(where: str, tree: Any) -> ScriptStep:
    if not isinstance(tree, dict):
        raise ScriptError(f"{where} is no object")
    try:
        do = Do(tree.get("do"))
    except ValueError:
        known = ", ".join(each.value for each in Do)
        raise ScriptError(f"{where}.do is {json.dumps(tree.get('do'))}; it can be {known}") from None
    allowed = _COMMON | _OWN[do]
    for name in tree:
        if name not in allowed:
            raise ScriptError(f"{where}.{name} is not for {do.value}; that takes {', '.join(sorted(allowed))}")
    if "count" in tree and "percent" in tree:
        raise ScriptError(f"{where} has count and percent; give one of them")
    given = {name: _value(f"{where}.{name}", name, value) for name, value in tree.items() if name != "do"}
    if do is Do.ROLLING_RESTART:
        given.setdefault("back_after_s", 1.0)
    return ScriptStep(do=do, **given)


def _value(where: str, name: str, value: Any) -> Any:
    if name in ("brokers", "racks"):
        kind: type = int if name == "brokers" else str
        if not isinstance(value, list) or not value or any(type(each) is not kind for each in value):
            raise ScriptError(f"{where} is a list of {'broker ids' if kind is int else 'rack names'}")
        return tuple(value)
    if name in ("count", "at_once"):
        if type(value) is not int or value < 1:
            raise ScriptError(f"{where} is a whole number from 1 on")
        return value
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise ScriptError(f"{where} is a number from 0 on")
    if name == "percent" and value > 100:
        raise ScriptError(f"{where} is at most 100")
    return float(value)

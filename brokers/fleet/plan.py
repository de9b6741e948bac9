"""Expansion of a script and a seed into timed actions, each on one broker: always the same for the same input.

A shard is one process's part of it.

The plan does not look at a running fleet: a wave starts at its time even if the one before has not finished.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from mockraft.files.trees import read_tree


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
    """Read the steps of a file: by its name TOML or YAML, else JSON. Raises GivenFileError and ScriptError."""
    given = read_tree(path)
    try:
        return steps_of(given.tree)
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


class Act(Enum):
    """An action on one broker."""

    START = "start"
    STOP = "stop"
    KILL = "kill"
    FREEZE = "freeze"
    THAW = "thaw"
    DISCONNECT = "disconnect"
    FAIL_LOG_DIR = "fail-log-dir"


class Action(NamedTuple):
    """Perform this action on that broker so many ms after the start."""

    at_ms: int
    broker_id: int
    act: Act


_FIRST_AND_LAST = {
    Do.KILL: (Act.KILL, Act.START),
    Do.STOP: (Act.STOP, Act.START),
    Do.ROLLING_RESTART: (Act.STOP, Act.START),
    Do.FREEZE: (Act.FREEZE, Act.THAW),
    Do.DISCONNECT: (Act.DISCONNECT, None),
    Do.FAIL_LOG_DIR: (Act.FAIL_LOG_DIR, None),
}


def plan(racks: Mapping[int, str | None], ramp_ms: int, steps: Sequence[ScriptStep], seed: int) -> list[Action]:
    """Return the actions in order of time: start all brokers (id → rack) evenly over the ramp, then the steps.

    Raises ScriptError for a step that names an unknown broker or rack.
    """
    rng = random.Random(seed)
    actions = [Action(at_ms, broker_id, Act.START) for at_ms, broker_id in _spread(racks, 0, ramp_ms)]
    for number, step in enumerate(steps):
        chosen = _chosen(f"steps[{number}]", step, racks, rng)
        first, last = _FIRST_AND_LAST[step.do]
        for at_ms, broker_id in _times(step, chosen):
            actions.append(Action(at_ms, broker_id, first))
            if last is not None and step.back_after_s is not None:
                actions.append(Action(at_ms + _ms(step.back_after_s), broker_id, last))
    return sorted(actions, key=lambda action: action.at_ms)


def _times(step: ScriptStep, chosen: Sequence[int]) -> Iterator[tuple[int, int]]:
    if step.do is not Do.ROLLING_RESTART:
        yield from _spread(chosen, _ms(step.at_s), _ms(step.over_s))
        return
    for number, broker_id in enumerate(chosen):
        yield _ms(step.at_s + number // step.at_once * step.every_s), broker_id


def _chosen(where: str, step: ScriptStep, racks: Mapping[int, str | None], rng: random.Random) -> list[int]:
    """Return the brokers of a step: drawn ones in the order of the draw, others by id."""
    for broker_id in step.brokers or ():
        if broker_id not in racks:
            raise ScriptError(f"{where}.brokers: the fleet has no broker {broker_id}")
    for rack in step.racks or ():
        if rack not in racks.values():
            raise ScriptError(f"{where}.racks: no broker is in rack {rack}")
    meant = [
        broker_id
        for broker_id, rack in racks.items()
        if (step.brokers is None or broker_id in step.brokers) and (step.racks is None or rack in step.racks)
    ]
    if step.percent is not None:
        return rng.sample(meant, round(len(meant) * step.percent / 100))
    if step.count is not None:
        return rng.sample(meant, min(step.count, len(meant)))
    return meant


def _spread(broker_ids: Iterable[int], from_ms: int, over_ms: int) -> Iterator[tuple[int, int]]:
    ids = list(broker_ids)
    for number, broker_id in enumerate(ids):
        yield from_ms + over_ms * number // len(ids), broker_id


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The brokers (id → rack) of one process and their actions, in order of time.

    `seed` determines directory ids, not incarnation ids. `command_config` is a file of client properties.
    """

    bootstrap: tuple[tuple[str, int], ...]
    cluster_id: str
    racks: Mapping[int, str | None]
    actions: Sequence[Action]
    seed: int
    shares_replication: bool = True
    log_dirs_per_broker: int = 1
    heartbeat_interval_ms: int = 2_000
    session_timeout_ms: int = 9_000
    command_config: str | None = None

    def to_tree(self) -> dict[str, Any]:
        """Return the JSON form; :func:`shard_of` reads it."""
        return {
            "bootstrap": [list(address) for address in self.bootstrap],
            "racks": list(self.racks.items()),
            "actions": [[action.at_ms, action.broker_id, action.act.value] for action in self.actions],
            **{name: getattr(self, name) for name in _PLAIN},
        }


_PLAIN = (
    "cluster_id",
    "seed",
    "shares_replication",
    "log_dirs_per_broker",
    "heartbeat_interval_ms",
    "session_timeout_ms",
    "command_config",
)


def shard_of(tree: dict[str, Any]) -> Shard:
    """Return the shard from a tree of :meth:`Shard.to_tree`."""
    return Shard(
        bootstrap=tuple((host, port) for host, port in tree["bootstrap"]),
        racks=dict(tree["racks"]),
        actions=[Action(at_ms, broker_id, Act(act)) for at_ms, broker_id, act in tree["actions"]],
        **{name: tree[name] for name in _PLAIN},
    )


def split_shards(
    racks: Mapping[int, str | None], actions: Sequence[Action], processes: int, **rest: Any
) -> list[Shard]:
    """Return shards for so many processes, brokers assigned round-robin; `rest` are the other fields of a Shard."""
    ids = list(racks)
    shards = []
    for number in range(min(processes, len(ids))):
        own = {broker_id: racks[broker_id] for broker_id in ids[number::processes]}
        shards.append(Shard(racks=own, actions=[each for each in actions if each.broker_id in own], **rest))
    return shards

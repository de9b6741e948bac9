"""Repeatable chaos: kinds, targets, parameters and times drawn from a seed, as a plan."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

from mockraft.server.stubs.faults.fault import REQUIRED, Kind, Parameter
from mockraft.server.stubs.faults.presets import KINDS
from mockraft.wire.names import camel, did_you_mean, snake

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree

EVERYBODY: Mapping[str, Json] = {}


def chaos(
    *,
    seed: int,
    kinds: Iterable[str] | None = None,
    targets: Sequence[Mapping[str, Json]] = (EVERYBODY,),
    broker_ids: Sequence[int] = (),
    mean_interval_ms: int = 5_000,
    mean_duration_ms: int = 2_000,
    length_ms: int = 60_000,
) -> list[Tree]:
    """Return a plan for `Faults.run`; the same arguments give the same plan.

    Faults begin `mean_interval_ms` apart and last `mean_duration_ms`, both on average, until `length_ms`. `kinds`
    default to all toxics of bytes. A toxic affects one of `targets`, matches of connections (`{"clientId": "admin"}`);
    a preset that needs a broker gets one of `broker_ids`. Raise ValueError for an unknown kind, or one with parameters
    that cannot be drawn.
    """
    for name, value in (("mean_interval_ms", mean_interval_ms), ("mean_duration_ms", mean_duration_ms)):
        if value < 1:
            raise ValueError(f"{name}={value}: must be 1 or more")
    if not targets:
        raise ValueError("targets: must not be empty; omit it to affect all clients")
    drawn = _kinds(kinds)
    rng = Random(f"chaos/{seed}")
    plan: list[Tree] = []
    at_ms = int(rng.expovariate(1 / mean_interval_ms))
    while at_ms < length_ms:
        kind = rng.choice(drawn)
        fault: Tree = {"kind": kind.name, "params": _params(kind, broker_ids, rng)}
        if kind.toxic is not None:
            fault |= {"match": dict(rng.choice(targets)), "seed": rng.randrange(1 << 31)}
        duration_ms = 1 + min(int(rng.expovariate(1 / mean_duration_ms)), length_ms - at_ms)
        plan.append({"at": at_ms, "duration": duration_ms, "fault": fault})
        at_ms += 1 + int(rng.expovariate(1 / mean_interval_ms))
    return plan


def chaos_from_json(tree: Mapping[str, Json]) -> list[Tree]:
    """Return the plan of a stub file's `{"seed": 7, "meanIntervalMs": 1000, …}`. ValueError names the field."""
    known = inspect.signature(chaos).parameters
    given = {snake(name): value for name, value in tree.items()}
    for name in given:
        if name not in known:
            raise ValueError(
                f"chaos.{camel(name)}: there is no such field; {did_you_mean(camel(name), map(camel, known))}"
            )
    for name, value in given.items():
        wanted = list if name in ("kinds", "targets", "broker_ids") else int
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise ValueError(f"chaos.{camel(name)}={value!r}: must be {'a list' if wanted is list else 'an integer'}")
    if "seed" not in given:
        raise ValueError("chaos.seed: is required, so that the run can be repeated")
    make: Callable[..., list[Tree]] = chaos
    return make(**given)


def _kinds(names: Iterable[str] | None) -> list[Kind]:
    if names is None:
        return [kind for kind in KINDS.values() if kind.toxic is not None]
    chosen = []
    for name in names:
        if name not in KINDS:
            raise ValueError(f"kinds: there is no {name}; {did_you_mean(name, KINDS)}")
        chosen.append(KINDS[name])
    if not chosen:
        raise ValueError("kinds: must not be empty; omit it for all toxics of bytes")
    return chosen


def _params(kind: Kind, broker_ids: Sequence[int], rng: Random) -> Tree:
    params = {camel(one.name): _value(kind, one, broker_ids, rng) for one in kind.parameters}
    return {name: value for name, value in params.items() if value is not None}


def _value(kind: Kind, parameter: Parameter, broker_ids: Sequence[int], rng: Random) -> Json:
    if parameter.name == "broker_id" and broker_ids:
        return rng.choice(broker_ids)
    if parameter.choices:
        return rng.choice(parameter.choices)
    if parameter.drawn is not None:
        low, high = parameter.drawn
        return (
            rng.randint(int(low), int(high)) if parameter.type == "int" else round(low + (high - low) * rng.random(), 6)
        )
    if parameter.default is REQUIRED:
        about = "give broker_ids" if parameter.name == "broker_id" else "chaos cannot draw it"
        raise ValueError(f"kinds: {kind.name} requires {camel(parameter.name)}: {about}")
    return None

"""A timed plan of faults: which one is on when, for how long, and how slowly it grows. Time is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from mockraft.kafka_api.api import NEVER_MS
from mockraft.server.stubs.faults.fault import Fault
from mockraft.wire.names import did_you_mean

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree

RAMP_STEP_MS = 100
"""Interval between the steps of a ramp."""

RETRY_MS = 1_000
"""Interval at which a preset that failed is switched on again while its step lasts."""

_FIELDS = ("at", "duration", "ramp", "fault")


class FaultStep:
    """A fault that is on from `at_ms` after the plan's start for `duration_ms` (None: to the plan's end).

    Over its first `ramp_ms` it grows from nothing to its full size. A preset that fails, as a change of the voters that
    is refused, is tried again while the step lasts.
    """

    def __init__(self, at_ms: int, duration_ms: int | None, ramp_ms: int, fault: Fault, tree: Tree) -> None:
        self.at_ms = at_ms
        self.duration_ms = duration_ms
        self.ramp_ms = ramp_ms
        self.fault = fault
        self.tree = tree
        self.state = "waiting"
        self.retry_ms = at_ms

    @property
    def end_ms(self) -> int:
        """End of the step, after the plan's start."""
        return NEVER_MS if self.duration_ms is None else self.at_ms + self.duration_ms


class Plan:
    """A running plan. It calls `add` with each fault when it is due, and `switch` to turn it on and off."""

    def __init__(
        self, steps: list[FaultStep], add: Callable[[Fault], None], switch: Callable[[Fault, bool], None]
    ) -> None:
        self.ramps = False
        """True if the last tick moved a fault along its ramp."""
        self._steps = steps
        self._add = add
        self._switch = switch
        self._start_ms: int | None = None

    def tick(self, now_ms: int) -> int:
        """Do what is due; return when there is more to do. The first tick is the plan's start."""
        if self._start_ms is None:
            self._start_ms = now_ms
        elapsed_ms = now_ms - self._start_ms
        self.ramps = False
        next_ms = NEVER_MS
        for step in self._steps:
            if step.state == "waiting" and elapsed_ms >= step.at_ms:
                self._begin(step)
                step.retry_ms = elapsed_ms + RETRY_MS
            if step.state == "on" and elapsed_ms >= step.end_ms:
                self._end(step)
            if step.state == "on" and step.fault.is_pending:
                if elapsed_ms >= step.retry_ms:
                    step.retry_ms = elapsed_ms + RETRY_MS
                    if step.fault.error:
                        self._turn(step.fault, False)
                        self._turn(step.fault, True)
                next_ms = min(next_ms, step.retry_ms)
            if step.state == "on" and step.ramp_ms:
                grown = min(1.0, (elapsed_ms - step.at_ms) / step.ramp_ms)
                step.fault.ramped(grown)
                self.ramps = True
                if grown < 1:
                    next_ms = min(next_ms, elapsed_ms + RAMP_STEP_MS)
                else:
                    step.ramp_ms = 0
            if step.state != "over":
                next_ms = min(next_ms, step.at_ms if step.state == "waiting" else step.end_ms)
        return NEVER_MS if next_ms >= NEVER_MS else self._start_ms + next_ms

    def stop(self) -> None:
        """End every step."""
        for step in self._steps:
            if step.state == "on":
                self._end(step)
            step.state = "over"

    def to_json(self) -> list[Tree]:
        """Return every step with its `state` and, once it began, its fault's id and count."""
        return [
            step.tree
            | {"state": step.state}
            | ({} if step.state == "waiting" else {"faultId": step.fault.id, "fired": step.fault.fired})
            for step in self._steps
        ]

    def _begin(self, step: FaultStep) -> None:
        step.state = "on"
        if step.ramp_ms:
            step.fault.ramped(0.0)
        self._add(step.fault)
        self._turn(step.fault, True)

    def _end(self, step: FaultStep) -> None:
        step.state = "over"
        self._turn(step.fault, False)

    def _turn(self, fault: Fault, is_on: bool) -> None:
        try:
            self._switch(fault, is_on)
        except Exception as error:
            fault.error = f"could not be switched {'on' if is_on else 'off'}: {error}"


def read_plan(plan: Iterable[Json] | Mapping[str, Json], read: Callable[[Json], Fault]) -> list[FaultStep]:
    """Read a plan from its JSON form; `read` reads a fault. ValueError names the step and the field."""
    if isinstance(plan, Mapping | str):
        raise ValueError('a plan must be a list of steps, or {"chaos": {"seed": …}}')
    steps = []
    for index, tree in enumerate(plan):
        try:
            steps.append(_read_step(tree, read))
        except ValueError as error:
            raise ValueError(f"plan[{index}]: {error}") from error
    return steps


def _read_step(tree: Json, read: Callable[[Json], Fault]) -> FaultStep:
    if not isinstance(tree, Mapping):
        raise ValueError(f"a step must be an object, not {tree!r}")
    given = {field: value for field, value in tree.items() if field not in ("state", "faultId", "fired")}
    for field in given:
        if field not in _FIELDS:
            raise ValueError(f"{field}: a step has no such field; {did_you_mean(field, _FIELDS)}")
    at_ms, duration_ms, ramp_ms = (_time_ms(given, field) for field in ("at", "duration", "ramp"))
    if "fault" not in given:
        raise ValueError("fault: a step must name the fault it switches on")
    if duration_ms is not None and ramp_ms is not None and ramp_ms > duration_ms:
        raise ValueError(f"ramp={ramp_ms}: must not be longer than the step's duration={duration_ms}")
    try:
        fault = read(given["fault"])
    except ValueError as error:
        raise ValueError(f"fault.{error}") from error
    if ramp_ms and fault.kind.toxic is None:
        raise ValueError(f"ramp={ramp_ms}: {fault.kind.name} cannot grow, it is on or off")
    return FaultStep(at_ms or 0, duration_ms, ramp_ms or 0, fault, given)


def _time_ms(given: Mapping[str, Json], field: str) -> int | None:
    value = given.get(field)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError(f"{field}={value!r}: must be a time in milliseconds, 0 or more")

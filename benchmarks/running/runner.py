"""Runs benchmarks, repeats what is not certain within a time limit, and judges.

A benchmark is uncertain while a bound is missed, or while the rounds of a bound differ by more than a limit
(`result.SPREAD_MAX`) and fall on both sides of it. It is then measured again, up to RUNS_MAX times in all, the shortest
benchmarks first, as long as the time allows; a second run has a third, so that the median of all runs, which is judged,
is one of them and one lucky run is not enough.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from result import Gate, Result, is_number, merged

RUNS_MAX = 3
LIMIT_S = 20 * 60


@dataclass
class Part:
    """A benchmark: its runs and how long each took."""

    name: str
    expected_s: float
    runs: list[Result] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def result(self) -> Result:
        """All runs as one result."""
        return merged(self.runs)

    @property
    def is_uncertain(self) -> bool:
        """True if a bound is missed or noisy and another run could change it."""
        return any(is_number(gate.measured) and (gate.is_noisy or not gate.holds) for gate in self.result.gates)

    @property
    def is_wanted_again(self) -> bool:
        """True if another run would change or settle what is judged."""
        return len(self.runs) < RUNS_MAX and (self.is_uncertain or len(self.runs) == 2)


class Runner:
    """All benchmarks of a run.

    `measure` runs one, `say` receives lines of progress; `now_s` is the clock.
    """

    def __init__(
        self,
        expected_s: Mapping[str, float],
        measure: Callable[[str], Result],
        say: Callable[[str], None],
        *,
        limit_s: float = LIMIT_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.parts = {name: Part(name, seconds) for name, seconds in expected_s.items()}
        self._measure = measure
        self._say = say
        self._limit_s = limit_s
        self._now_s = now_s
        self._began_s = now_s()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._now_s() - self._began_s

    def run(self) -> None:
        """Measure each benchmark, then repeat those that are uncertain."""
        total_s = sum(part.expected_s for part in self.parts.values())
        self._say(f"{len(self.parts)} benchmarks, about {total_s / 60:.0f} minutes without repetitions")
        for part in self.parts.values():
            self._once(part, part.expected_s)
        while (again := self._next()) is not None:
            self._once(again, max(again.seconds))

    def _next(self) -> Part | None:
        left_s = self._limit_s - self.seconds
        wanted = [part for part in self.parts.values() if part.is_wanted_again and max(part.seconds) <= left_s]
        return min(wanted, key=lambda part: (len(part.runs), max(part.seconds)), default=None)

    @property
    def uncertain(self) -> list[Part]:
        """Benchmarks with a missed or noisy bound."""
        return [part for part in self.parts.values() if part.is_uncertain]

    def _once(self, part: Part, expected_s: float) -> None:
        again = f", run {len(part.runs) + 1}" if part.runs else ""
        self._say(f"{part.name}{again}: about {expected_s:.0f} s …")
        began_s = self._now_s()
        try:
            result = self._measure(part.name)
        except subprocess.CalledProcessError as error:
            ended = Gate(f"{part.name} ends well", f"exit code {error.returncode}", at_most=0)
            result = Result(part.name.capitalize(), "It failed.", [], gates=[ended])
        part.runs.append(result)
        part.seconds.append(self._now_s() - began_s)
        missed = sum(not gate.holds for gate in result.gates)
        self._say(f"{part.name}: {part.seconds[-1]:.0f} s" + (f", bounds missed: {missed}" if missed else ""))

    def verdict(self) -> tuple[list[str], int]:
        """Return a line for each bound, and the exit code: 1 if one is missed."""
        gates = [gate for part in self.parts.values() for gate in part.result.gates] + [self.duration()]
        lines = [
            f"{'yes' if gate.holds else 'NO '}  {gate.what}: {gate.measured} (required {gate.bound})" for gate in gates
        ]
        return lines, int(not all(gate.holds for gate in gates))

    def duration(self) -> Gate:
        """Return the bound of the whole run."""
        return Gate("the whole run, minutes", f"{self.seconds / 60:.1f}", at_most=self._limit_s / 60)

"""The benchmarks' runner: bounds, repetitions, the time limit, the page and the exit code, with fake measurements."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..budgets import soak

if TYPE_CHECKING:
    from result import Gate, Result
    from running.runner import Runner

RUN_S = 10.0


class Clock:
    """Time that passes while something is measured."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def gate(measured: float | str, *rounds: float, at_least: float = 2.0) -> Gate:
    from result import Gate

    text = measured if isinstance(measured, str) else f"{measured:.2f}"
    return Gate("answers ÷ Kafka's", text, at_least=at_least).with_rounds(rounds)


def result(*gates: Gate) -> Result:
    from result import Result

    return Result("Fake", "Nothing is measured.", [], gates=list(gates))


def ran(limit_s: float = 1200.0, **runs: Iterable[Result | int]) -> tuple[Runner, list[str]]:
    """Run benchmarks whose runs return these results, or end with an exit code; return the progress too."""
    from running.runner import Runner

    clock, said = Clock(), list[str]()
    left = {name: iter(results) for name, results in runs.items()}

    def measure(name: str) -> Result:
        clock.now += RUN_S
        made = next(left[name])
        if isinstance(made, int):
            raise subprocess.CalledProcessError(made, name)
        return made

    runner = Runner(dict.fromkeys(runs, RUN_S), measure, said.append, limit_s=limit_s, now_s=clock)
    runner.run()
    return runner, said


def test_exit_code_is_zero_when_all_bounds_are_met() -> None:
    runner, said = ran(one=[result(gate(2.0))], two=[result(gate(5.0))])
    lines, code = runner.verdict()
    assert code == 0
    assert lines[0] == "yes  answers ÷ Kafka's: 2.00 (required ≥ 2)"
    assert said[0] == "2 benchmarks, about 0 minutes without repetitions"
    assert said[1:3] == ["one: about 10 s …", "one: 10 s"]


def test_missed_bound_is_repeated_and_the_median_is_judged() -> None:
    runner, _ = ran(one=[result(gate(1.9)), result(gate(2.2)), result(gate(2.1))])
    (judged,) = runner.parts["one"].result.gates
    assert (judged.measured, judged.runs, judged.holds) == ("2.10", 3, True)
    assert runner.verdict()[1] == 0


def test_one_lucky_run_does_not_meet_a_bound() -> None:
    runner, said = ran(one=[result(gate(1.5)), result(gate(1.6)), result(gate(9.9))])
    (judged,) = runner.parts["one"].result.gates
    assert (judged.measured, judged.runs, judged.holds) == ("1.60", 3, False)
    lines, code = runner.verdict()
    assert code == 1
    assert lines[0].startswith("NO   answers ÷ Kafka's: 1.60")
    assert said[-2:] == ["one, run 3: about 10 s …", "one: 10 s"]


@pytest.mark.parametrize(
    ("rounds", "runs"),
    [
        pytest.param((1.5, 2.1, 2.5), 3, id="rounds that differ by more than a fifth, on both sides of the bound"),
        pytest.param((1.9, 2.1, 2.2), 1, id="rounds that are near each other"),
        pytest.param((2.1, 4.0, 9.0), 1, id="rounds that all meet the bound"),
    ],
)
def test_noisy_measurement_is_repeated(rounds: tuple[float, ...], runs: int) -> None:
    runner, _ = ran(one=[result(gate(2.1, *rounds)), *[result(gate(2.4, 2.4, 2.4))] * 2])
    assert len(runner.parts["one"].runs) == runs


def test_failed_benchmark_is_a_missed_bound_and_the_others_run() -> None:
    runner, _ = ran(one=[3], two=[result(gate(5.0))])
    lines, code = runner.verdict()
    assert code == 1
    assert lines[0] == "NO   one ends well: exit code 3 (required ≤ 0)"
    assert lines[1].startswith("yes")


@soak
@pytest.mark.parametrize(
    "name", ["cluster", "codec", "controller", "double", "failover", "fleet", "plugin", "soak", "startup"]
)
def test_each_benchmark_explains_itself(name: str) -> None:
    command = [sys.executable, str(Path(__file__).parents[2] / "benchmarks" / f"{name}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, f"benchmarks/{name}.py" in done.stdout) == (0, True), done.stderr

"""Timed plans on a virtual clock."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.server.stubs.faults.registry import Faults
from mockraft.serving.parked import NEVER_MS


def latency(**step: Any) -> dict[str, Any]:
    return {**step, "fault": {"kind": "latency", "params": {"latencyMs": 100, "jitterMs": 10}}}


def running(*steps: dict[str, Any]) -> Faults:
    faults = Faults()
    faults.run(steps)
    faults.tick(1_000)
    return faults


def test_a_fault_is_on_from_its_time_for_its_duration() -> None:
    faults = running(latency(at=500, duration=200))
    assert faults.next_ms == 1_500
    faults.tick(1_499)
    assert faults.active == []
    faults.tick(1_500)
    assert [fault.kind.name for fault in faults.active] == ["latency"]
    assert faults.next_ms == 1_700
    faults.tick(1_700)
    assert faults.active == []
    assert faults.next_ms == NEVER_MS


def test_a_step_without_a_duration_stays_on() -> None:
    faults = running(latency())
    faults.tick(10**9)
    assert len(faults.active) == 1
    faults.stop_plan()
    assert faults.active == []


def test_a_ramp_lets_parameters_grow() -> None:
    faults = running(latency(ramp=1_000))
    (fault,) = faults.active
    seen = []
    for now_ms in range(1_000, 2_200, 100):
        faults.tick(now_ms)
        seen.append((fault.params_now["latency_ms"], fault.params_now["jitter_ms"]))
    assert seen == [(10 * step, step) for step in range(11)] + [(100, 10)]
    assert faults.next_ms == NEVER_MS


def test_a_ramp_of_a_fault_without_growing_parameters_lets_toxicity_grow() -> None:
    faults = running({"ramp": 1_000, "fault": {"kind": "half_open", "toxicity": 0.5}})
    (fault,) = faults.active
    faults.tick(1_400)
    assert fault.toxicity_now == pytest.approx(0.2)


def test_a_tick_that_comes_late_still_does_all() -> None:
    faults = running(latency(at=100, duration=100), latency(at=5_000))
    faults.tick(50_000)
    assert [step["state"] for step in faults.plan_json()] == ["over", "on"]


def test_several_nodes_may_tick_at_the_same_time() -> None:
    faults = running(latency(at=10))
    for _ in range(3):
        faults.tick(1_010)
    assert len(faults.all) == 1


def test_faults_switched_by_a_plan_stay_listed_with_their_counts() -> None:
    faults = running(latency(duration=10))
    faults.all[0].met += 4
    faults.tick(1_010)
    assert faults.plan_json() == [latency(duration=10) | {"state": "over", "faultId": "latency-1", "fired": 4}]
    assert faults.unfired() == []


def test_a_new_plan_replaces_the_old_one() -> None:
    faults = running(latency())
    faults.run([{"fault": {"kind": "bandwidth"}}])
    faults.tick(2_000)
    assert [fault.kind.name for fault in faults.all] == ["bandwidth"]


def test_plans_that_are_run_again_and_again_leave_no_faults_behind() -> None:
    faults = Faults()
    mine = faults.add("down", enabled=False)
    for _ in range(5):
        faults.run([latency(), latency(at=1)])
        faults.tick(2_000)
    faults.stop_plan()
    faults.run([])
    assert faults.all == [mine]


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        ({"at": 1}, "a plan must be a list of steps"),
        ([{"at": 1}], r"plan\[0\]: fault: a step must name"),
        ([latency(at=-1)], r"plan\[0\]: at=-1: must be a time in milliseconds"),
        ([latency(), latency(att=1)], r"plan\[1\]: att: a step has no such field; did you mean at\?"),
        ([latency(duration=5, ramp=6)], "ramp=6: must not be longer than the step's duration=5"),
        ([{"fault": {"kind": "x"}}], r"plan\[0\]: fault\.kind='x'"),
        (["x"], "a step must be an object"),
    ],
)
def test_invalid_plan_is_refused_with_the_reason(plan: Any, complaint: str) -> None:
    faults = Faults()
    with pytest.raises(ValueError, match=complaint):
        faults.run(plan)
    assert faults.plan_json() == []

"""Planned and random faults."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mockraft.kafka_api.api import NEVER_MS
from mockraft.server.stubs.faults import presets
from mockraft.server.stubs.faults.chaos import chaos
from mockraft.server.stubs.faults.fault import REQUIRED, Kind, Parameter
from mockraft.server.stubs.faults.registry import Faults

from ....rows import each_row


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


@each_row(
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


BYTE_KINDS = {name for name, kind in presets.KINDS.items() if kind.toxic is not None}


def test_the_same_seed_makes_the_same_plan_and_another_one_another() -> None:
    assert chaos(seed=7) == chaos(seed=7) != chaos(seed=8)


def test_a_plan_that_was_printed_can_be_run_again() -> None:
    plan = json.loads(json.dumps(chaos(seed=1, length_ms=600_000, targets=[{"clientId": "a"}, {"node": 1}])))
    faults = Faults()
    faults.run(plan)
    assert [step["fault"] for step in faults.plan_json()] == [step["fault"] for step in plan]
    assert {step["fault"]["kind"] for step in plan} == BYTE_KINDS
    assert {str(step["fault"]["match"]) for step in plan} == {"{'clientId': 'a'}", "{'node': 1}"}


def test_faults_have_the_configured_average_rate_and_length() -> None:
    plan: list[Any] = chaos(seed=3, mean_interval_ms=1_000, mean_duration_ms=300, length_ms=1_000_000)
    assert 900 < len(plan) < 1_100
    durations = [step["duration"] for step in plan]
    assert 270 < sum(durations) / len(durations) < 330
    assert all(step["at"] + step["duration"] <= 1_000_001 for step in plan)


def test_no_fault_remains_after_the_end() -> None:
    faults = Faults()
    faults.run({"chaos": {"seed": 5, "lengthMs": 60_000, "meanIntervalMs": 500}})
    faults.tick(0)
    seen = 0
    while faults.next_ms < 1 << 62:
        faults.tick(faults.next_ms)
        seen = max(seen, len(faults.active))
    assert seen > 1
    assert faults.active == []


def test_a_preset_gets_a_broker_and_only_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = (Parameter("broker_id", "int", REQUIRED, "the broker"),)
    monkeypatch.setitem(presets.KINDS, "hit", Kind("hit", "It is hit.", parameters, lambda double, params: print))
    unnamed: list[Any] = chaos(seed=1, length_ms=600_000)
    assert "hit" not in {step["fault"]["kind"] for step in unnamed}
    plan: list[Any] = chaos(seed=1, kinds=["hit"], broker_ids=[4, 5], length_ms=600_000)
    assert {step["fault"]["params"]["brokerId"] for step in plan} == {4, 5}
    with pytest.raises(ValueError, match="hit requires brokerId: give broker_ids"):
        chaos(seed=1, kinds=["hit"], length_ms=600_000)


@each_row(
    ("tree", "complaint"),
    [
        ({}, r"chaos\.seed: is required"),
        ({"seed": "x"}, r"chaos\.seed='x': must be an integer"),
        ({"seed": 1, "meanIntervallMs": 5}, r"chaos\.meanIntervallMs: .* did you mean meanIntervalMs\?"),
        ({"seed": 1, "meanIntervalMs": 0}, "mean_interval_ms=0"),
        ({"seed": 1, "kinds": ["latancy"]}, "there is no latancy; did you mean latency"),
        ({"seed": 1, "kinds": []}, "kinds: must not be empty"),
        ({"seed": 1, "targets": []}, "targets: must not be empty"),
    ],
)
def test_invalid_chaos_is_refused_with_the_reason(tree: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Faults().run({"chaos": tree})

"""Chaos by a seed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mockraft.server.stubs.faults import every_kind
from mockraft.server.stubs.faults.chaos import chaos
from mockraft.server.stubs.faults.kinds import REQUIRED, Kind, Parameter
from mockraft.server.stubs.faults.registry import Faults

BYTE_KINDS = {name for name, kind in every_kind.KINDS.items() if kind.toxic is not None}


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
    monkeypatch.setitem(every_kind.KINDS, "hit", Kind("hit", "It is hit.", parameters, lambda double, params: print))
    unnamed: list[Any] = chaos(seed=1, length_ms=600_000)
    assert "hit" not in {step["fault"]["kind"] for step in unnamed}
    plan: list[Any] = chaos(seed=1, kinds=["hit"], broker_ids=[4, 5], length_ms=600_000)
    assert {step["fault"]["params"]["brokerId"] for step in plan} == {4, 5}
    with pytest.raises(ValueError, match="hit requires brokerId: give broker_ids"):
        chaos(seed=1, kinds=["hit"], length_ms=600_000)


@pytest.mark.parametrize(
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

"""From a script and a seed to timed actions: the whole of it, for it is a pure function."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.brokers.fleet.plan import Act, Action, plan
from mockraft.brokers.fleet.script import Do, ScriptError, Step

RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "a", 4: "b"}
A_RAMP = [Action(0, 1, Act.START), Action(250, 2, Act.START), Action(500, 3, Act.START), Action(750, 4, Act.START)]


def planned(*steps: Step, seed: int = 1) -> list[Action]:
    """Steps after the ramp."""
    return [action for action in plan(RACKS, 0, steps, seed) if action.at_ms or action.act is not Act.START]


def test_starts_are_spread_over_the_ramp() -> None:
    assert plan(RACKS, 1000, (), 1) == A_RAMP


def test_without_a_ramp_all_start_at_once() -> None:
    assert plan(RACKS, 0, (), 1) == [Action(0, broker_id, Act.START) for broker_id in RACKS]


@pytest.mark.parametrize(
    ("do", "first", "last"),
    [
        (Do.KILL, Act.KILL, Act.START),
        (Do.STOP, Act.STOP, Act.START),
        (Do.FREEZE, Act.FREEZE, Act.THAW),
        (Do.DISCONNECT, Act.DISCONNECT, None),
        (Do.FAIL_LOG_DIR, Act.FAIL_LOG_DIR, None),
    ],
)
def test_step_is_executed_and_reverted_later(do: Do, first: Act, last: Act | None) -> None:
    back_after_s = None if last is None else 2.0
    actions = planned(Step(do=do, at_s=1, brokers=(2, 3), back_after_s=back_after_s))
    back = [] if last is None else [Action(3000, 2, last), Action(3000, 3, last)]
    assert actions == [Action(1000, 2, first), Action(1000, 3, first), *back]


def test_step_without_return_is_not_reverted() -> None:
    assert planned(Step(do=Do.KILL, at_s=1, brokers=(2,))) == [Action(1000, 2, Act.KILL)]


def test_a_step_can_be_spread_over_time() -> None:
    actions = planned(Step(do=Do.DISCONNECT, at_s=1, over_s=2, racks=("b",)))
    assert actions == [Action(1000, 2, Act.DISCONNECT), Action(2000, 4, Act.DISCONNECT)]


def test_rolling_restart_limits_concurrency() -> None:
    restart = Step(do=Do.ROLLING_RESTART, at_s=1, at_once=3, every_s=10, back_after_s=0.5)
    assert planned(restart) == [
        *(Action(1000, broker_id, Act.STOP) for broker_id in (1, 2, 3)),
        *(Action(1500, broker_id, Act.START) for broker_id in (1, 2, 3)),
        Action(11_000, 4, Act.STOP),
        Action(11_500, 4, Act.START),
    ]


def test_ids_and_racks_together_mean_both() -> None:
    assert planned(Step(do=Do.KILL, at_s=1, brokers=(1, 2), racks=("b",))) == [Action(1000, 2, Act.KILL)]


def test_drawn_brokers_depend_on_the_seed_only() -> None:
    drawn = [planned(Step(do=Do.KILL, at_s=1, count=2), seed=seed) for seed in range(20)]
    assert drawn == [planned(Step(do=Do.KILL, at_s=1, count=2), seed=seed) for seed in range(20)]
    assert len({tuple(each) for each in drawn}) > 1
    assert all(len(each) == 2 for each in drawn)


@pytest.mark.parametrize(
    ("asked", "many"), [({"percent": 50.0}, 2), ({"percent": 0.0}, 0), ({"percent": 100.0}, 4), ({"count": 99}, 4)]
)
def test_a_draw_takes_no_more_than_there_are(asked: dict[str, Any], many: int) -> None:
    assert len(planned(Step(do=Do.KILL, at_s=1, **asked))) == many


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step(do=Do.KILL, brokers=(1, 5)), "steps[0].brokers: the fleet has no broker 5"),
        (Step(do=Do.KILL, racks=("c",)), "steps[0].racks: no broker is in rack c"),
    ],
)
def test_missing_broker_is_named(step: Step, said: str) -> None:
    with pytest.raises(ScriptError) as refused:
        planned(step)
    assert str(refused.value) == said


STEPS = st.builds(
    Step,
    do=st.sampled_from(Do),
    at_s=st.floats(0, 100),
    over_s=st.floats(0, 100),
    percent=st.none() | st.floats(0, 100),
    back_after_s=st.none() | st.floats(0, 100),
    at_once=st.integers(1, 10),
    every_s=st.floats(0, 10),
)


@given(st.integers(1, 40), st.lists(STEPS, max_size=5), st.integers(0, 5), st.integers(0, 5000))
def test_every_plan_is_in_order_and_about_brokers_of_the_fleet(
    count: int, steps: list[Step], seed: int, ramp_ms: int
) -> None:
    racks = dict.fromkeys(range(count))
    actions = plan(racks, ramp_ms, steps, seed)
    assert [each.at_ms for each in actions] == sorted(each.at_ms for each in actions)
    assert {each.broker_id for each in actions} == set(racks)
    assert actions == plan(racks, ramp_ms, steps, seed)

"""The search, over commands that are functions of the schedule."""

from collections.abc import Callable

import pytest
from mockraft.testing.lab.schedule import Disturbance, Schedule, Sender, draw
from mockraft.testing.lab.search import FailsUndisturbedError, find, shrink, undisturbed
from mockraft.testing.lab.trial import TrialResult
from mockraft.wire.json_form import Tree

SENDER = Sender("CreateTopics", None)
LATE, LOST, STANDBY = (
    Disturbance("late answer", SENDER, 1, 1_000),
    Disturbance("lost answer", SENDER, 2),
    Disturbance("standby", SENDER, 3),
)
REQUESTS: list[Tree] = [{"api": "CreateTopics", "brokerId": None}] * 3


def command(fails: Callable[[Schedule], bool]) -> Callable[[Schedule], TrialResult]:
    return lambda schedule: TrialResult(int(fails(schedule)), 0.0, "", REQUESTS)


def test_shrinks_to_the_disturbance_that_matters() -> None:
    schedule, outcome = shrink(command(lambda each: LOST in each), (LATE, LOST, STANDBY), TrialResult(1, 0.0, "", []))
    assert (schedule, outcome.failed) == ((LOST,), True)


def test_keeps_two_that_only_fail_together() -> None:
    trial = command(lambda each: {LATE, STANDBY} <= set(each) or {LOST, STANDBY} <= set(each))
    schedule, _ = shrink(trial, (LATE, LOST, STANDBY), TrialResult(1, 0.0, "", []))
    assert schedule == (LOST, STANDBY)


def test_leaves_out_what_mattered_only_beside_another() -> None:
    trial = command(lambda each: LOST in each and (STANDBY not in each or LATE in each))
    schedule, _ = shrink(trial, (LATE, LOST, STANDBY), TrialResult(1, 0.0, "", []))
    assert schedule == (LOST,)


def test_halves_a_delay_for_as_long_as_it_fails() -> None:
    trial = command(lambda each: any(one.delay_ms >= 200 for one in each))
    schedule, _ = shrink(trial, (LATE,), TrialResult(1, 0.0, "", []))
    assert [each.delay_ms for each in schedule] == [250]


def test_finds_the_first_failing_seed_and_repeats_its_schedule() -> None:
    tried: list[int] = []
    trial = command(lambda each: any(one.kind == "lost answer" for one in each))
    seen = undisturbed(trial)
    found = find(
        trial,
        lambda seed: draw(seed, seen, 3),
        range(1, 100),
        repeats=4,
        on_trial=lambda seed, outcome: tried.append(seed),
    )
    assert found is not None
    assert [each.kind for each in found.schedule] == ["lost answer"]
    assert tried == [*range(1, found.seed + 1)]
    assert set(found.schedule) <= set(found.drawn)
    assert (found.failures, found.repeats) == (4, 4)


def test_schedule_that_fails_now_and_then_is_reported_with_how_often() -> None:
    outcomes = iter([1, 0, 1, 0, 0])
    trial = lambda schedule: TrialResult(next(outcomes), 0.0, "", REQUESTS)  # noqa: E731
    found = find(trial, lambda seed: draw(seed, {SENDER: 1}, 1), [1], repeats=3)
    assert found is not None
    assert found.outcome.failed
    assert found.failures < found.repeats


def test_command_that_passes_under_every_schedule_is_none() -> None:
    trial = command(lambda schedule: False)
    assert find(trial, lambda seed: draw(seed, {SENDER: 1}, 4), range(20), repeats=1) is None


def test_command_that_fails_undisturbed_is_an_error() -> None:
    with pytest.raises(FailsUndisturbedError, match="without any disturbance: failed, exit code 1"):
        undisturbed(command(lambda schedule: True))

"""The search for a schedule under which the command fails, and for the smallest part of it that is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mockraft.testing.lab.schedule import Disturbance, Observed, Schedule, observed, simpler
from mockraft.testing.lab.trial import TrialResult

Trial = Callable[[Schedule], TrialResult]
"""Run the command under a schedule."""


class FailsUndisturbedError(Exception):
    """The command fails without any disturbance."""

    def __init__(self, outcome: TrialResult) -> None:
        super().__init__(f"the command fails without any disturbance: {outcome}")
        self.outcome = outcome


@dataclass(frozen=True)
class FailingSchedule:
    """A schedule under which the command failed: as drawn from the seed, and its smallest part that is enough.

    `failures` of `repeats` further trials under the smallest part failed too; `outcome` is the last failed trial.
    """

    seed: int
    drawn: Schedule
    schedule: Schedule
    outcome: TrialResult
    failures: int
    repeats: int


def undisturbed(trial: Trial) -> Observed:
    """Return the requests to disturb. FailsUndisturbedError."""
    outcome = trial(())
    if outcome.failed:
        raise FailsUndisturbedError(outcome)
    return observed(outcome.requests)


def find(
    trial: Trial,
    schedule_of: Callable[[int], Schedule],
    seeds: Iterable[int],
    *,
    repeats: int,
    on_trial: Callable[[int, TrialResult], None] = lambda seed, outcome: None,
) -> FailingSchedule | None:
    """Return the first failing schedule, made smaller; None if the command passes under all seeds."""
    for seed in seeds:
        drawn = schedule_of(seed)
        outcome = trial(drawn)
        on_trial(seed, outcome)
        if outcome.failed:
            smallest, outcome = shrink(trial, drawn, outcome)
            again = [trial(smallest) for _ in range(repeats)]
            failed = [each for each in again if each.failed]
            return FailingSchedule(seed, drawn, smallest, failed[-1] if failed else outcome, len(failed), repeats)
    return None


def shrink(trial: Trial, schedule: Schedule, outcome: TrialResult) -> tuple[Schedule, TrialResult]:
    """Return a part of a failing schedule from which nothing can be taken away, and the outcome of its last failure.

    Each disturbance is left out, and then each delay is halved, for as long as the command still fails. What could not
    be left out is tried again after another was: it may have mattered only beside that. A half delay must fail twice:
    near the limit of what matters, a command fails now and then.
    """
    kept: set[Disturbance] = set()
    while len(schedule) > 1 and (rest := [each for each in schedule if each not in kept]):
        smaller = tuple(each for each in schedule if each != rest[0])
        if (found := trial(smaller)).failed:
            schedule, outcome, kept = smaller, found, set()
        else:
            kept.add(rest[0])
    for index, each in enumerate(schedule):
        while (shorter := simpler(each)) is not None:
            changed = (*schedule[:index], shorter, *schedule[index + 1 :])
            if not (trial(changed).failed and (found := trial(changed)).failed):
                break
            schedule, outcome, each = changed, found, shorter
    return schedule, outcome

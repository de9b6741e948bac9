"""Episodes of steps on two controllers, and the smallest sequence that shows a difference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from .comparison import Divergence
from .generator import Generator
from .known import breaks
from .pair import LEADERSHIP, Pair
from .steps import FuzzStep

EPISODE_STEPS = 250


class Finding(NamedTuple):
    """A difference: the seed of its episode, the step that showed it, and a short sequence that shows it again."""

    seed: int
    step: int
    difference: Divergence
    steps: Sequence[FuzzStep]

    def __str__(self) -> str:
        """Return the difference and the steps, one line of JSON each."""
        lines = [
            f"{self.difference.api} differs in {self.difference.path} at step {self.step} of seed {self.seed}",
            f"  first   {json.dumps(self.difference.ours, ensure_ascii=False, default=sorted)}",
            f"  second  {json.dumps(self.difference.theirs, ensure_ascii=False, default=sorted)}",
            f"{len(self.steps)} steps show it:",
        ]
        return "\n".join([*lines, *map(str, self.steps)])


def fuzz(pair: Pair, seed: int, steps: int) -> Finding | None:
    """Run episodes with seeds `seed`, `seed` + 1, … until `steps` are done or two outcomes differ."""
    done = 0
    while done < steps:
        taken, finding = episode(pair, seed, min(EPISODE_STEPS, steps - done))
        if finding is not None:
            return finding
        done += taken
        seed += 1
    return None


def episode(pair: Pair, seed: int, steps: int) -> tuple[int, Finding | None]:
    """Run at most `steps` steps; return how many, and the shrunk difference that they show."""
    pair.begin(seed)
    generator = Generator(seed, pair.model, pair.versions, pair.features)
    taken: list[FuzzStep] = []
    found: Divergence | None = None
    while found is None and len(taken) < steps and not breaks(pair.model):
        taken.append(generator.step())
        found = pair.take(taken[-1])
    if found is None and not breaks(pair.model):
        found = pair.unlike_images()
    if found is None:
        return len(taken), None
    finding = Finding(seed, len(taken), found, taken)
    # What a controller that gave up remembers beside its log is lost, so no shorter sequence is in the same world.
    return len(taken), finding if found.path == LEADERSHIP else shrink(pair, finding)


def replay(pair: Pair, seed: int, steps: Sequence[FuzzStep]) -> Finding | None:
    """Run these steps in an empty world; return the difference with the steps up to it."""
    pair.begin(seed)
    for number, step in enumerate(steps, 1):
        found = pair.take(step)
        if found is not None:
            return Finding(seed, number, found, steps[:number])
    found = pair.unlike_images()
    return None if found is None else Finding(seed, len(steps), found, steps)


def shrink(pair: Pair, found: Finding) -> Finding:
    """Leave out ever smaller parts as long as a difference of the same kind stays."""
    size = len(found.steps) // 2
    while size:
        start = 0
        while start < len(found.steps):
            shorter = [*found.steps[:start], *found.steps[start + size :]]
            again = replay(pair, found.seed, shorter) if shorter else None
            if again is not None and again.difference.kind == found.difference.kind:
                found = again._replace(step=found.step)
            else:
                start += size
        size //= 2
    return found

"""A checker of histories: is there an order of the operations that their times allow and a model explains?

The algorithm is that of Wing and Gong (1993) with Lowe's memory of visited configurations (2017), which Knossos and
Porcupine use too. A configuration is a set of operations in their order and the state after them; the next one is any
that began before each of the others returned. Objects are independent, so each key is checked on its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from .history import Operation, UnexpectedError
from .models import IMPOSSIBLE, Model

CONFIGURATIONS_MAX = 200_000
"""Configurations of one key after which the search ends undecided; one that is linearizable needs far fewer."""

_SHOWN = 8


class Violation(NamedTuple):
    """The longest order found for the operations on a key, and those of which none can be next.

    `is_undecided`: the search ended before it had tried every order.
    """

    key: str
    ordered: list[Operation]
    state: Hashable
    stuck: list[Operation]
    is_undecided: bool = False

    def __str__(self) -> str:
        before = [f"  {each}" for each in self.ordered[-_SHOWN:]]
        after = [f"  {each}" for each in self.stuck]
        return "\n".join(
            [
                f"undecided after {CONFIGURATIONS_MAX} configurations: {self.key}"
                if self.is_undecided
                else f"not linearizable: {self.key}",
                "after",
                *before,
                f"the state is {self.state!r}; impossible next:",
                *after,
            ]
        )


def violations(history: Sequence[Operation], models: dict[str, Model]) -> list[Violation]:
    """Return a violation for each key whose operations are not linearizable; `models` are by the key's prefix."""
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        by_key[operation.key].append(operation)
    found = [violation(operations, models[key.partition(" ")[0]]) for key, operations in by_key.items()]
    return [each for each in found if each is not None]


def violation(history: Sequence[Operation], model: Model) -> Violation | None:
    """Return None if the operations on one object are linearizable."""
    search = _Search(history, model)
    if search.succeeds():
        return None
    order, state, stuck = search.longest
    ordered = [search.operations[each] for each in order]
    return Violation(history[0].key, ordered, state, stuck, is_undecided=search.is_at_its_limit)


class _Step(NamedTuple):
    """A configuration on the current path, and the operations left to try after it."""

    done: int
    state: Hashable
    order: tuple[int, ...]
    choices: Iterator[int]


class _Search:
    """A depth-first search; sets of operations are bits of an int."""

    def __init__(self, history: Sequence[Operation], model: Model) -> None:
        self.operations = sorted(model.relevant(history), key=lambda each: each.earliest)
        self.longest: tuple[tuple[int, ...], Hashable, list[Operation]] = ((), model.initial, [])
        self._model = model
        self._required = sum(1 << number for number, each in enumerate(self.operations) if each.latest < math.inf)
        self._all = (1 << len(self.operations)) - 1
        self._visited: set[tuple[int, Hashable]] = set()

    @property
    def is_at_its_limit(self) -> bool:
        return len(self._visited) >= CONFIGURATIONS_MAX

    def succeeds(self) -> bool:
        path = [self._step(0, self._model.initial, ())]
        while path and not self.is_at_its_limit:
            step = path[-1]
            if step.done & self._required == self._required:
                return True
            for number in step.choices:
                state = self._after(step.state, number)
                if state is IMPOSSIBLE:
                    continue
                done = step.done | 1 << number
                if (done, state) not in self._visited:
                    self._visited.add((done, state))
                    path.append(self._step(done, state, (*step.order, number)))
                    break
            else:
                path.pop()
        return False

    def _step(self, done: int, state: Hashable, order: tuple[int, ...]) -> _Step:
        """Take all possible observations at once: they change nothing, so no later place can be better."""
        while True:
            candidates = self._candidates(done)
            observed = [
                number
                for number in candidates
                if self._model.observes(self.operations[number]) and self._after(state, number) is not IMPOSSIBLE
            ]
            if not observed:
                break
            done |= sum(1 << number for number in observed)
            order = (*order, *observed)
        if len(order) >= len(self.longest[0]):
            self.longest = order, state, [self.operations[number] for number in candidates]
        # Whoever returned first is most likely next; an unknown outcome is tried last.
        return _Step(done, state, order, iter(sorted(candidates, key=lambda number: self.operations[number].latest)))

    def _after(self, state: Hashable, number: int) -> Hashable:
        operation = self.operations[number]
        return IMPOSSIBLE if isinstance(operation.result, UnexpectedError) else self._model.after(state, operation)

    def _candidates(self, done: int) -> list[int]:
        """Operations of which each began before any other one that is left returned."""
        found = []
        first_return = math.inf
        left = self._all & ~done
        while left:
            number = (left & -left).bit_length() - 1
            operation = self.operations[number]
            if operation.earliest > first_return:
                break
            found.append(number)
            first_return = min(first_return, operation.latest)
            left &= left - 1
        return found

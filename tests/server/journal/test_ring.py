"""Both rings hold the same entries, within the same limits."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.server.journal.ring import PureRing, new_ring


@pytest.mark.parametrize("seed", range(5))
def test_both_rings_are_equal(seed: int) -> None:
    rng = random.Random(seed)
    makes: tuple[Callable[[int, int], Any], ...] = (PureRing, new_ring)
    rings = [make(100 * seed, 200) for make in makes]
    for number in range(2000):
        size, chance = rng.choice([0, 1, 5, 300]), rng.random()
        entries_max = rng.choice([0, 1, 50, 500])
        for ring in rings:
            if chance < 0.002:
                ring.clear()
            elif chance < 0.01:
                ring.entries_max = entries_max
            else:
                ring.append(str(number), size)
        found = [(ring.entries(), len(ring), ring.bytes_held, ring.dropped) for ring in rings]
        assert found[0] == found[1]
    assert rings[0].dropped > 100

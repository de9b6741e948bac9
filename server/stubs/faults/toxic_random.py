"""Random draws of toxics, separate for each connection and direction."""

import math
from hashlib import blake2b

from mockraft.server.stubs.seeded_random import SeededRandom


class ToxicRandom(SeededRandom):
    """Draws that are seeded by a text."""

    __slots__ = ()

    def __init__(self, seed: str) -> None:
        super().__init__(int.from_bytes(blake2b(seed.encode(), digest_size=8).digest()))

    def between(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return low + self.below(high - low + 1)

    def exponential(self, mean: float) -> float:
        """Return a waiting time for an event that happens once in `mean` on average."""
        return -mean * math.log(1.0 - self.random())

    def failures(self, probability: float) -> int:
        """Return how often an event of this probability (above 0) fails to happen before it does."""
        return 0 if probability >= 1 else int(math.log(1.0 - self.random()) / math.log1p(-probability))

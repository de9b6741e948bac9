"""What toxics draw, for each connection and direction apart."""

import math
from hashlib import blake2b

from mockraft.server.stubs.chance import Chance


class ToxicChance(Chance):
    """Draws from a text."""

    __slots__ = ()

    def __init__(self, seed: str) -> None:
        super().__init__(int.from_bytes(blake2b(seed.encode(), digest_size=8).digest()))

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + self.below(high - low + 1)

    def exponential(self, mean: float) -> float:
        """A waiting time for what happens once in `mean` on average."""
        return -mean * math.log(1.0 - self.random())

    def failures(self, probability: float) -> int:
        """How often something of this probability (above 0) does not happen before it does."""
        return 0 if probability >= 1 else int(math.log(1.0 - self.random()) / math.log1p(-probability))

"""The class of all invariants of simulated worlds."""

from abc import abstractmethod
from typing import Any


class Invariant:
    """Something that is always true. It may remember what it saw."""

    @abstractmethod
    def verify(self, world: Any) -> None:
        """AssertionError when it is not."""

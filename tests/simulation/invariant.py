"""The class of all invariants of simulated worlds."""

from abc import ABC, abstractmethod
from typing import Any


class Invariant(ABC):
    """Something that is always true. It may remember what it saw."""

    @abstractmethod
    def verify(self, world: Any) -> None:
        """AssertionError when it is not."""

"""Operations of concurrent clients: the time of the request, the time of the response, and the result."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

UNKNOWN = "unknown"
"""Result of an operation without a response, or whose response leaves open whether it took effect."""


class UnexpectedError(str):
    """Result of an operation that was refused with an error, by its name, that no state of the object explains."""

    __slots__ = ()


class Operation(NamedTuple):
    """One operation on the object `key`; the times are of one clock, in seconds.

    An operation with the result UNKNOWN took effect at any time after `called_at`, or never. `is_stale` marks an
    observation that may be of any earlier state.
    """

    key: str
    name: str
    argument: Any
    result: Any
    called_at: float
    returned_at: float
    is_stale: bool = False

    @property
    def earliest(self) -> float:
        """Time before which it took no effect."""
        return -math.inf if self.is_stale else self.called_at

    @property
    def latest(self) -> float:
        """Time by which it took effect; infinity if it may never have done so."""
        return math.inf if self.result == UNKNOWN else self.returned_at

    def __str__(self) -> str:
        argument = "" if self.argument is None else repr(self.argument)
        stale = ", of any earlier state" if self.is_stale else ""
        called = f"{self.called_at:.4f} to {self.returned_at:.4f} s"
        return f"{self.key}: {self.name}({argument}) -> {self.result!r}, {called}{stale}"

"""Ranges of versions as Kafka's schemas write them (`N`, `N-M`, `N+`, `none`), with the set operations."""

from __future__ import annotations

import re
from typing import NamedTuple

HIGHEST = 32767
"""The upper end of an open range `N+`: versions are int16 on the wire."""

_RANGE = re.compile(r"(\d+)(?:-(\d+)|(\+))?")


class Versions(NamedTuple):
    """A closed range of versions; empty if `low > high`. Kafka's class: `org.apache.kafka.message.Versions`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse `"3"`, `"3-5"`, `"3+"` or `"none"`. Raises ValueError for anything else and for descending ranges."""
        text = text.strip()
        if text == "none":
            return NONE
        found = _RANGE.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a version range: want N, N-M, N+ or none")
        low = int(found[1])
        high = HIGHEST if found[3] else int(found[2] or low)
        if low > high or high > HIGHEST:
            raise ValueError(f"the version range {text!r} is empty or beyond {HIGHEST}")
        return cls(low, high)

    def __str__(self) -> str:
        if self.empty:
            return "none"
        if self.high == HIGHEST:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    @property
    def empty(self) -> bool:
        """True if no version is in the range."""
        return self.low > self.high

    def has(self, version: int) -> bool:
        """Return True if `version` is in the range."""
        return self.low <= version <= self.high

    def covers(self, other: Versions) -> bool:
        """Return True if every version of `other` is in the range."""
        return other.empty or (self.low <= other.low and other.high <= self.high)

    def intersect(self, other: Versions) -> Versions:
        """Return the versions in both ranges."""
        both = Versions(max(self.low, other.low), min(self.high, other.high))
        return NONE if both.empty else both

    def numbers(self) -> range:
        """Yield the versions in ascending order."""
        return range(self.low, self.high + 1)


NONE = Versions(0, -1)
"""The empty range."""

ALL = Versions(0, HIGHEST)
"""Every version."""

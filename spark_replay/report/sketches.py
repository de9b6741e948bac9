"""Counters of bounded memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
K = TypeVar("K", bound=Hashable)

WIDTHS_S = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 600, 3_600, 21_600, 86_400, 864_000, 8_640_000, 86_400_000)
"""Widths of time bins; each is a multiple of the one before, so that bins can be merged into wider ones."""
_WIDTHS_NS = [round(width * 1e9) for width in WIDTHS_S]
_STEPS = 16


class LogHistogram:
    """A histogram with logarithmic buckets: each bound is 2^(1/16) times the one before (4.4 %)."""

    def __init__(self) -> None:
        self.counts: Numbers = np.zeros(64 * _STEPS, np.int64)
        self.least: int | None = None
        self.most: int | None = None

    def add(self, values: Numbers) -> None:
        """Count numbers; those below 1 count as 1."""
        if not len(values):
            return
        buckets = (np.log2(np.maximum(values, 1)) * _STEPS).astype(np.int64)
        self.counts += np.bincount(buckets, minlength=len(self.counts))
        self._bounds(int(values.min()), int(values.max()))

    def merge(self, other: LogHistogram) -> None:
        """Add the counts of another histogram."""
        self.counts += other.counts
        if other.least is not None and other.most is not None:
            self._bounds(other.least, other.most)

    @property
    def total(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    def quantile(self, share: float) -> float | None:
        """Return the quantile of a share, None if there are no values."""
        if self.least is None or self.most is None:
            return None
        sums = np.cumsum(self.counts)
        bucket = int(np.searchsorted(sums, max(1, share * sums[-1])))
        return float(min(max(2 ** ((bucket + 0.5) / _STEPS), self.least), self.most))

    def curve(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return values and the share of all values up to each: the empirical distribution."""
        (used,) = np.nonzero(self.counts)
        shares = np.cumsum(self.counts)[used] / max(1, self.total)
        return np.exp2((used + 1) / _STEPS), shares

    def _bounds(self, least: int, most: int) -> None:
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)


class TimeBins:
    """A number for each time bin; when more than `bins_max` are in use, bins get wider."""

    def __init__(self, bins_max: int = 2_048, *, of_largest: bool = False) -> None:
        self.bins_max = bins_max
        self.of_largest = of_largest
        self.step = 0
        self.values: dict[int, int] = {}

    @property
    def width_ns(self) -> int:
        """Width of the bins now; it only grows."""
        return _WIDTHS_NS[self.step]

    def add(self, times_ns: Numbers, values: Numbers | None = None) -> None:
        """Add values (1 each) to the bins of their times, or keep the maximum there."""
        if not len(times_ns):
            return
        bins, inverse = np.unique(times_ns // self.width_ns, return_inverse=True)
        if values is None:
            sums = np.bincount(inverse, minlength=len(bins))
        else:
            sums = np.zeros(len(bins), np.int64)
            (np.maximum if self.of_largest else np.add).at(sums, inverse, values)
        self._put(zip(bins.tolist(), sums.tolist(), strict=True))

    def merge(self, other: TimeBins) -> None:
        """Add the bins of another."""
        self.widen(other.step)
        factor = self.width_ns // other.width_ns
        self._put((key // factor, value) for key, value in other.values.items())

    def widen(self, step: int) -> None:
        """Make bins at least that wide (an index of WIDTHS_S)."""
        if step <= self.step:
            return
        factor = _WIDTHS_NS[step] // self.width_ns
        old, self.values, self.step = self.values, {}, step
        for key, value in old.items():
            self._add(key // factor, value)

    def _put(self, items: Iterable[tuple[int, int]]) -> None:
        for key, value in items:
            self._add(key, value)
        while len(self.values) > self.bins_max and self.step + 1 < len(WIDTHS_S):
            self.widen(self.step + 1)

    def _add(self, key: int, value: int) -> None:
        had = self.values.get(key, 0)
        self.values[key] = max(had, value) if self.of_largest else had + value


class DistinctKeys:
    """Count distinct values: exact for few; for many, estimated from the `kept_max` smallest hashes (1 %)."""

    def __init__(self, kept_max: int = 8_192) -> None:
        self.kept_max = kept_max
        self.least: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)

    def add(self, hashes: npt.NDArray[np.uint64]) -> None:
        """Add values that are evenly distributed, as hashes are."""
        self.least = np.unique(np.concatenate([self.least, hashes]))[: self.kept_max]

    @property
    def count(self) -> int:
        """Return the number of distinct values."""
        if len(self.least) < self.kept_max:
            return len(self.least)
        return round((self.kept_max - 1) / (float(self.least[-1]) / 2**64))


class Tally(Generic[K]):
    """Counts by key; once there are `keys_max` keys, further ones are counted together."""

    def __init__(self, keys_max: int = 5_000) -> None:
        self.keys_max = keys_max
        self.counts: dict[K, int] = {}
        self.others = 0

    def add(self, key: K, count: int = 1) -> None:
        """Add to the count of a key."""
        if key in self.counts or len(self.counts) < self.keys_max:
            self.counts[key] = self.counts.get(key, 0) + count
        else:
            self.others += count

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return sum(self.counts.values()) + self.others

    def most_common(self, count: int) -> list[tuple[K, int]]:
        """Return the keys with the largest counts."""
        return sorted(self.counts.items(), key=lambda item: -item[1])[:count]


def keep_first(
    examples: dict[K, dict[str, Any]], key: K, row: dict[str, Any], columns: Sequence[str], keys_max: int
) -> None:
    """Keep the first row of each key, by the order of some columns; none of further keys once there are `keys_max`."""
    had = examples.get(key)
    if had is None and len(examples) >= keys_max:
        return
    if had is None or [row[name] for name in columns] < [had[name] for name in columns]:
        examples[key] = row

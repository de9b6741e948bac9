"""Latencies as counts in buckets, so that the histograms of several processes add up to percentiles of all."""

from __future__ import annotations

import math
from collections.abc import Mapping

BUCKETS_A_DOUBLING = 16
_FINEST_S = 1e-6


class Histogram:
    """Counts of latencies; a bucket is 4.4 % wide, from a microsecond up.

    `counts` maps bucket to count; `largest_s` is exact.
    """

    __slots__ = ("counts", "largest_s")

    def __init__(self, counts: Mapping[int, int] | None = None, largest_s: float = 0.0) -> None:
        self.counts: dict[int, int] = dict(counts or {})
        self.largest_s = largest_s

    @property
    def total(self) -> int:
        """Number of values."""
        return sum(self.counts.values())

    def add(self, seconds: float) -> None:
        """Count one value."""
        bucket = int(BUCKETS_A_DOUBLING * math.log2(max(seconds / _FINEST_S, 1.0)))
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.largest_s = max(self.largest_s, seconds)

    def plus(self, other: Histogram) -> Histogram:
        """Return the sum of both."""
        counts = dict(self.counts)
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
        return Histogram(counts, max(self.largest_s, other.largest_s))

    def minus(self, earlier: Histogram) -> Histogram:
        """Return the values added since `earlier`, an older state; `largest_s` is then the top of the last bucket."""
        counts = {bucket: count - earlier.counts.get(bucket, 0) for bucket, count in self.counts.items()}
        counts = {bucket: count for bucket, count in counts.items() if count}
        return Histogram(counts, min(self.largest_s, _top_s(max(counts))) if counts else 0.0)

    def percentile_ms(self, share: float) -> float | None:
        """Return the latency in ms that this share (0 to 1) of the values does not exceed; None when it is empty."""
        left = math.ceil(share * self.total)
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 0:
                return 1000 * min(_top_s(bucket), self.largest_s)
        return None


def _top_s(bucket: int) -> float:
    return float(_FINEST_S * 2 ** ((bucket + 1) / BUCKETS_A_DOUBLING))

"""Figures of a fleet that can be added up over processes and converted to JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(slots=True)
class Figures:
    """The figures of one process or of all, from the start until now.

    `started` counts brokers that run or try to, `registered`, `unfenced` and `fenced` those in that state in the
    metadata log, `running` those in that state of their own. `answered` counts heartbeats, `errors` refusals by name.
    `mistakes` counts, by broker id, the times the controller fenced a broker that was well; `died` has the reason of
    each unexpected stop. `registered_s` and `unfenced_s` are the times at which all brokers were for the first time.
    `memory_bytes` is the growth of the processes since before the first broker; `cpu_s` is their CPU time.
    """

    brokers: int = 0
    started: int = 0
    registered: int = 0
    unfenced: int = 0
    fenced: int = 0
    running: int = 0
    answered: int = 0
    memory_bytes: int = 0
    cpu_s: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    mistakes: Counter[int] = field(default_factory=Counter)
    died: dict[int, str] = field(default_factory=dict)
    registered_s: float | None = None
    unfenced_s: float | None = None
    latency: Histogram = field(default_factory=Histogram)

    def plus(self, other: Figures) -> Figures:
        """Return the sum of both."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return Figures(
            **sums,
            errors=self.errors + other.errors,
            mistakes=self.mistakes + other.mistakes,
            died=self.died | other.died,
            registered_s=_later(self, other, self.registered_s, other.registered_s),
            unfenced_s=_later(self, other, self.unfenced_s, other.unfenced_s),
            latency=self.latency.plus(other.latency),
        )

    def to_tree(self) -> dict[str, Any]:
        """Return the JSON form; :func:`figures_of` reads it."""
        latency = {"counts": list(self.latency.counts.items()), "largest_s": self.latency.largest_s}
        return {
            **{name: getattr(self, name) for name in (*_SUMS, *_TIMES, "errors", "mistakes", "died")},
            "latency": latency,
        }


_SUMS = ("brokers", "started", "registered", "unfenced", "fenced", "running", "answered", "memory_bytes", "cpu_s")
_TIMES = ("registered_s", "unfenced_s")


def figures_of(tree: dict[str, Any]) -> Figures:
    """Return the figures from a tree of :meth:`Figures.to_tree`, whose keys JSON has turned into strings."""
    latency = Histogram(dict(map(tuple, tree["latency"]["counts"])), tree["latency"]["largest_s"])
    mistakes = Counter({int(broker_id): count for broker_id, count in tree["mistakes"].items()})
    died = {int(broker_id): why for broker_id, why in tree["died"].items()}
    return Figures(
        **{**tree, "errors": Counter(tree["errors"]), "mistakes": mistakes, "died": died, "latency": latency}
    )


def merged(parts: Iterable[Figures]) -> Figures:
    """Return the sum of all."""
    total = Figures()
    for part in parts:
        total = total.plus(part)
    return total


def _later(one: Figures, other: Figures, at_s: float | None, other_at_s: float | None) -> float | None:
    """Return the time from which something holds for both, ignoring a side without brokers."""
    if not one.brokers or not other.brokers:
        return at_s if one.brokers else other_at_s
    return None if at_s is None or other_at_s is None else max(at_s, other_at_s)

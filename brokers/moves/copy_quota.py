"""The throttle for copies between directories: `replica.alter.log.dirs.io.max.bytes.per.second`.

Mirrors Kafka's `ReplicationQuotaManager` over its `SimpleRate`: copying is allowed while the rate measured over the
last samples is not above the quota; each copied piece then counts whole. All movers of a broker share one quota.
"""

from __future__ import annotations

from dataclasses import dataclass

SAMPLE_MS = 1_000
SAMPLES = 11
BACKOFF_MS = 1_000
"""The longest wait before a mover checks again (replica.fetch.backoff.ms)."""


@dataclass(slots=True)
class _Sample:
    start_ms: float
    last_ms: float
    copied_bytes: int = 0


class CopyQuota:
    """The recent copying rate against a quota of `bytes_per_second`, None for no limit. Times are in ms."""

    def __init__(self, bytes_per_second: float | None = None) -> None:
        self.bytes_per_second = bytes_per_second
        # As in Kafka's SampledStat: a ring in which an expired sample is reset in place.
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, copied_bytes: int, now_ms: float) -> None:
        """Count copied bytes, including those that the quota does not limit."""
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        elif now_ms - self._samples[self._current].start_ms >= SAMPLE_MS:
            self._current = (self._current + 1) % (SAMPLES + 1)
            self._samples[self._current : self._current + 1] = [_Sample(now_ms, now_ms)]
        sample = self._samples[self._current]
        sample.copied_bytes += copied_bytes
        sample.last_ms = now_ms

    def rate(self, now_ms: float) -> float:
        """Return bytes per second since the oldest sample began, measured over at least a second."""
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        for at, sample in enumerate(self._samples):
            if now_ms - sample.last_ms >= SAMPLES * SAMPLE_MS:
                self._samples[at] = _Sample(now_ms, now_ms)
        elapsed_ms = max(now_ms - self._oldest_ms, SAMPLE_MS)
        return self._copied_bytes * 1_000 / elapsed_ms

    def is_exceeded(self, now_ms: float) -> bool:
        """Return True if copying has to wait."""
        return self.bytes_per_second is not None and self.rate(now_ms) > self.bytes_per_second

    def wait_ms(self, now_ms: float) -> float:
        """Return the wait until the next check: 0 when copying is allowed, never more than `BACKOFF_MS`."""
        if not self.is_exceeded(now_ms):
            return 0.0
        if not self.bytes_per_second:
            return BACKOFF_MS
        allowed_at_ms = self._oldest_ms + self._copied_bytes * 1_000 / self.bytes_per_second
        return min(max(allowed_at_ms - now_ms, 1.0), BACKOFF_MS)

    @property
    def _copied_bytes(self) -> int:
        return sum(sample.copied_bytes for sample in self._samples)

    @property
    def _oldest_ms(self) -> float:
        return min(sample.start_ms for sample in self._samples)

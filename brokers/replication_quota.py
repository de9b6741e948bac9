"""The measured rate of copied bytes against a quota: Kafka's ReplicationQuotaManager over its SimpleRate.

Moves between directories have one (KIP-113), and replication between brokers has one for each side (KIP-73), which is
about replicas that topics list.
"""

from __future__ import annotations

from dataclasses import dataclass

from mockraft.brokers.image import ClusterImage
from mockraft.brokers.image.cluster_image import BROKER_RESOURCE, TOPIC_RESOURCE

SAMPLE_MS = 1_000
SAMPLES = 11
BACKOFF_MS = 1_000
"""The longest wait before the rate is measured again (replica.fetch.backoff.ms)."""


@dataclass(slots=True)
class _Sample:
    start_ms: float
    last_ms: float
    copied_bytes: int = 0


class ReplicationQuota:
    """The recent copying rate against a quota of `bytes_per_second`, None for no limit. Times are in ms.

    Copying is allowed while the rate measured over the last samples is not above the quota; each copied piece then
    counts whole.
    """

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


class ReplicationThrottle:
    """The throttle of one side, "leader" or "follower", of replication, by the configs in the metadata log.

    `<side>.replication.throttled.rate` of the broker is the quota, `<side>.replication.throttled.replicas` of a topic
    lists the replicas that it is about, as partition:broker, or "*". Replicas in sync are never held up.
    """

    def __init__(self, side: str, image: ClusterImage, broker_id: int) -> None:
        self._rate = f"{side}.replication.throttled.rate"
        self._replicas = f"{side}.replication.throttled.replicas"
        self._image = image
        self._broker_id = broker_id
        self._quota = ReplicationQuota()

    def covers(self, topic: str, partition: int) -> bool:
        """Return True if the topic lists this broker's replica."""
        listed = self._image.config(TOPIC_RESOURCE, topic).get(self._replicas, "").strip()
        return listed == "*" or f"{partition}:{self._broker_id}" in listed.split(",")

    def holds(self, topic: str, partition: int, now_ms: float) -> bool:
        """Return True if a replica that is not in sync has to wait."""
        return self.has_rate() and self.covers(topic, partition) and self._quota.is_exceeded(now_ms)

    def has_rate(self) -> bool:
        """Return True if the broker has a quota; without one no replica has to wait."""
        configs = (self._image.config(BROKER_RESOURCE, name).get(self._rate) for name in (str(self._broker_id), ""))
        rate = next(filter(None, configs), "")
        self._quota.bytes_per_second = int(rate) if rate.isdecimal() else None
        return self._quota.bytes_per_second is not None

    def record(self, topic: str, partition: int, copied_bytes: int, now_ms: float) -> None:
        """Count the replicated bytes of a partition if it is covered, in sync or not."""
        if copied_bytes and self.covers(topic, partition):
            self._quota.record(copied_bytes, now_ms)

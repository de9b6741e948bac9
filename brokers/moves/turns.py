"""Which mover copies a replica, and when (Kafka's `AbstractFetcherManager.getFetcherId` and `LocalLeaderEndPoint`)."""

from __future__ import annotations

from collections.abc import Collection

TopicPartition = tuple[str, int]


def mover_of(topic: str, partition: int, movers: int) -> int:
    """The mover (0 ≤ n < movers) that has this partition: Kafka spreads them by Java's hash of the topic's name."""
    hashed = 0
    for character in topic:
        hashed = _java_int(31 * hashed + ord(character))
    hashed = _java_int(31 * hashed + partition)
    return (0 if hashed == -(2**31) else abs(hashed)) % movers


def next_to_copy(in_progress: TopicPartition | None, ready: Collection[TopicPartition]) -> TopicPartition | None:
    """The one being copied while it is there to copy, else the first by topic name and number.

    One at a time: the sooner a replica has caught up, the less is written to it twice.
    """
    return in_progress if in_progress in ready else min(ready, default=None)


def _java_int(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31

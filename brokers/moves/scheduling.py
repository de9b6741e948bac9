"""Distribution of replicas to movers, and their order (Kafka's `getFetcherId` and `LocalLeaderEndPoint`)."""

from __future__ import annotations

from collections.abc import Collection

TopicPartition = tuple[str, int]


def mover_of(topic: str, partition: int, movers: int) -> int:
    """Return a partition's mover (0 ≤ n < movers), by Java's hash of the topic's name as in Kafka."""
    hashed = 0
    for character in topic:
        hashed = _java_int(31 * hashed + ord(character))
    hashed = _java_int(31 * hashed + partition)
    return (0 if hashed == -(2**31) else abs(hashed)) % movers


def next_to_copy(in_progress: TopicPartition | None, ready: Collection[TopicPartition]) -> TopicPartition | None:
    """Return the partition in progress while it is ready, else the first ready one by topic name and number.

    One at a time: the sooner a replica has caught up, the fewer records are written to both directories.
    """
    return in_progress if in_progress in ready else min(ready, default=None)


def _java_int(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31

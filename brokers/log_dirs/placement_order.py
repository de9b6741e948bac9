"""The order in which Kafka assigns directories to the new replicas of one change: that of Java's hash maps.

It determines the directory of each replica of a topic with several partitions, so Java's tables are reproduced here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

FIRST_TABLE = 16


class NewReplica(NamedTuple):
    """A replica that has no directory yet."""

    topic_id: bytes
    topic: str
    partition: int


T = TypeVar("T")


def in_kafkas_order(replicas: Iterable[NewReplica]) -> list[NewReplica]:
    """Return these leaders, or followers, of one metadata delta in the order of `ReplicaManager`.

    Kafka collects them by topic (`TopicDelta.localChanges`) and merges those maps into one
    (`TopicsDelta.localChanges`).
    """
    by_topic: dict[bytes, list[NewReplica]] = {}
    for replica in sorted(replicas):
        by_topic.setdefault(replica.topic_id, []).append(replica)
    together: list[NewReplica] = []
    table = 0
    for topic_id in _ordered(list(by_topic), _uuid_hash, _grown(len(by_topic))):
        partitions = by_topic[topic_id]
        changed = _ordered(partitions, lambda replica: replica.partition, _grown(len(partitions)))
        table = _grown(len(changed), table) if table else _table_for(len(changed))
        together += _ordered(changed, _replica_hash, _grown(len(changed)))
        table = _grown(len(together), table)
    return _ordered(together, _replica_hash, table)


def _ordered(items: Sequence[T], hash_of: Callable[[T], int], table: int) -> list[T]:
    """Return the keys by bucket, and within one in the order of insertion."""

    def bucket(item: T) -> int:
        hashed = hash_of(item) & 0xFFFFFFFF
        return (hashed ^ hashed >> 16) & (table - 1)

    return sorted(items, key=bucket)


def _grown(count: int, table: int = FIRST_TABLE) -> int:
    while count > table * 0.75:
        table *= 2
    return table


def _table_for(count: int) -> int:
    """Return the table size of an empty map into which a map of this size is put."""
    table = 1
    while table < int(count / 0.75 + 1):
        table *= 2
    return table


def _replica_hash(replica: NewReplica) -> int:
    text_hash = 0
    for character in replica.topic:
        text_hash = 31 * text_hash + ord(character) & 0xFFFFFFFF
    return 31 * (31 + replica.partition) + text_hash


def _uuid_hash(uuid: bytes) -> int:
    mixed = int.from_bytes(uuid[:8]) ^ int.from_bytes(uuid[8:])
    return mixed >> 32 ^ mixed

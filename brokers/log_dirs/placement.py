"""Choice of the directory for a new replica (Kafka's `LogManager.nextLogDirs`), cordoned ones left out (KIP-1066).

The order in which the replicas of one change get a directory is that of Java's hash maps. It determines the directory
of each replica of a topic with several partitions, so Java's tables are reproduced here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar


class DirectoryAt(NamedTuple):
    """One log directory as configured: its path and its uuid, 16 bytes."""

    path: str
    directory_id: bytes


def candidates(
    log_dirs: Sequence[DirectoryAt], load: Mapping[bytes, int], offline: Container[bytes], cordoned: Container[bytes]
) -> list[DirectoryAt]:
    """Return the directories for a new replica, best first; Kafka tries the next one when creating the log fails.

    The live, uncordoned directories by the number of replicas in them (`load`, by uuid; a future replica counts), ties
    in the order of `log_dirs`. With a single live directory: that one, cordoned or not. With all live ones cordoned:
    the first of them. With none live: empty.
    """
    live = [log_dir for log_dir in log_dirs if log_dir.directory_id not in offline]
    uncordoned = [log_dir for log_dir in live if log_dir.directory_id not in cordoned]
    if len(live) == 1 or not uncordoned:
        return live[:1]
    return sorted(uncordoned, key=lambda log_dir: load.get(log_dir.directory_id, 0))


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


def in_map_order(texts: Sequence[str]) -> list[str]:
    """Return strings in the order of a Java HashMap with these keys."""
    return _ordered(texts, _text_hash, _grown(len(texts)))


def _text_hash(text: str) -> int:
    text_hash = 0
    for character in text:
        text_hash = 31 * text_hash + ord(character) & 0xFFFFFFFF
    return text_hash


def _replica_hash(replica: NewReplica) -> int:
    return 31 * (31 + replica.partition) + _text_hash(replica.topic)


def _uuid_hash(uuid: bytes) -> int:
    mixed = int.from_bytes(uuid[:8]) ^ int.from_bytes(uuid[8:])
    return mixed >> 32 ^ mixed


CORDONED_LOG_DIRS = "cordoned.log.dirs"
ALL = "*"


class CordoningError(ValueError):
    """A value of cordoned.log.dirs that Kafka rejects; the text is Kafka's."""


def cordoned_paths(value: str, paths: Sequence[str]) -> frozenset[str]:
    """Return the cordoned directories among `paths` (log.dirs, offline ones too) by Kafka's LIST value.

    `*` alone selects all of them, an empty value none. Paths are compared as strings, as in Kafka. Raises
    CordoningError for a path that is not in log.dirs, and for `*` beside others.
    """
    entries = [entry.strip() for entry in value.split(",")] if value.strip() else []
    if ALL in entries:
        if len(entries) > 1:
            raise CordoningError(f"When {CORDONED_LOG_DIRS} is set to {ALL}, it must not contain other values")
        return frozenset(paths)
    if unknown := [entry for entry in entries if entry not in paths]:
        raise CordoningError(
            f"All entries in {CORDONED_LOG_DIRS} must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(unknown)}"
        )
    return frozenset(entries)

"""Records of groups of the consumer protocol as bytes: the difference of two snapshots, and a record applied to one.

Source: the message specifications ConsumerGroup…Key and -Value of Kafka's group-coordinator. Every value has version 0,
which is flexible; fields of later releases are tagged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import Final, TypeVar

from mockraft.brokers.coordinators.assignors import Assignment
from mockraft.brokers.coordinators.group_snapshot import (
    ClassicSide,
    Description,
    GroupMember,
    GroupSnapshot,
    ResolvedPattern,
)
from mockraft.brokers.coordinators.reconciliation import MemberState, Owned, Standing
from mockraft.brokers.coordinators.state_records import Record, RecordReader, string
from mockraft.wire import primitives
from mockraft.wire.errors import WireError

CLASSIC_GROUP: Final = 2
EPOCH, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET, STANDING, PATTERN = 3, 4, 5, 6, 7, 8, 16
"""Versions of keys, which are kinds of records."""
_SHORT, _INT, _LONG = Struct(">h"), Struct(">i"), Struct(">q")
_EPOCHS: Final = Struct(">iib")
_ASSIGNMENT_TIME: Final = 0
_ASSIGNMENT_EPOCHS: Final = 0
_CLASSIC_SIDE: Final = 0
_TOPIC_ID_SIZE: Final = 16

V = TypeVar("V")
Apply = Callable[[GroupSnapshot], GroupSnapshot | None]


@dataclasses.dataclass(frozen=True, slots=True)
class GroupRecord:
    """A record of a group; `apply` returns None for one that ends the group."""

    group_id: str
    apply: Apply


def changes(group_id: str, before: GroupSnapshot, after: GroupSnapshot) -> list[Record]:
    """Return the records that make one snapshot of the other, in an order in which Kafka can apply them."""
    gone = [member_id for member_id in before.members if member_id not in after.members]
    records: list[Record] = [(_key(kind, group_id, each), None) for each in gone for kind in (STANDING, TARGET, MEMBER)]
    records += [(_key(PATTERN, group_id, each), None) for each in before.patterns if each not in after.patterns]
    described = {member_id: member.described for member_id, member in after.members.items()}
    for member_id, description in _changed({key: each.described for key, each in before.members.items()}, described):
        records.append((_key(MEMBER, group_id, member_id), _member(description)))
    for pattern, resolved in _changed(before.patterns, after.patterns):
        records.append((_key(PATTERN, group_id, pattern), _pattern(resolved)))
    if after.epoch != before.epoch:
        records.append((_key(EPOCH, group_id), _VERSION + _INT.pack(after.epoch) + _NO_TAGS))
    for member_id, target in _changed(before.targets, after.targets):
        records.append((_key(TARGET, group_id, member_id), _VERSION + _assignment(target) + _NO_TAGS))
    if (after.assignment_epoch, after.assigned_ms) != (before.assignment_epoch, before.assigned_ms):
        tags = [(_ASSIGNMENT_TIME, _LONG.pack(after.assigned_ms))] if after.assigned_ms else []
        records.append((_key(TARGET_EPOCH, group_id), _VERSION + _INT.pack(after.assignment_epoch) + _tags(tags)))
    standings = {member_id: member.standing for member_id, member in after.members.items()}
    for member_id, standing in _changed({key: each.standing for key, each in before.members.items()}, standings):
        records.append((_key(STANDING, group_id, member_id), _standing(standing)))
    return records


def tombstones(group_id: str, snapshot: GroupSnapshot) -> list[Record]:
    """Return the records that delete a group (createGroupTombstoneRecords)."""
    members = list(snapshot.members)
    keys = [_key(kind, group_id, member_id) for kind in (STANDING, TARGET) for member_id in members]
    keys += [_key(TARGET_EPOCH, group_id)]
    keys += [_key(MEMBER, group_id, member_id) for member_id in members]
    keys += [_key(PATTERN, group_id, pattern) for pattern in snapshot.patterns]
    keys += [_key(PARTITION_METADATA, group_id), _key(EPOCH, group_id)]
    return [(key, None) for key in keys]


def classic_tombstone(group_id: str) -> Record:
    """Return the record that deletes a classic group (GroupMetadataKey)."""
    return _key(CLASSIC_GROUP, group_id), None


def read_group(key: bytes, value: bytes | None) -> GroupRecord | None:
    """Return a record of a group; None for another kind, also for a classic group that is not deleted."""
    reader = RecordReader(key)
    kind = reader.number(_SHORT)
    if kind not in _APPLY and (kind != CLASSIC_GROUP or value is not None):
        return None
    group_id = reader.string()
    name = reader.string() if kind in (MEMBER, TARGET, STANDING, PATTERN) else ""
    if kind not in _APPLY:
        return GroupRecord(group_id, lambda snapshot: snapshot)
    if value is None:
        return GroupRecord(group_id, _DELETE[kind](name))
    body = RecordReader(value)
    if (version := body.number(_SHORT)) != 0:
        raise WireError(f"a record of a group has version {version}")
    return GroupRecord(group_id, _APPLY[kind](name, body))


# Writing.

_VERSION: Final = _SHORT.pack(0)
_NO_TAGS: Final = b"\0"


def _changed(before: Mapping[str, V], after: Mapping[str, V]) -> Iterable[tuple[str, V]]:
    return [(key, value) for key, value in after.items() if before.get(key) != value]


def _key(kind: int, *names: str) -> bytes:
    return _SHORT.pack(kind) + b"".join(map(string, names))


def _bytes(data: bytes) -> bytes:
    return primitives.write_uvarint(len(data) + 1) + data


def _text(text: str | None) -> bytes:
    return b"\0" if text is None else _bytes(text.encode())


def _array(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return primitives.write_uvarint(len(found) + 1) + b"".join(found)


def _numbers(numbers: Iterable[int]) -> bytes:
    return _array(map(_INT.pack, numbers))


def _tags(tags: Iterable[tuple[int, bytes]]) -> bytes:
    return primitives.write_tags(list(tags))


def _assignment(assignment: Assignment) -> bytes:
    return _array(key + _numbers(sorted(indexes)) + _NO_TAGS for key, indexes in assignment.items())


def _owned(owned: Owned) -> bytes:
    return _array(
        key + _numbers(epochs) + _tags([(_ASSIGNMENT_EPOCHS, _numbers(epochs.values()))])
        for key, epochs in owned.items()
    )


def _standing(standing: Standing) -> bytes:
    head = _EPOCHS.pack(standing.epoch, standing.previous_epoch, standing.state)
    return b"".join((_VERSION, head, _owned(standing.assigned), _owned(standing.revoking), _NO_TAGS))


def _pattern(resolved: ResolvedPattern) -> bytes:
    topics = _array(_text(each) for each in sorted(resolved.topics))
    return b"".join((_VERSION, topics, _LONG.pack(resolved.version), _LONG.pack(resolved.resolved_ms), _NO_TAGS))


def _member(described: Description) -> bytes:
    parts = [_VERSION, _text(described.instance_id), _text(described.rack_id), _text(described.client_id)]
    parts += [_text(described.client_host), _array(_text(each) for each in sorted(described.topics))]
    parts += [_text(described.pattern), _INT.pack(described.rebalance_timeout_ms), _text(described.assignor)]
    if described.classic is None:
        # Kafka takes a missing tag for an empty struct, though its specification says null.
        return b"".join((*parts, _tags([(_CLASSIC_SIDE, b"\0")])))
    protocols = _array(_text(name) + _bytes(data) + _NO_TAGS for name, data in described.classic.protocols)
    # A nullable struct begins with 1 where it is not null.
    side = b"".join((b"\1", _INT.pack(described.classic.session_timeout_ms), protocols, _NO_TAGS))
    return b"".join((*parts, _tags([(_CLASSIC_SIDE, side)])))


# Reading.


def _with_member(name: str, change: Callable[[GroupMember], GroupMember]) -> Apply:
    def apply(snapshot: GroupSnapshot) -> GroupSnapshot:
        changed = change(snapshot.members.get(name, GroupMember()))
        return dataclasses.replace(snapshot, members={**snapshot.members, name: changed})

    return apply


def _but(entries: Mapping[str, V], name: str) -> dict[str, V]:
    return {key: value for key, value in entries.items() if key != name}


def _read_epoch(_name: str, body: RecordReader) -> Apply:
    epoch = body.number(_INT)
    return lambda snapshot: dataclasses.replace(snapshot, epoch=epoch)


def _read_target_epoch(_name: str, body: RecordReader) -> Apply:
    epoch = body.number(_INT)
    time = dict(body.tags()).get(_ASSIGNMENT_TIME, bytes(_LONG.size))
    assigned_ms = RecordReader(time).number(_LONG)
    return lambda snapshot: dataclasses.replace(snapshot, assignment_epoch=epoch, assigned_ms=assigned_ms)


def _read_target(name: str, body: RecordReader) -> Apply:
    target = {key: frozenset(indexes) for key, indexes, _ in _read_topics(body)}
    return lambda snapshot: dataclasses.replace(snapshot, targets={**snapshot.targets, name: target})


def _read_standing(name: str, body: RecordReader) -> Apply:
    epoch, previous, number = body.numbers(_EPOCHS)
    state = MemberState(number) if number in list(MemberState) else MemberState.UNKNOWN
    assigned, revoking = _read_owned(body, epoch), _read_owned(body, epoch)
    standing = Standing(epoch, previous, state, assigned, revoking)
    return _with_member(name, lambda member: member._replace(standing=standing))


def _read_pattern(name: str, body: RecordReader) -> Apply:
    resolved = ResolvedPattern(_read_texts(body), body.number(_LONG), body.number(_LONG))
    return lambda snapshot: dataclasses.replace(snapshot, patterns={**snapshot.patterns, name: resolved})


def _read_member(name: str, body: RecordReader) -> Apply:
    instance_id, rack_id = body.nullable_string(), body.nullable_string()
    client_id, client_host = body.string(is_flexible=True), body.string(is_flexible=True)
    topics = _read_texts(body)
    pattern, timeout_ms, assignor = body.nullable_string(), body.number(_INT), body.nullable_string()
    classic = None
    side = RecordReader(dict(body.tags()).get(_CLASSIC_SIDE, b""))
    if side.left and side.data(1) == b"\1":
        session_ms = side.number(_INT)
        protocols = []
        for _ in range(side.count(is_flexible=True)):
            protocols.append((side.string(is_flexible=True), side.compact_bytes()))
            side.tags()
        classic = ClassicSide(session_ms, tuple(protocols))
    described = Description(
        instance_id, rack_id, client_id, client_host, topics, pattern, timeout_ms, assignor, classic
    )
    return _with_member(name, lambda member: member._replace(described=described))


def _read_texts(body: RecordReader) -> frozenset[str]:
    return frozenset(body.string(is_flexible=True) for _ in range(body.count(is_flexible=True)))


def _read_topics(body: RecordReader) -> list[tuple[bytes, list[int], dict[int, bytes]]]:
    found = []
    for _ in range(body.count(is_flexible=True)):
        topic_id = body.data(_TOPIC_ID_SIZE)
        indexes = _read_numbers(body)
        found.append((topic_id, indexes, dict(body.tags())))
    return found


def _read_owned(body: RecordReader, epoch: int) -> Owned:
    """Read partitions with the epochs in which they were given; before Kafka 4.4 that of the member stands for them."""
    owned = {}
    for topic_id, indexes, tags in _read_topics(body):
        data = tags.get(_ASSIGNMENT_EPOCHS)
        epochs = [epoch] * len(indexes) if data is None else _read_numbers(RecordReader(data))
        owned[topic_id] = dict(zip(indexes, epochs, strict=False))
    return owned


def _read_numbers(body: RecordReader) -> list[int]:
    return [body.number(_INT) for _ in range(body.count(is_flexible=True))]


def _nothing(snapshot: GroupSnapshot) -> GroupSnapshot:
    return snapshot


_APPLY: Final[Mapping[int, Callable[[str, RecordReader], Apply]]] = {
    EPOCH: _read_epoch,
    PARTITION_METADATA: lambda _name, _body: _nothing,
    MEMBER: _read_member,
    TARGET_EPOCH: _read_target_epoch,
    TARGET: _read_target,
    STANDING: _read_standing,
    PATTERN: _read_pattern,
}
_DELETE: Final[Mapping[int, Callable[[str], Apply]]] = {
    EPOCH: lambda _name: lambda _snapshot: None,
    PARTITION_METADATA: lambda _name: _nothing,
    MEMBER: lambda name: lambda found: dataclasses.replace(found, members=_but(found.members, name)),
    TARGET_EPOCH: lambda _name: lambda found: dataclasses.replace(found, assignment_epoch=1, assigned_ms=0),
    TARGET: lambda name: lambda found: dataclasses.replace(found, targets=_but(found.targets, name)),
    STANDING: lambda name: (
        lambda found: (
            _with_member(name, lambda member: member._replace(standing=Standing()))(found)
            if name in found.members
            else found
        )
    ),
    PATTERN: lambda name: lambda found: dataclasses.replace(found, patterns=_but(found.patterns, name)),
}

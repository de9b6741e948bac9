"""Two answers to the same request, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mockraft.spark_replay.bindings import NOT_COMPARED, Bindings, kind_of

_IDENTITIES = (
    ("apiKey",),
    ("topicName",),
    ("name",),
    ("topic",),
    ("nodeId",),
    ("brokerId",),
    ("replicaId",),
    ("partitionIndex",),
    ("partitionId",),
    ("index",),
    ("id",),
    ("resourceType", "resourceName"),
)
"""Fields by which elements of an array are told apart; arrays of such elements have no order worth comparing."""


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()
"""The value of a field or element that one side has not."""


class Difference(NamedTuple):
    """A place where a live answer is not as the captured one: `path` like `topics[0].errorCode`, both values."""

    path: str
    captured: Any
    live: Any


def compare(captured: Any, live: Any, api_key: int, bindings: Bindings) -> list[Difference]:
    """Where two answers' JSON trees differ; pairs of ids and epochs are learnt on the way, see `bindings`."""
    return list(_compare(captured, live, api_key, bindings, "", ""))


def _compare(captured: Any, live: Any, api_key: int, bindings: Bindings, path: str, field: str) -> Iterator[Difference]:
    if isinstance(captured, dict) and isinstance(live, dict):
        for name in (*captured, *(name for name in live if name not in captured)):
            ours, theirs = captured.get(name, ABSENT), live.get(name, ABSENT)
            place = f"{path}.{name}" if path else name
            if name in NOT_COMPARED:
                if (ours is None) != (theirs is None) and ABSENT not in (ours, theirs) and name != "errorMessage":
                    yield Difference(place, ours, theirs)
                continue
            kind = kind_of(name, api_key, field)
            if kind is not None and not isinstance(ours, dict | list) and ABSENT not in (ours, theirs):
                if not bindings.learn(kind, ours, theirs):
                    yield Difference(place, bindings.live(kind, ours), theirs)
            else:
                yield from _compare(ours, theirs, api_key, bindings, place, name)
    elif isinstance(captured, list) and isinstance(live, list):
        yield from _compare_arrays(captured, live, api_key, bindings, path, field)
    elif captured != live:
        yield Difference(path, captured, live)


def _compare_arrays(
    captured: list[Any], live: list[Any], api_key: int, bindings: Bindings, path: str, field: str
) -> Iterator[Difference]:
    ours, theirs = _by_identity(captured), _by_identity(live)
    if ours is None or theirs is None:
        for index in range(max(len(captured), len(live))):
            ours_at, theirs_at = [each[index] if index < len(each) else ABSENT for each in (captured, live)]
            yield from _compare(ours_at, theirs_at, api_key, bindings, f"{path}[{index}]", field)
        return
    for identity in (*ours, *(each for each in theirs if each not in ours)):
        place = f"{path}[{','.join(map(str, identity))}]"
        yield from _compare(ours.get(identity, ABSENT), theirs.get(identity, ABSENT), api_key, bindings, place, field)


def _by_identity(elements: list[Any]) -> dict[tuple[Any, ...], Any] | None:
    """The elements by what tells them apart; None where nothing does."""
    if not all(isinstance(each, dict) for each in elements):
        return None
    for names in _IDENTITIES:
        if all(each.get(name) not in (None, "") for each in elements for name in names):
            found = {tuple(each[name] for name in names): each for each in elements}
            return found if len(found) == len(elements) else None
    return None

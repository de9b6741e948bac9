"""Remove bytes captured twice: the first copy in capture order counts, wherever its segment starts."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, gather


class Trimmed(NamedTuple):
    """Disjoint stretches in order: `source` is the segment of each, `begin` and `end` its place in the stream.

    `repeated` is the number of bytes of each segment that others had sent before, `differing` how many of these differ.
    """

    source: Array
    begin: Array
    end: Array
    repeated: Array
    differing: Array


def trim_overlaps(start: Array, end: Array, arrival: Array, captured: Array, data_at: Array, buffer: Array) -> Trimmed:
    """Return the first copies of all bytes of segments sorted by `start` (then by `arrival`).

    Args:
        start, end: of each segment in one numbering, in which directions do not touch.
        arrival: its place in capture order.
        captured: number of its bytes that were captured.
        data_at: their position in `buffer`.
    """
    count = len(start)
    nothing = np.zeros(count, np.int64)
    reach = np.maximum.accumulate(end)
    before = np.concatenate(([start[0]], reach[:-1]))
    over = start < before
    over[0] = False
    if not over.any():
        return Trimmed(np.arange(count), start, end, nothing, nothing)
    begin = np.maximum(start, before)
    # Earlier start but later arrival: resolve such a cluster of overlapping segments one by one.
    late = np.zeros(count, bool)
    late[1:] = over[1:] & (arrival[1:] < arrival[:-1])
    cluster = np.cumsum(~over) - 1
    slow = np.zeros(int(cluster[-1]) + 1, bool)
    slow[cluster[late]] = True
    is_slow = slow[cluster]
    kept = (begin < end) & ~is_slow
    source, begins, ends = [np.flatnonzero(kept)], [begin[kept]], [end[kept]]
    for members in (
        np.split(np.flatnonzero(is_slow), np.flatnonzero(np.diff(cluster[is_slow])) + 1) if late.any() else ()
    ):
        stretches = _first_copies(members, start, end, arrival)
        source.append(stretches[:, 0])
        begins.append(stretches[:, 1])
        ends.append(stretches[:, 2])
    sources, starts, stops = np.concatenate(source), np.concatenate(begins), np.concatenate(ends)
    order = np.argsort(starts, kind="stable")
    sources, starts, stops = sources[order], starts[order], stops[order]
    used = np.bincount(sources, weights=stops - starts, minlength=count).astype(np.int64)
    differing = _differing(start, end, reach, captured, data_at, buffer)
    return Trimmed(sources, starts, stops, end - start - used, differing)


def _first_copies(members: Array, start: Array, end: Array, arrival: Array) -> Array:
    """Return rows (segment, begin, end) of one cluster."""
    taken: list[tuple[int, int]] = []
    rows: list[tuple[int, int, int]] = []
    for index in members[np.argsort(arrival[members], kind="stable")].tolist():
        for begin, stop in uncovered(taken, int(start[index]), int(end[index])):
            rows.append((index, begin, stop))
            insort(taken, (begin, stop))
    return np.array(rows, np.int64).reshape(-1, 3)


def uncovered(taken: Sequence[tuple[int, int, *tuple[object, ...]]], begin: int, end: int) -> list[tuple[int, int]]:
    """Return the parts of [begin, end) not covered by the disjoint, sorted stretches `taken` (start, end, …)."""
    free = []
    at = max(bisect_right(taken, begin, key=itemgetter(0)) - 1, 0)
    while begin < end and at < len(taken) and taken[at][0] < end:
        low, high, *_ = taken[at]
        if low > begin:
            free.append((begin, low))
        begin = max(begin, high)
        at += 1
    if begin < end:
        free.append((begin, end))
    return free


def _differing(start: Array, end: Array, reach: Array, captured: Array, data_at: Array, buffer: Array) -> Array:
    """Count the bytes of each overlapping segment that differ from the earlier segment that reaches furthest."""
    found = np.zeros(len(start), np.int64)
    index = np.arange(len(start))
    is_furthest = np.concatenate(([True], end[1:] > reach[:-1]))
    furthest = np.maximum.accumulate(np.where(is_furthest, index, 0))
    later = np.flatnonzero(start[1:] < reach[:-1]) + 1
    earlier = furthest[later - 1]
    skip = start[later] - start[earlier]
    size = np.minimum(end[later], reach[later - 1]) - start[later]
    # A repeated single byte is a keep-alive, with an arbitrary byte.
    size[(end - start)[later] == 1] = 0
    size = np.clip(np.minimum(np.minimum(size, captured[later]), captured[earlier] - skip), 0, None)
    some = size > 0
    later, size = later[some], size[some]
    if not later.size:
        return found
    ours = np.frombuffer(_joined(buffer, data_at[later], size), np.uint8)
    theirs = np.frombuffer(_joined(buffer, data_at[earlier[some]] + skip[some], size), np.uint8)
    if not np.array_equal(ours, theirs):
        first = np.cumsum(size) - size
        found[later] = np.add.reduceat((ours != theirs).astype(np.int64), first)
    return found


def joined(values: pa.Array) -> pa.Buffer:
    """Return all bytes of a binary array that starts its own buffer, concatenated."""
    return values.buffers()[2] or pa.py_buffer(b"")


def _joined(buffer: Array, at: Array, size: Array) -> pa.Buffer:
    return joined(gather(buffer, at, size))

"""Remove bytes captured twice: the first copy in capture order counts, wherever its segment starts."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
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
        spans = zip(*(each[members].tolist() for each in (start, end, arrival)), strict=True)
        index, first, stop = np.array(first_copies(list(spans), int(start[members[0]])), np.int64).T
        source.append(members[index])
        begins.append(first)
        ends.append(stop)
    sources, starts, stops = np.concatenate(source), np.concatenate(begins), np.concatenate(ends)
    order = np.argsort(starts, kind="stable")
    sources, starts, stops = sources[order], starts[order], stops[order]
    used = np.bincount(sources, weights=stops - starts, minlength=count).astype(np.int64)
    differing = _differing(start, end, reach, captured, data_at, buffer)
    return Trimmed(sources, starts, stops, end - start - used, differing)


def first_copies(spans: Sequence[tuple[int, int, int]], start: int) -> list[tuple[int, int, int]]:
    """Return (index, begin, end) of the first copies of all bytes from `start` on, in order.

    `spans` are (start, end, arrival), sorted.
    """
    found: list[tuple[int, int, int]] = []
    # The spans that contain `at`, first arrival first.
    active: list[tuple[int, int, int]] = []
    at, following = start, 0
    while active or following < len(spans):
        if not active:
            at = max(at, spans[following][0])
        while following < len(spans) and spans[following][0] <= at:
            _, end, arrival = spans[following]
            heappush(active, (arrival, end, following))
            following += 1
        _, end, index = active[0]
        if end <= at:
            heappop(active)
            continue
        stop = min(end, spans[following][0]) if following < len(spans) else end
        if found and found[-1][0] == index and found[-1][2] == at:
            found[-1] = index, found[-1][1], stop
        else:
            found.append((index, at, stop))
        at = stop
    return found


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

"""Byte strings that refer to their original buffers, so that each is copied once: when it becomes a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, gather, take
from mockraft.spark_replay.streams.overlaps import joined


class _Part(NamedTuple):
    """Item i is data[at[i] : at[i] + size[i]], or null."""

    data: Array
    at: Array
    size: Array
    is_null: Array

    def take(self, rows: Array) -> _Part:
        return _Part(self.data, self.at[rows], self.size[rows], self.is_null[rows])


class Slices:
    """A column of byte strings in several buffers. No buffer is kept alive for less than half of its bytes."""

    def __init__(self, parts: Iterable[_Part]) -> None:
        self._parts = [_compact(part) for part in parts if len(part.at)]

    @classmethod
    def of(cls, data: Array, at: Array, size: Array, is_null: Array) -> Slices:
        """Return slices of one buffer."""
        return cls([_Part(data, at, size, is_null)])

    @staticmethod
    def arrow_of(data: Array, at: Array, size: Array, is_null: Array) -> pa.Array:
        """Return slices of one buffer as binary, immediately."""
        return _to_arrow(_Part(data, at, size, is_null))

    @classmethod
    def concatenated(cls, columns: Iterable[Slices]) -> Slices:
        """Concatenate columns."""
        return cls(part for column in columns for part in column._parts)

    @property
    def nbytes(self) -> int:
        """Number of bytes of all items."""
        return sum(_bytes(part) for part in self._parts)

    def take(self, rows: Array) -> Slices:
        """Return some of the items, by ascending `rows`."""
        parts, first = [], 0
        bounds = np.cumsum([0, *(len(part.at) for part in self._parts)])
        cuts = np.searchsorted(rows, bounds).tolist()
        for part, low, high in zip(self._parts, cuts, cuts[1:], strict=False):
            parts.append(part.take(rows[low:high] - first))
            first += len(part.at)
        return Slices(parts)

    def to_arrow(self) -> pa.ChunkedArray:
        """Return the items as binary."""
        return pa.chunked_array([_to_arrow(part) for part in self._parts], pa.binary())


def _bytes(part: _Part) -> int:
    return int(part.size[~part.is_null].sum())


def _compact(part: _Part) -> _Part:
    if 2 * _bytes(part) >= len(part.data):
        return part
    at, size = np.where(part.is_null, 0, (part.at, part.size))
    data = np.frombuffer(joined(gather(part.data, at, size)), np.uint8)
    return _Part(data, np.cumsum(size) - size, size, part.is_null)


def _to_arrow(part: _Part) -> pa.Array:
    if not part.is_null.any():
        return gather(part.data, part.at, part.size)
    there = np.flatnonzero(~part.is_null)
    if not there.size:
        return pa.nulls(len(part.at), pa.binary())
    index = np.zeros(len(part.at), np.int64)
    index[there] = np.arange(len(there))
    return take(gather(part.data, part.at[there], part.size[there]), index, part.is_null)

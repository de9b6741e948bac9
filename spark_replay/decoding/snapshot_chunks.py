"""Join the pieces of snapshots, which FetchSnapshot cuts anywhere, to whole record batches.

A piece is kept until those before it have come, in any order; of a snapshot read in order only the beginning of its
last batch is kept. A snapshot with bytes missing in the capture is read up to them. All kept bytes are bounded: the
snapshot that was begun first is given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple

import pyarrow as pa

KEPT_BYTES_MAX: Final = 128 << 20
SNAPSHOTS_MAX: Final = 1000
PIECE_BYTES: Final = 10 << 10
"""Memory of a kept piece beside its bytes, for the columns of its frame."""

_BATCH_BYTES_MIN: Final = 61

Key = tuple[object, ...]


class Chunk(NamedTuple):
    """Bytes of a snapshot from `position` on, and the frame (a batch of one row) with the last of them."""

    frame: pa.RecordBatch
    position: int
    data: bytes


class Incomplete(NamedTuple):
    """A snapshot whose bytes are in the capture only up to `position`; `frame` has the last piece of it."""

    key: Key
    frame: pa.RecordBatch
    position: int
    size: int
    held_bytes: int


@dataclass(slots=True)
class _Snapshot:
    size: int
    frame: pa.RecordBatch
    # The position of the first byte of `tail`, the beginning of a batch.
    at: int = 0
    tail: bytearray = field(default_factory=bytearray)
    held: dict[int, Chunk] = field(default_factory=dict)
    # A heap of the positions in `held`.
    positions: list[int] = field(default_factory=list)

    @property
    def next(self) -> int:
        return self.at + len(self.tail)


class SnapshotChunks:
    """The snapshots that are being read, by connection and snapshot."""

    def __init__(self, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._kept_bytes_max = kept_bytes_max
        self._snapshots: dict[Key, _Snapshot] = {}
        self._kept_bytes = 0

    def add(self, key: Key, chunk: Chunk, size: int) -> Iterator[Chunk | Incomplete]:
        """Add a piece of a snapshot of `size` bytes; yield whole batches, and the snapshots given up for it."""
        snapshot = self._snapshots.setdefault(key, _Snapshot(size, chunk.frame))
        snapshot.frame = chunk.frame
        if chunk.position < snapshot.next:
            chunk = Chunk(chunk.frame, snapshot.next, chunk.data[snapshot.next - chunk.position :])
        held = snapshot.held.get(chunk.position)
        if chunk.data and held is None:
            heappush(snapshot.positions, chunk.position)
            self._kept_bytes += PIECE_BYTES
        if len(chunk.data) > (held_bytes := len(held.data) if held else 0):
            snapshot.held[chunk.position] = chunk
            self._kept_bytes += len(chunk.data) - held_bytes
        while (following := self._following(snapshot)) is not None:
            snapshot.tail += following.data
            end = len(snapshot.tail) if snapshot.next >= size else _end_of_batches(snapshot.tail)
            if end:
                yield Chunk(following.frame, snapshot.at, bytes(snapshot.tail[:end]))
                del snapshot.tail[:end]
                snapshot.at += end
                self._kept_bytes -= end
        if snapshot.next >= size:
            self._forget(key)
        while self._kept_bytes > self._kept_bytes_max or len(self._snapshots) > SNAPSHOTS_MAX:
            yield self._give_up(next(iter(self._snapshots)))

    def finish(self) -> Iterator[Incomplete]:
        """Yield the snapshots that are not complete."""
        for key in list(self._snapshots):
            yield self._give_up(key)

    def _following(self, snapshot: _Snapshot) -> Chunk | None:
        """Take the bytes that follow from the pieces, which may overlap; None if they have not come."""
        at, positions = snapshot.next, snapshot.positions
        while positions and positions[0] <= at:
            chunk = snapshot.held.pop(heappop(positions))
            seen = min(at - chunk.position, len(chunk.data))
            self._kept_bytes -= PIECE_BYTES + seen
            if seen < len(chunk.data):
                return Chunk(chunk.frame, at, chunk.data[seen:])
        return None

    def _give_up(self, key: Key) -> Incomplete:
        snapshot = self._snapshots[key]
        held_bytes = sum(len(chunk.data) for chunk in snapshot.held.values())
        self._forget(key)
        return Incomplete(key, snapshot.frame, snapshot.next, snapshot.size, held_bytes)

    def _forget(self, key: Key) -> None:
        snapshot = self._snapshots.pop(key)
        held = sum(len(chunk.data) + PIECE_BYTES for chunk in snapshot.held.values())
        self._kept_bytes -= len(snapshot.tail) + held


def _end_of_batches(data: bytearray) -> int:
    """Return the end of the last whole batch; everything, if what follows it is no batch."""
    end = 0
    while end + 12 <= len(data):
        size = 12 + int.from_bytes(data[end + 8 : end + 12], signed=True)
        if size < _BATCH_BYTES_MIN:
            return len(data)
        if end + size > len(data):
            break
        end += size
    return end

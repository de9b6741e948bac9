"""Turn the positions of frames in a buffer into columns, gathered with numpy instead of frame by frame."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, take
from mockraft.spark_replay.streams import headers
from mockraft.spark_replay.streams.slices import Slices


@dataclass
class FrameColumns:
    """Frames that are not yet paired; all columns have one length.

    `uid` is the reassembler's number for an incarnation of a connection; `has_header` is false if a snaplen cut it off.
    """

    uid: Array
    is_response: Array
    frame_no: Array
    api_key: Array
    api_version: Array
    correlation_id: Array
    ts_first_ns: Array
    ts_last_ns: Array
    packet_first: Array
    packet_last: Array
    segments: Array
    size: Array
    truncated: Array
    after_gap: Array
    has_header: Array
    acks0: Array
    client_id: pa.Array
    frame: Slices

    def __len__(self) -> int:
        return len(self.uid)

    def take(self, rows: Array) -> FrameColumns:
        """Return some of the frames, by ascending `rows`."""
        return FrameColumns(
            *(
                take(value, rows) if isinstance(value, pa.Array) else value.take(rows)
                for value in (getattr(self, field.name) for field in fields(self))
            )
        )


def concatenated(parts: list[FrameColumns]) -> FrameColumns:
    """Return the frames of all `parts` (at least one), in order."""
    if len(parts) == 1:
        return parts[0]
    columns: list[Any] = []
    for field in fields(FrameColumns):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], Slices):
            columns.append(Slices.concatenated(values))
        else:
            columns.append(np.concatenate(values) if isinstance(values[0], np.ndarray) else pa.concat_arrays(values))
    return FrameColumns(*columns)


class Pieces(NamedTuple):
    """The segments of a stretch: for each, the start of its bytes, its time and its packet's offset in the file."""

    start: Array
    ts_ns: Array
    offset: Array


class Stretch(NamedTuple):
    """Consecutive bytes of one direction in a buffer of their own; `holes` are (start, end) that were not captured."""

    data: bytes
    pieces: Pieces
    holes: list[tuple[int, int]]


class FrameBuffer:
    """The bytes of one batch of runs and of joined stretches, and the positions of frames in them.

    Positions are continuous: first the batch's bytes, then each added stretch.
    """

    def __init__(self) -> None:
        self.data = np.zeros(0, np.uint8)
        self.pieces = Pieces(*(np.zeros(0, np.int64),) * 3)
        self.end = 0
        self._forget()

    def _forget(self) -> None:
        self._added: list[bytes] = []
        self._added_pieces: list[Pieces] = []
        self._bounds: list[Array] = []
        self._stretches: list[tuple[int, int, bool, int, bool]] = []
        self._holes: list[tuple[int, int]] = []
        self.end = len(self.data)

    def __reduce__(self) -> tuple[type[FrameBuffer], tuple[()]]:
        """Pickle an empty buffer: nothing refers to a batch after its frames were taken."""
        return FrameBuffer, ()

    def start(self, data: Array, pieces: Pieces) -> None:
        """Start the next batch, after the last one's frames have been taken."""
        self.data, self.pieces = data, pieces
        self._forget()

    @property
    def added_bytes(self) -> int:
        """Number of bytes in added stretches."""
        return self.end - len(self.data)

    def add(self, stretch: Stretch) -> int:
        """Add a stretch and return the position of its first byte."""
        base = self.end
        self._added.append(stretch.data)
        self._added_pieces.append(stretch.pieces._replace(start=stretch.pieces.start + base))
        self._holes += [(base + low, base + high) for low, high in stretch.holes]
        self.end += len(stretch.data)
        return base

    def add_frames(self, uid: int, is_response: bool, bounds: Array, frame_no: int, after_gap: bool) -> None:
        """Add consecutive frames: each with its length, from one of `bounds` to the next."""
        self._bounds.append(bounds)
        self._stretches.append((len(bounds) - 1, uid, is_response, frame_no, after_gap))

    def take(self) -> tuple[FrameColumns, list[tuple[int, int, int]]] | None:
        """Return the frames so far, and (uid, first, end) of each stretch of requests in them."""
        if not self._stretches:
            self._forget()
            return None
        attributes = np.array(self._stretches, np.int64)
        counts = attributes[:, 0]
        ends = np.cumsum(counts + 1)
        is_frame = np.ones(int(ends[-1]), bool)
        is_frame[ends - 1] = False
        at = np.flatnonzero(is_frame)
        bounds = np.concatenate(self._bounds)
        start, end = bounds[at] + 4, bounds[at + 1]
        first = np.cumsum(counts) - counts
        owner = np.repeat(np.arange(len(counts)), counts)
        after_gap = np.zeros(len(at), bool)
        after_gap[first[attributes[:, 4] > 0]] = True
        frames = self._columns(
            attributes[owner, 1],
            attributes[owner, 2] > 0,
            attributes[owner, 3] + np.arange(len(at)) - first[owner],
            after_gap,
            start,
            end,
        )
        requests = [
            (uid, begin, begin + count)
            for (count, uid, is_response, _, _), begin in zip(self._stretches, first.tolist(), strict=True)
            if not is_response
        ]
        self._forget()
        return frames, requests

    def _columns(
        self, uid: Array, is_response: Array, frame_no: Array, after_gap: Array, start: Array, end: Array
    ) -> FrameColumns:
        data, pieces = self.data, self.pieces
        if self._added:
            # The gathers below may read a few bytes beyond the last frame.
            data = np.concatenate([data, *(np.frombuffer(each, np.uint8) for each in self._added)])
            pieces = Pieces(*(np.concatenate(each) for each in zip(pieces, *self._added_pieces, strict=True)))
        first = np.searchsorted(pieces.start, start - 4, "right") - 1
        last = np.searchsorted(pieces.start, end - 1, "right") - 1
        size = end - start
        header_end = start + np.where(is_response, 4, 8)
        hole_at = self._first_hole(start, end)
        truncated = hole_at < end
        has_header = hole_at >= header_end
        correlation_at = np.where(is_response, start, start + 4)
        correlation = _int32(data, correlation_at)
        request = np.flatnonzero(~is_response & has_header)
        key = np.full(len(start), -1, np.int64)
        version = np.full(len(start), -1, np.int64)
        name_bytes = np.full(len(start), -1, np.int64)
        key[request] = _int16(data, start[request])
        version[request] = _int16(data, start[request] + 2)
        named = request[size[request] >= 10]
        name_bytes[named] = _int16(data, start[named] + 8)
        name_bytes[(name_bytes > size - 10) | (start + 10 + name_bytes > hole_at)] = -1
        produces = request[key[request] == 0]
        acks0 = np.zeros(len(start), bool)
        if produces.size:
            acks0[produces] = headers.without_response(
                data, start[produces], size[produces], version[produces], name_bytes[produces]
            )
        return FrameColumns(
            uid,
            is_response,
            frame_no,
            key.astype(np.int16),
            version.astype(np.int16),
            correlation,
            pieces.ts_ns[first],
            pieces.ts_ns[last],
            pieces.offset[first],
            pieces.offset[last],
            (last - first + 1).astype(np.int32),
            size.astype(np.int32),
            truncated,
            after_gap,
            has_header,
            acks0,
            _text(Slices.arrow_of(data, start + 10, name_bytes, name_bytes < 0)),
            Slices.of(data, start, size, truncated),
        )

    def _first_hole(self, start: Array, end: Array) -> Array:
        """Return the start of the first hole of each frame; beyond its end if it has none."""
        if not self._holes:
            return end + 1
        holes = np.array(sorted(self._holes), np.int64)
        index = np.searchsorted(holes[:, 1], start, "right")
        found = np.append(holes[:, 0], np.iinfo(np.int64).max)[index]
        return np.where(found < end, np.maximum(found, start), end + 1)


def _text(values: pa.Array) -> pa.Array:
    # What a cast does, without the import of pyarrow.compute.
    texts = pa.Array.from_buffers(pa.string(), len(values), values.buffers(), offset=values.offset)
    try:
        texts.validate(full=True)
        return texts
    except pa.ArrowInvalid:
        replaced = [None if value is None else value.decode(errors="replace") for value in values.to_pylist()]
        return pa.array(replaced, pa.string())


def _int16(data: Array, at: Array) -> Array:
    read: Array = ((data[at].astype(np.int32) << 8) | data[at + 1]).astype(np.int16)
    return read


def _int32(data: Array, at: Array) -> Array:
    high = (data[at].astype(np.uint32) << 24) | (data[at + 1].astype(np.uint32) << 16)
    read: Array = (high | (data[at + 2].astype(np.uint32) << 8) | data[at + 3]).view(np.int32)
    return read

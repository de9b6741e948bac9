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

    def between(self, begin: int, end: int) -> Pieces:
        """Return those with bytes from `begin` to `end`, counted from there."""
        first = max(int(self.start.searchsorted(begin, "right")) - 1, 0)
        last = int(self.start.searchsorted(end, "left"))
        start = np.maximum(self.start[first:last] - begin, 0)
        return Pieces(start, self.ts_ns[first:last], self.offset[first:last])

    def time(self, at: int) -> int:
        """Return the time of the byte at `at`."""
        return int(self.ts_ns[max(int(self.start.searchsorted(at, "right")) - 1, 0)])


class Stretch(NamedTuple):
    """Consecutive bytes of one direction in a buffer of their own."""

    data: bytes
    pieces: Pieces

    def cut(self, begin: int, end: int) -> Stretch:
        """Return the bytes from `begin` to `end`."""
        return Stretch(self.data[begin:end], self.pieces.between(begin, end))


def joined(stretches: list[Stretch]) -> Stretch:
    """Return consecutive stretches as one."""
    if len(stretches) == 1:
        return stretches[0]
    sizes = [len(each.data) for each in stretches]
    bases = np.cumsum(sizes) - sizes
    starts = [each.pieces.start + base for each, base in zip(stretches, bases.tolist(), strict=True)]
    times = np.concatenate([each.pieces.ts_ns for each in stretches])
    offsets = np.concatenate([each.pieces.offset for each in stretches])
    return Stretch(b"".join(each.data for each in stretches), Pieces(np.concatenate(starts), times, offsets))


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
        self._cuts: dict[int, int] = {}
        self._count = 0
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
        self.end += len(stretch.data)
        return base

    def add_frames(self, uid: int, is_response: bool, bounds: Array, frame_no: int, after_gap: bool) -> None:
        """Add consecutive frames: each with its length, from one of `bounds` to the next."""
        self._bounds.append(bounds)
        self._stretches.append((len(bounds) - 1, uid, is_response, frame_no, after_gap))
        self._count += len(bounds) - 1

    def cut_last(self, size: int) -> None:
        """Give the frame added last its size: only its start was captured."""
        self._cuts[self._count - 1] = size

    def take(self) -> tuple[FrameColumns, list[tuple[int, bool, int, int]]] | None:
        """Return the frames so far, and (uid, is_response, first, end) of each stretch of them."""
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
        stretches = [
            (uid, is_response, begin, begin + count)
            for (count, uid, is_response, _, _), begin in zip(self._stretches, first.tolist(), strict=True)
        ]
        self._forget()
        return frames, stretches

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
        captured = end - start
        size, truncated = captured.copy(), np.zeros(len(start), bool)
        if self._cuts:
            cut = np.array([*self._cuts])
            size[cut], truncated[cut] = [*self._cuts.values()], True
        has_header = captured >= np.where(is_response, 4, 8)
        correlation_at = np.where(is_response, start, start + 4)
        correlation = headers.int32(data, correlation_at)
        request = np.flatnonzero(~is_response & has_header)
        key = np.full(len(start), -1, np.int64)
        version = np.full(len(start), -1, np.int64)
        name_bytes = np.full(len(start), -1, np.int64)
        key[request] = _int16(data, start[request])
        version[request] = _int16(data, start[request] + 2)
        named = request[captured[request] >= 10]
        name_bytes[named] = _int16(data, start[named] + 8)
        name_bytes[name_bytes > captured - 10] = -1
        produces = request[key[request] == 0]
        acks0 = np.zeros(len(start), bool)
        if produces.size:
            acks0[produces] = headers.without_response(
                data, start[produces], captured[produces], version[produces], name_bytes[produces]
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

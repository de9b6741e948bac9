"""Judge many frames at once: those that differ from an already judged frame in field values only.

Claim: let `e` be a frame that the codec reads and writes again byte for byte, and `f` a frame of the same API, version,
direction and size. `lay_out` divides `e` into structure (lengths, counts, null markers, tag counts, tags and their
sizes) and field contents. If `f` has the structure bytes of `e` and its contents pass the checks below, then `f` is
also read without an error and written again byte for byte. Proof:

1. A generated reader decides where to read next, and whether to refuse, by lengths, counts, markers and tags alone,
   and by the number of remaining bytes. These are equal, so it reads every field of `f` at the same place as in `e`.
2. Contents are refused only if a string is not UTF-8. ASCII is valid; a string of `e` that is not all ASCII counts as
   structure and must be equal. Numbers, uuids, bytes and records accept any bytes.
3. A generated writer decides what to write by lengths, nulls, the unknown tags it kept, and whether a tagged field
   holds its default. The first three are structure. The fourth is checked: no tagged field on the wire of `f` may hold
   its default. So `f` is written with the order, lengths, markers and tags of `e`, which are those of `f`.
4. Each value is written as the bytes it was read from: integers, uuids, bytes, ASCII; a bool if its byte is 0 or 1
   (checked); a float if it is neither NaN nor infinite (checked).

Encodings that are accepted but written differently (an overlong varint, another negative number for null, tags out of
order) are structure, and `e` has none of them. Frames not covered by the proof are judged one by one.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property

import numpy as np
import numpy.typing as npt
from mockraft.spark_replay.decoding.layout import Layout, Leaf, lay_out
from mockraft.spark_replay.decoding.shape_json import Template
from mockraft.spark_replay.decoding.typed_columns import Read, struct_reader
from mockraft.spark_replay.decoding.verdicts import FrameVerdict, header_version, judge_as
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.overlay import Overlay

Bytes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]

SHAPE_BYTES_MAX = 64 << 10
"""Longest frame that becomes a shape."""

SHAPES_BYTES_MAX = 32 << 20
"""Approximate upper bound for the memory of all shapes; the least recently used are dropped first."""

SHAPES_PER_SIZE_MAX = 16
"""Maximum number of shapes for one API, version, direction and size."""

SIZES_MAX = 16 << 10
"""Maximum number of kinds (API, version, direction and size) in the table."""

FRAMES_MIN = 4
"""Number of frames that fit no shape before one of them becomes a shape."""

_CHUNK_BYTES = 1 << 20
# Bits that must be zero in content bytes: a bool may differ in its last bit, ASCII in all but the first.
_CHECKED = {"bool": 0xFE, "string": 0x80}


class FrameShape:
    """A judged frame and the bytes in which another may differ. `layout` is of the body; offsets count in the frame."""

    def __init__(
        self, data: bytes, cls: type[Message], version: int, header: Layout, body: Layout, verdict: FrameVerdict
    ) -> None:
        self.verdict = verdict
        self.cls = cls
        self.version = version
        self.layout = body
        self.bytes = np.frombuffer(data, np.uint8)
        self.mask = np.full(len(data), 0xFF, np.uint8)
        self.floats: list[int] = []
        self.hits = 0
        for leaf in (*header.leaves, *body.leaves):
            self._free(leaf)
        self.defaults = [_joined(places) for places in (*header.defaults, *body.defaults)]

    def _free(self, leaf: Leaf) -> None:
        content = slice(leaf.offset, leaf.offset + leaf.length)
        if leaf.kind == "string" and (self.bytes[content] > 127).any():
            return
        self.mask[content] = _CHECKED.get(leaf.kind, 0)
        if leaf.kind == "float64":
            self.floats.append(leaf.offset)

    @cached_property
    def template(self) -> Template:
        """The template for the JSON of its frames' bodies."""
        return Template(self.cls, self.version, self.layout.tree)

    @cached_property
    def read_struct(self) -> Read:
        """A function from its frames to their bodies as Arrow structs."""
        return struct_reader(self.cls, self.version, self.layout.tree)

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        return 2000 + 2 * len(self.bytes) + 600 * len(self.layout.leaves)

    def fits(self, buffer: Bytes, starts: Rows) -> npt.NDArray[np.bool_]:
        """Return a mask of the frames of this size, starting at `starts`, that have this shape and so its `verdict`."""
        step = max(_CHUNK_BYTES // len(self.bytes), 1)
        parts = [self._fits(buffer, starts[at : at + step]) for at in range(0, len(starts), step)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _fits(self, buffer: Bytes, starts: Rows) -> npt.NDArray[np.bool_]:
        frames = frames_at(buffer, starts, len(self.bytes))
        unlike = frames ^ self.bytes
        unlike &= self.mask
        fits: npt.NDArray[np.bool_] = ~np.logical_or.reduce(unlike, axis=1)
        for positions, values in self.defaults:
            fits &= (frames[:, positions] != values).any(axis=1)
        for at in self.floats:
            fits &= ((frames[:, at] & 0x7F) != 0x7F) | (frames[:, at + 1] < 0xF0)
        return fits


def frames_at(buffer: Bytes, starts: Rows, size: int) -> Bytes:
    """Return the frames of one size, in their order in the buffer, as rows of bytes."""
    if starts[-1] - starts[0] == (len(starts) - 1) * size:  # nothing is between them
        return np.ndarray((len(starts), size), np.uint8, buffer, int(starts[0]))
    # A view of all windows of that size (numpy's sliding_window_view costs ten times as much).
    windows: Bytes = np.ndarray((len(buffer) - size + 1, size), np.uint8, buffer, 0, (1, 1))
    return windows[starts]


def _joined(places: tuple[tuple[int, bytes], ...]) -> tuple[Rows, Bytes]:
    positions = [offset + index for offset, data in places for index in range(len(data))]
    values = b"".join(data for _, data in places)
    return np.array(positions, np.int64), np.frombuffer(values, np.uint8)


def shape_of(data: bytes, overlay: Overlay, cls: type[Message], version: int, is_response: bool) -> FrameShape | None:
    """Return the shape of a frame that decodes and round-trips; None for another."""
    verdict = judge_as(data, overlay, cls, version, is_response, None)
    if verdict.decode_status != "ok" or not verdict.roundtrip:
        return None
    layouts = _layouts(data, overlay, cls, version, is_response)
    return FrameShape(data, cls, version, *layouts, verdict) if layouts else None


def _layouts(
    data: bytes, overlay: Overlay, cls: type[Message], version: int, is_response: bool
) -> tuple[Layout, Layout] | None:
    """Return the layouts of a frame's header and body; None if the schema does not cover all of its bytes."""
    header_class = overlay.by_name("ResponseHeader" if is_response else "RequestHeader")
    before = header_version(overlay, cls.api_key, version, is_response)
    try:
        header = lay_out(header_class, before, data)
        body = lay_out(cls, version, data, header.end)
    except WireError:
        return None
    return (header, body) if body.end == len(data) else None


class _Size:
    """The shapes of one kind (API, version, direction and size), most recently used first."""

    def __init__(self) -> None:
        self.shapes: list[FrameShape] = []
        self.misses = 0
        self.in_vain = 0

    @property
    def misses_min(self) -> int:
        """Number of misses before a new shape is made; it grows if shapes are made and never matched."""
        unused = self.in_vain + sum(shape.hits == 0 for shape in self.shapes)
        return FRAMES_MIN << min(unused, 16)


class ShapeTable:
    """The shapes seen so far, bounded."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[tuple[object, ...], _Size] = OrderedDict()
        self._bytes = 0

    def sort(
        self, overlay: Overlay, key: tuple[int, int, bool, int], buffer: Bytes, starts: Rows
    ) -> tuple[list[tuple[FrameShape, Rows]], Rows]:
        """Divide frames of one kind (`key`) by shape; the second value is those without one.

        Both are indexes into `starts`.
        """
        api_key, version, is_response, size = key
        left = np.arange(len(starts))
        found: list[tuple[FrameShape, Rows]] = []
        name = (overlay.responses if is_response else overlay.requests).get(api_key)
        if name is None or not 0 < size <= SHAPE_BYTES_MAX:
            return found, left
        known = self._of(overlay, key)
        for shape in list(known.shapes):
            left = self._take(known, shape, buffer, starts, left, found)
            if not len(left):
                return found, left
        singles: list[int] = []
        while len(left) and known.misses + len(left) >= known.misses_min:
            data = buffer[starts[left[0]] : starts[left[0]] + size].tobytes()
            known.misses = 0
            made = self._new(known, overlay, name, version, is_response, data)
            if made is None:
                singles.append(int(left[0]))
                left = left[1:]
                known.in_vain += 1
            else:
                left = self._take(known, made, buffer, starts, left, found)
        left = np.concatenate((np.array(singles, np.int64), left))
        known.misses += len(left)
        return found, left

    def _take(
        self,
        known: _Size,
        shape: FrameShape,
        buffer: Bytes,
        starts: Rows,
        left: Rows,
        found: list[tuple[FrameShape, Rows]],
    ) -> Rows:
        fits = shape.fits(buffer, starts[left])
        if fits.any():
            found.append((shape, left[fits]))
            # The frame that a shape was made from does not count as a use of it.
            shape.hits += int(fits.sum()) - (shape.hits == 0)
            known.shapes.remove(shape)
            known.shapes.insert(0, shape)
        return left[~fits]

    def _of(self, overlay: Overlay, key: tuple[int, int, bool, int]) -> _Size:
        known = self._sizes.get((overlay, *key))
        if known is None:
            known = self._sizes[overlay, *key] = _Size()
            if len(self._sizes) > SIZES_MAX:
                self._forget_oldest()
        self._sizes.move_to_end((overlay, *key))
        return known

    def _new(
        self, known: _Size, overlay: Overlay, name: str, version: int, is_response: bool, data: bytes
    ) -> FrameShape | None:
        cls = overlay.by_name(name)
        if not cls.min_version <= version <= cls.max_version:
            return None
        shape = shape_of(data, overlay, cls, version, is_response)
        if shape is None:
            return None
        known.shapes.insert(0, shape)
        self._bytes += shape.size
        for dropped in known.shapes[SHAPES_PER_SIZE_MAX:]:
            self._bytes -= dropped.size
            known.in_vain += dropped.hits == 0
        del known.shapes[SHAPES_PER_SIZE_MAX:]
        while self._bytes > SHAPES_BYTES_MAX and len(self._sizes) > 1:
            self._forget_oldest()
        return shape

    def _forget_oldest(self) -> None:
        _, oldest = self._sizes.popitem(last=False)
        self._bytes -= sum(shape.size for shape in oldest.shapes)


KNOWN_SHAPES = ShapeTable()
"""The shapes seen by this process."""

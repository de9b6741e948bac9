"""A capture file in chunks, and the packets of one chunk in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from mockraft.spark_replay.formats.capture_files import CaptureFile

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Headers = npt.NDArray[np.void]
# Zero bytes after a chunk, so that a header can be gathered at any of its offsets.
PADDING_BYTES = 64
CHUNK_BYTES = 8 << 20


class PacketColumns(NamedTuple):
    """Packets of one chunk: packet i is buffer[start[i] : start[i] + captured[i]] of `original[i]` bytes.

    `number` counts from 1 in the file and is 0 if unknown; `file_offset` is the start of the packet's record.
    """

    buffer: Bytes
    number: Longs
    file_offset: Longs
    ts_ns: Longs
    link_type: npt.NDArray[np.int32]
    start: Longs
    captured: Longs
    original: Longs

    def where(self, chosen: Mask | Longs) -> PacketColumns:
        """Return the packets selected by a mask or by indices."""
        return self._replace(**{name: getattr(self, name)[chosen] for name in self._fields[1:]})


class ChunkReader:
    """Read a file from `start` to `end` (None: end of file) in chunks; unconsumed bytes carry over to the next chunk.

    `buffer` holds `size` bytes of the file from `offset` on, then zeros; `at_end` means that nothing follows, `is_cut`
    that a compressed file ends early.
    """

    def __init__(self, file: CaptureFile, start: int, end: int | None, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.file = file
        self.end = file.size if end is None else end
        self.chunk_bytes = max(chunk_bytes, 64)
        self.is_cut = False
        self._restart(start)

    def _restart(self, offset: int) -> None:
        self.buffer: Bytes = np.zeros(PADDING_BYTES, np.uint8)
        self.size = 0
        self.offset = offset
        self.at_end = self.end is not None and offset >= self.end

    def seek(self, offset: int) -> None:
        """Continue at another place of a file that is not compressed."""
        self._restart(offset)
        self.file.seek(offset)

    def begin(self, carried: bytes) -> None:
        """Start reading at `start`; a compressed file cannot seek back, so `carried` holds what was already read from
        there.
        """
        if self.file.compression is None:
            self.seek(self.offset)
        else:
            self.size = len(carried)
            self.buffer = np.frombuffer(carried + bytes(PADDING_BYTES), np.uint8)
        self.advance(0)

    def advance(self, consumed: int, needed: int = 0) -> None:
        """Drop `consumed` bytes and read the next chunk, or more if `needed` bytes are required."""
        carried = self.buffer[consumed : self.size]
        self.offset += consumed
        size = max(self.chunk_bytes, needed - len(carried))
        if self.end is not None:
            size = max(min(size, self.end - self.offset - len(carried)), 0)
        buffer = np.empty(len(carried) + size + PADDING_BYTES, np.uint8)
        buffer[: len(carried)] = carried
        try:
            count = self.file.read_into(buffer.data[len(carried) : len(carried) + size])
        except EOFError:
            count, self.is_cut = 0, True
        self.buffer, self.size = buffer, len(carried) + count
        buffer[self.size :] = 0
        is_short = count < size and self.file.failure is None
        self.at_end = is_short or self.is_cut or (self.end is not None and self.offset + self.size >= self.end)


def gather(buffer: Bytes, at: Longs, layout: np.dtype[np.void]) -> Headers:
    """Return the headers of dtype `layout` that start at each of `at`, as a structured array.

    Copying untyped items is fastest.
    """
    count = len(buffer) - layout.itemsize + 1
    items = np.ndarray((max(count, 0),), np.dtype((np.void, layout.itemsize)), buffer, 0, (1,))
    return items[at].view(layout)


def gather_u16(buffer: Bytes, at: Longs) -> Longs:
    """Return the big-endian 16-bit integers at each of `at`."""
    return buffer[at].astype(np.int64) << 8 | buffer[at + 1]

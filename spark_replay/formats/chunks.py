"""A capture file chunk by chunk, and the packets of one chunk in columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mockraft.spark_replay.formats.capture_files import CaptureFile
from mockraft.spark_replay.formats.columns import PADDING_BYTES, Bytes, Longs, Mask

CHUNK_BYTES = 8 << 20


class PacketColumns(NamedTuple):
    """Packets of one chunk: packet i is buffer[start[i] : start[i] + captured[i]] of `original[i]` bytes.

    `number` counts from 1 in the file, 0 where it is not known; `file_offset` is where the packet's record starts.
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
        """The packets that a mask or their indices choose."""
        columns: tuple[Any, ...] = self[1:]
        return PacketColumns(self.buffer, *(column[chosen] for column in columns))


class ChunkReader:
    """The bytes of a file from `start` to `end` (None: its end), in chunks that overlap by what was not consumed.

    `buffer` holds `size` bytes of the file from `offset` on, then zeros; `at_end` says that nothing follows, `is_cut`
    that a compressed file ends in its middle.
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
        """Read on from another place of a file that is not compressed."""
        self._restart(offset)
        self.file.seek(offset)

    def begin(self, carried: bytes) -> None:
        """Read from `start` on; a compressed file cannot go back, so `carried` is what was read of it from there."""
        if self.file.compression is None:
            self.seek(self.offset)
        else:
            self.size = len(carried)
            self.buffer = np.frombuffer(carried + bytes(PADDING_BYTES), np.uint8)
        self.advance(0)

    def advance(self, consumed: int, needed: int = 0) -> None:
        """Drop `consumed` bytes and read on: a chunk, or as much as makes `needed` bytes."""
        carried = self.buffer[consumed : self.size]
        self.offset += consumed
        room = max(self.chunk_bytes, needed - len(carried))
        if self.end is not None:
            room = max(min(room, self.end - self.offset - len(carried)), 0)
        buffer = np.empty(len(carried) + room + PADDING_BYTES, np.uint8)
        buffer[: len(carried)] = carried
        try:
            count = self.file.read_into(buffer.data[len(carried) : len(carried) + room])
        except EOFError:
            count, self.is_cut = 0, True
        self.buffer, self.size = buffer, len(carried) + count
        buffer[self.size :] = 0
        is_short = count < room and not self.file.has_failed
        self.at_end = is_short or self.is_cut or (self.end is not None and self.offset + self.size >= self.end)

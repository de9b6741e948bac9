"""Capture files as bytes: local ones and those in object stores, plain or compressed (gz, zst, bz2, lz4).

Plain files are read at any offset; compressed ones sequentially only, in bounded memory.
"""

from __future__ import annotations

import io
import os
from os import PathLike

import pyarrow as pa
from mockraft.files.given_files import open_file
from mockraft.spark_replay.formats.file_events import CaptureError
from mockraft.spark_replay.storage import Location, LocationError

_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\x04\x22\x4d\x18": "lz4"}
# Kafka traffic compresses 5 to 40 times; a decompression bomb thousands of times.
_RATIO_MAX, _FREE_BYTES = 200, 1 << 30
_PACKED_READ_BYTES = 1 << 16
# Decompression reads 64 KiB at a time, which would be a request each.
_READ_AHEAD_BYTES = 1 << 20


class CaptureFile:
    """An open capture file. `size` is None for a compressed one, whose offsets count uncompressed bytes.

    `failure` is the error that the next read will raise.
    """

    def __init__(self, path: str | PathLike[str], decompressed_bytes_max: int | None = None) -> None:
        self.path = os.fspath(path)
        self.position = 0
        self._raw, self.is_remote = _open(self.path)
        try:
            start = self._raw.read(4)
            size: int = self._raw.size() if isinstance(self._raw, pa.NativeFile) else self._raw.seek(0, os.SEEK_END)
            self._raw.seek(0)
        except OSError as error:
            raise CaptureError(f"cannot be read: {error}", self.path) from None
        self.compression = next((name for magic, name in _COMPRESSIONS.items() if start.startswith(magic)), None)
        self.size = None if self.compression else size
        self.decompressed_bytes_max = decompressed_bytes_max or max(_FREE_BYTES, _RATIO_MAX * size)
        self.failure: OSError | None = None
        self._stream: io.RawIOBase = self._raw
        if self.compression:
            packed = pa.BufferedInputStream(self._raw, _READ_AHEAD_BYTES) if self.is_remote else self._raw
            self._stream = pa.CompressedInputStream(packed, self.compression)

    def __enter__(self) -> CaptureFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._raw.close()

    def seek(self, offset: int) -> None:
        """Continue at `offset`; only for files that are not compressed."""
        self.position = offset
        if not self._is_at_end(0):
            self._stream.seek(offset)

    def _is_at_end(self, more: int) -> bool:
        """Return True if no byte is left; stores refuse a range that begins at the end of an object."""
        return self.is_remote and self.size is not None and self.position + more >= self.size

    def read_into(self, target: memoryview) -> int:
        """Fill `target` and return the number of bytes read, which is less only at the end of the file.

        Raises CaptureError if decompression fails or exceeds the limit, and EOFError if compressed data ends early,
        after the bytes before that were returned.
        """
        done = 0
        while done < len(target) and self.failure is None and not self._is_at_end(done):
            try:
                # A failing read loses all of its bytes, so compressed bytes are read in small pieces.
                limit = done + _PACKED_READ_BYTES if self.compression else len(target)
                count = self._stream.readinto(target[done:limit])
            except OSError as error:
                self.failure = error
                break
            if not count:
                break
            done += count
        if self.failure is not None and not done:
            raise self._problem(self.failure)
        self.position += done
        if self.compression and self.position > self.decompressed_bytes_max:
            raise CaptureError(
                f"decompresses to more than {self.decompressed_bytes_max} bytes (decompressed_bytes_max)",
                self.path,
                self.position,
            )
        return done

    def _problem(self, error: OSError) -> Exception:
        if self.compression is None:
            return CaptureError(f"cannot be read: {error}", self.path, self.position)
        if "runcated" in str(error) or "end" in str(error).lower():
            return EOFError(str(error))
        return CaptureError(f"cannot be decompressed: {error}", self.path, self.position)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset` of a file that is not compressed."""
        self.seek(offset)
        data = bytearray(max(size, 0))
        return bytes(data[: self.read_into(memoryview(data))])


def _open(path: str) -> tuple[io.RawIOBase | pa.NativeFile, bool]:
    """Open a file, and return whether each read is a request to another machine."""
    try:
        location = Location.parse(path)
        if not location.is_remote:
            return open_file(location.path), False
        return location.file_system().open_input_file(location.arrow_path), True
    except LocationError as error:
        raise CaptureError(f"cannot be opened: {error}") from None
    except OSError as error:
        raise CaptureError(f"cannot be opened: {error.strerror or str(error).splitlines()[0]}", path) from error

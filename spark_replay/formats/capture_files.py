"""Capture files as bytes: local or of any file system that pyarrow knows, plain or compressed (gz, zst, bz2, lz4).

Plain files are read at any offset; compressed ones from their start to their end only, in bounded memory.
"""

from __future__ import annotations

import os
from os import PathLike
from typing import IO, Any

from mockraft.spark_replay.formats.capture_errors import CaptureError

_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
}
# Kafka's traffic packs 5 to 40 times; a bomb thousands of times.
_RATIO_MAX, _FREE_BYTES = 200, 1 << 30
_PACKED_READ_BYTES = 1 << 16


class CaptureFile:
    """An open capture file. `size` is None for a compressed one, whose offsets are those of the unpacked bytes."""

    def __init__(self, path: str | PathLike[str], decompressed_bytes_max: int | None = None) -> None:
        self.path = os.fspath(path)
        self.position = 0
        self._raw = _open(self.path)
        try:
            start = self._raw.read(4)
            self._raw.seek(0, 2)
            size: int = self._raw.tell()
            self._raw.seek(0)
        except OSError as error:
            raise CaptureError(f"cannot be read: {error}", self.path) from None
        self.compression = next((name for magic, name in _COMPRESSIONS.items() if start.startswith(magic)), None)
        self.size = None if self.compression else size
        self.decompressed_bytes_max = decompressed_bytes_max or max(_FREE_BYTES, _RATIO_MAX * size)
        self._failure: OSError | None = None
        self._stream: Any = self._raw
        if self.compression:
            import pyarrow as pa

            self._stream = pa.CompressedInputStream(self._raw, self.compression)

    def __enter__(self) -> CaptureFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        self._stream.close()
        self._raw.close()

    def seek(self, offset: int) -> None:
        """Read on from `offset`; only for files that are not compressed."""
        self._stream.seek(offset)
        self.position = offset

    def read_into(self, target: memoryview) -> int:
        """Fill `target`; the number of bytes read is less only at the file's end.

        CaptureError for what cannot be unpacked and for more unpacked bytes than allowed. EOFError where packed
        data ends in its middle, after what came before it was given.
        """
        done = 0
        while done < len(target) and self._failure is None:
            try:
                # Of a read that fails nothing is left, so packed bytes are asked for in small ones.
                limit = done + _PACKED_READ_BYTES if self.compression else len(target)
                count = self._stream.readinto(target[done:limit])
            except OSError as error:
                self._failure = error
                break
            if not count:
                break
            done += count
        if self._failure is not None and not done:
            raise self._problem(self._failure)
        self.position += done
        if self.compression and self.position > self.decompressed_bytes_max:
            raise CaptureError(
                f"unpacks to more than {self.decompressed_bytes_max} bytes (decompressed_bytes_max)",
                self.path,
                self.position,
            )
        return done

    @property
    def has_failed(self) -> bool:
        """Whether the next read will raise."""
        return self._failure is not None

    def _problem(self, error: OSError) -> Exception:
        if self.compression is None:
            return CaptureError(f"cannot be read: {error}", self.path, self.position)
        if "runcated" in str(error) or "end" in str(error).lower():
            return EOFError(str(error))
        return CaptureError(f"cannot be unpacked: {error}", self.path, self.position)

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes at `offset` of a file that is not compressed."""
        self.seek(offset)
        data = bytearray(max(size, 0))
        return bytes(data[: self.read_into(memoryview(data))])


def _open(path: str) -> IO[bytes]:
    try:
        if "://" not in path:
            return open(path, "rb", buffering=0)
        from pyarrow import fs

        file_system, name = fs.FileSystem.from_uri(path)
        opened: IO[bytes] = file_system.open_input_file(name)
        return opened
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CaptureError(f"cannot be opened: {why}", path) from error

"""The file operations that a log directory needs; implemented by a real disk, one in memory and a failing one."""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol


class Space(NamedTuple):
    """The size of the volume and what can still be written to it."""

    total_bytes: int
    usable_bytes: int


class Disk(Protocol):
    """The files below one root. Names are relative to it, with `/`. Every method may raise OSError.

    `root` is the absolute path for display in tools, `delay_ms` the time for which clients wait before an operation.
    """

    root: str
    delay_ms: float

    def names(self, under: str = "") -> list[str]:
        """Return the names directly under a directory, sorted."""

    def exists(self, name: str) -> bool:
        """Return True if there is a file or directory of this name."""

    def size(self, name: str) -> int:
        """Return the bytes of a file."""

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """Return part of a file, all from `offset` on when `size` is -1; shorter where the file ends."""

    def append(self, name: str, data: bytes) -> None:
        """Append to a file, creating it if needed. Writes all of the data or none."""

    def replace(self, name: str, data: bytes) -> None:
        """Replace the content of a file atomically: write another, force it to the disk, rename."""

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to this size."""

    def sync(self, name: str) -> None:
        """Force a file, or the names in a directory, to the disk."""

    def make_dir(self, name: str) -> None:
        """Create a directory; FileExistsError when it exists."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory atomically."""

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it."""

    def space(self) -> Space:
        """Return the size of the volume and the free space."""

    def lock(self) -> None:
        """Lock the directory for this process (Kafka's `.lock`); BlockingIOError when another has it."""

    def close(self) -> None:
        """Release files and lock."""


@functools.lru_cache(4096)
def checked_name(name: str, *, may_be_root: bool = False) -> str:
    """Return the name if it stays below the root; ValueError otherwise."""
    if not name:
        if may_be_root:
            return name
        raise ValueError("the root of a log directory is not a file")
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise ValueError(f"{name!r} is not a name below a log directory")
    return name

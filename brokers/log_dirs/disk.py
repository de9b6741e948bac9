"""What a log directory needs of the file system below it; a real one, one in memory and a failing one all give it."""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol


class Space(NamedTuple):
    """The size of the volume and what can still be written to it."""

    total_bytes: int
    usable_bytes: int


class Disk(Protocol):
    """The files below one root. Names are relative to it, with `/`. Every method may raise OSError.

    `root` is the absolute path that tools are shown.
    """

    root: str

    async def ready(self) -> None:
        """Return when the disk takes the next operation: a slow one lets others go on meanwhile."""

    def names(self, under: str = "") -> list[str]:
        """What lies directly under a directory, sorted."""

    def exists(self, name: str) -> bool:
        """Whether there is a file or directory of this name."""

    def size(self, name: str) -> int:
        """The bytes of a file."""

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """Part of a file, all from `offset` on when `size` is -1; shorter where the file ends."""

    def append(self, name: str, data: bytes) -> None:
        """Write at the end of a file, which begins if it is not there. All of it or none."""

    def replace(self, name: str, data: bytes) -> None:
        """Make this the whole of a file: write another, force it to the disk, rename."""

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to this size."""

    def sync(self, name: str) -> None:
        """Force a file, or the names in a directory, to the disk."""

    def make_dir(self, name: str) -> None:
        """Make a directory; FileExistsError when there is one."""

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name, in one step."""

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it."""

    def space(self) -> Space:
        """How large the volume is and how much is left."""

    def lock(self) -> None:
        """Take the directory for this process (Kafka's `.lock`); BlockingIOError when another has it."""

    def close(self) -> None:
        """Let go of files and lock."""


@functools.lru_cache(4096)
def checked_name(name: str, *, may_be_root: bool = False) -> str:
    """The name, when it stays below the root. ValueError when not: it is a path of another place."""
    if not name:
        if may_be_root:
            return name
        raise ValueError("the root of a log directory is not a file")
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise ValueError(f"{name!r} is not a name below a log directory")
    return name

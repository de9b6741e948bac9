"""Small files that are always replaced as a whole, even when the process is killed."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def replace(path: Path, data: bytes) -> None:
    """Replace a file: write `<name>.tmp`, force it to the disk, rename, force the name. Raises OSError."""
    beside = path.with_name(path.name + ".tmp")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path, size_max: int) -> bytes:
    """Return the content of a regular file of at most `size_max` bytes, else OSError: a pipe would hang."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(size_max + 1)
    finally:
        os.close(descriptor)
    if len(data) > size_max:
        raise OSError(f"{path} has more than {size_max} bytes")
    return data

"""Files that people name on a command line, in a test or by HTTP, and those in directories that they name.

Such a path may be anything: a pipe would hang the reader, a device or a sparse file would fill the memory. So a file is
opened here, nowhere else, and is a regular one of at most some size. Every refusal is an OSError with the reason in
`strerror` and the path in `filename`.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from mockraft.files.private_files import FILE_MODE

SMALL_BYTES_MAX: Final = 1 << 20
"""For properties, passwords, certificates and the like."""
TEXT_BYTES_MAX: Final = 64 << 20
"""For stub files and others that programs write."""
SNAPSHOT_BYTES_MAX: Final = 1 << 30
LEVELS_MAX: Final = 100
SEGMENT_BYTES_MAX: Final = 2**31 - 1
"""As Kafka's."""


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor; one that `flags` create is private. OSError."""
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE)
    except ValueError:  # a null character, or half a surrogate pair
        raise OSError(errno.EINVAL, "no name of a file", os.fspath(path)) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def open_file(path: str | os.PathLike[str]) -> io.FileIO:
    """Open a regular file for reading. OSError."""
    return io.FileIO(open_regular(path))


def read_file(path: str | os.PathLike[str], size_max: int = SMALL_BYTES_MAX) -> bytes:
    """Return the content of a regular file of at most `size_max` bytes. OSError."""
    with io.BufferedReader(open_file(path)) as file:
        # A sparse giant is not read, and neither is a file of /proc that has no end; others there have size 0.
        if os.fstat(file.fileno()).st_size > size_max or len(content := file.read(size_max + 1)) > size_max:
            raise OSError(errno.EFBIG, f"has more than {size_max:,} bytes", os.fspath(path))
        return content


def read_text(path: str | os.PathLike[str], size_max: int = SMALL_BYTES_MAX) -> str:
    """Return the text of a file as `read_file`; OSError also for one that is not UTF-8."""
    try:
        return read_file(path, size_max).decode("utf-8")
    except UnicodeDecodeError as error:
        raise OSError(errno.EINVAL, f"not UTF-8: {error.reason} at byte {error.start}", os.fspath(path)) from None


def read_url(url: str) -> str:
    """Return the text of the file of a URL `file:/…`, or of a path. OSError, also for a URL of another kind."""
    parts = urlsplit(url)
    if parts.scheme not in ("", "file"):
        raise OSError(errno.EINVAL, "it must be a file:/…", url)
    return read_text(unquote(parts.path) if parts.scheme else url)


def files_below(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the files in a folder and its folders, which may be `LEVELS_MAX` deep. OSError, also for deeper ones."""
    pending = [(Path(folder), 0)]
    while pending:
        path, level = pending.pop()
        if level > LEVELS_MAX:
            raise OSError(errno.ELOOP, f"folders are more than {LEVELS_MAX} deep", os.fspath(folder))
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((Path(entry), level + 1))
                else:
                    yield Path(entry)

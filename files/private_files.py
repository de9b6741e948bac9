"""Files and directories that only their owner can read: data directories, saved states, captures, journals.

Files that a server depends on are replaced as a whole; files are read by `given_files`.

Kafka creates its log directories by the umask, so that everybody on the machine can usually read the SCRAM credentials
in them. Files of tests end up in shared folders and artefacts, so these are created with mode 0600, directories with
0700. The mode of a file that exists is not changed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700


def opener(path: str, flags: int) -> int:
    """Open a file, for `open(…, opener=opener)`; a new one is private."""
    return os.open(path, flags, FILE_MODE)


def write_private(path: Path, data: bytes) -> None:
    """Write a file, private if it is new. OSError."""
    with open(path, "wb", opener=opener) as file:
        file.write(data)


def replace_file(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file so that a crash leaves the old one or the new one, whole.

    A file that is replaced keeps its mode. OSError when it cannot be written.
    """
    for _ in replace_file_in_steps(path, parts, ".tmp"):
        pass


def replace_file_in_steps(path: Path, parts: Iterable[bytes], suffix: str) -> Iterator[None]:
    """Do as `replace_file`, and pause at each empty part; until it is complete the file's name ends in `suffix`.

    If the iterator is closed before its end, nothing is left.
    """
    beside = path.with_name(path.name + suffix)
    try:
        with open(beside, "wb", opener=opener) as file:
            for part in parts:
                if part:
                    file.write(part)
                else:
                    yield
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Flush a directory's entries to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

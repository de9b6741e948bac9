"""Find files by path, glob or folder: Python's own globs on local disks, the same patterns on other file systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NamedTuple

from mockraft.files.given_files import files_below
from mockraft.spark_replay.storage.locations import Location, LocationError

Accept = Callable[[str], bool]
"""Decides by its name whether a file of a folder belongs to the result."""


class StoredFile(NamedTuple):
    """A file: its location as text, its size in bytes, and the time of its last write."""

    path: str
    size: int
    modified_ns: int


def find_files(location: Location, accept: Accept) -> Iterator[StoredFile]:
    """Yield a file, the files that a glob matches, or those in a folder (recursively) that `accept` takes.

    `accept` also selects the files of folders that a glob matches. A folder of a glob is listed only as deep as its
    pattern. Yields nothing for a path that does not exist. Raises LocationError if the file system cannot be listed.
    """
    if not location.is_remote:
        yield from _local_files(location.path, accept)
        return
    try:
        yield from _remote_files(location, accept)
    except (OSError, ValueError) as error:
        if isinstance(error, LocationError):
            raise
        raise LocationError(f"{location} cannot be listed: {str(error).splitlines()[0]}") from None


def exists(location: Location) -> bool:
    """Return True for a file, a folder, or a prefix of objects. Raises LocationError."""
    if not location.is_remote:
        return Path(location.path).exists()
    return _type_of(location) != "NotFound"


def is_folder(location: Location) -> bool:
    """Return True for a folder, or a prefix of objects. Raises LocationError."""
    return Path(location.path).is_dir() if not location.is_remote else _type_of(location) == "Directory"


def is_pattern(location: Location) -> bool:
    """Return True for a glob."""
    return has_magic(location.path)


def _type_of(location: Location) -> str:
    try:
        found: str = location.file_system().get_file_info(location.arrow_path).type.name
    except OSError as error:
        raise LocationError(f"{location} cannot be read: {str(error).splitlines()[0]}") from None
    return found


def _local_files(path: str, accept: Accept) -> Iterator[StoredFile]:
    if has_magic(path) and not Path(path).exists():
        for each in glob(path, recursive=True):
            yield from _local_files(each, accept) if Path(each).is_dir() else _local_file(each)
    elif Path(path).is_dir():
        for file in files_below(path):
            if accept(file.name):
                yield from _local_file(str(file))
    elif Path(path).exists():
        yield from _local_file(path)


def _local_file(path: str) -> Iterator[StoredFile]:
    try:
        stat = Path(path).stat()
    except FileNotFoundError:  # deleted since it was listed
        return
    yield StoredFile(path, stat.st_size, stat.st_mtime_ns)


def _remote_files(location: Location, accept: Accept) -> Iterator[StoredFile]:
    parts = [part for part in location.path.split("/") if part]
    plain = next((at for at, part in enumerate(parts) if has_magic(part)), len(parts))
    base = location._replace(path="/".join(parts[:plain]))
    yield from _matching(base, parts[plain:], accept)


def _matching(base: Location, pattern: list[str], accept: Accept) -> Iterator[StoredFile]:
    """Yield the files of `base` that the rest of a pattern matches; listings end where the pattern does."""
    if not pattern:
        info = base.file_system().get_file_info(base.arrow_path)
        if info.type.name == "File":
            yield _stored(base, info)
        elif info.type.name == "Directory":
            yield from (file for file in _listed(base, recursive=True) if accept(file.path.rpartition("/")[2]))
        return
    part, rest = pattern[0], pattern[1:]
    if part == "**":
        at = len(str(base).rstrip("/")) + 1
        for file in _listed(base, recursive=True):
            if not rest or _matches(file.path[at:].split("/"), pattern):
                yield file
    elif not has_magic(part):
        yield from _matching(base / part, rest, accept)
    elif base.scheme == "gs":
        yield from _below(base, pattern, accept)
    else:
        for info in base.file_system().get_file_info(_selector(base, recursive=False)):
            if not _fits(info.base_name, part):
                continue
            if info.type.name == "Directory":
                yield from _matching(base / info.base_name, rest, accept)
            elif not rest:
                yield _stored(base / info.base_name, info)


def _below(base: Location, pattern: list[str], accept: Accept) -> Iterator[StoredFile]:
    """Yield the same from one listing of everything in `base`: pyarrow lists no folders of Google's store."""
    at = len(str(base).rstrip("/")) + 1
    for file in _listed(base, recursive=True):
        parts = file.path[at:].split("/")
        in_folder = any(_matches(parts[:depth], pattern) for depth in range(1, len(parts)))
        if _matches(parts, pattern) or (in_folder and accept(parts[-1])):
            yield file


def _matches(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or (bool(parts) and _fits(parts[0], "*") and _matches(parts[1:], pattern))
    return bool(parts) and _fits(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _fits(name: str, part: str) -> bool:
    """Return True if a part of a pattern matches a name; only a part with a dot in front matches a hidden one."""
    return fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def _listed(base: Location, *, recursive: bool) -> Iterator[StoredFile]:
    cut = len(base.arrow_path.rstrip("/")) + 1
    for info in base.file_system().get_file_info(_selector(base, recursive=recursive)):
        if info.type.name == "File":
            yield _stored(base / info.path[cut:], info)


def _selector(base: Location, *, recursive: bool) -> Any:
    from pyarrow import fs

    return fs.FileSelector(base.arrow_path, recursive=recursive, allow_not_found=True)


def _stored(location: Location, info: Any) -> StoredFile:
    return StoredFile(str(location), info.size, info.mtime_ns or 0)

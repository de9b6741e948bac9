"""A disk in memory: for brokers without persistent state, and for tests of the layers above."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from mockraft.brokers.disks.disk import Space, checked_name

BYTES_MAX = 256 * 1024 * 1024


class MemoryDisk:
    """Files in dicts; a write beyond `bytes_max` bytes fails with ENOSPC. See `Disk`.

    `root` is for display only. The files live as long as the object: a broker that restarts gets the same object again.
    """

    __slots__ = ("_bytes_max", "_children", "_locked", "_used_bytes", "delay_ms", "root")

    def __init__(self, root: str, bytes_max: int = BYTES_MAX) -> None:
        self.root = root
        self.delay_ms = 0.0
        self._bytes_max = bytes_max
        self._used_bytes = 0
        self._locked = False
        # The entries of each directory by name: the bytes of a file, None for a directory.
        self._children: dict[str, dict[str, bytearray | None]] = {"": {}}

    def names(self, under: str = "") -> list[str]:
        """Return the names directly under a directory, sorted."""
        return sorted(self._directory(under))

    def exists(self, name: str) -> bool:
        """Return True if there is a file or directory of this name."""
        if not name:
            return True
        parent, leaf = _split(name)
        return leaf in self._children.get(parent, ())

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        return len(self._file(name))

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """Return part of a file."""
        with memoryview(self._file(name)) as view:
            return bytes(view[offset:] if size < 0 else view[offset : offset + size])

    def append(self, name: str, data: bytes) -> None:
        """Append to a file. Writes all of the data or none."""
        parent, leaf = _split(name)
        directory = self._directory(parent, name)
        self._take(name, len(data))
        if leaf in directory:
            self._file(name).extend(data)
        else:
            directory[leaf] = bytearray(data)

    def replace(self, name: str, data: bytes) -> None:
        """Replace the content of a file."""
        parent, leaf = _split(name)
        directory = self._directory(parent, name)
        before = len(self._file(name)) if leaf in directory else 0
        self._take(name, len(data) - before)
        directory[leaf] = bytearray(data)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to this size."""
        file = self._file(name)
        if size > len(file):
            raise self._error(errno.EINVAL, name)
        self._used_bytes -= len(file) - size
        del file[size:]

    def sync(self, name: str) -> None:
        """Check that the name exists: there is nothing to force."""
        if not self.exists(checked_name(name, may_be_root=True)):
            raise self._error(errno.ENOENT, name)

    def make_dir(self, name: str) -> None:
        """Create a directory."""
        parent, leaf = _split(name)
        directory = self._directory(parent, name)
        if leaf in directory:
            raise self._error(errno.EEXIST, name)
        directory[leaf] = None
        self._children[name] = {}

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory. As rename(2): onto a file, or onto an empty directory."""
        (parent, leaf), (new_parent, new_leaf) = _split(old), _split(new)
        source, target = self._directory(parent, old), self._directory(new_parent, new)
        if leaf not in source:
            raise self._error(errno.ENOENT, old)
        if old == new:
            return
        if new_leaf in target:
            if source[leaf] is None and target[new_leaf] is not None:
                raise self._error(errno.ENOTDIR, new)
            if source[leaf] is not None and target[new_leaf] is None:
                raise self._error(errno.EISDIR, new)
            if self._children.get(new):
                raise self._error(errno.ENOTEMPTY, new)
            self.remove(new)
        target[new_leaf] = source.pop(leaf)
        for name in list(self._below(old)):
            self._children[new + name.removeprefix(old)] = self._children.pop(name)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        directory, leaf = self._entry(name)
        for below in list(self._below(name)):
            self._used_bytes -= sum(len(file) for file in self._children.pop(below).values() if file is not None)
        file = directory.pop(leaf)
        self._used_bytes -= 0 if file is None else len(file)

    def space(self) -> Space:
        """Return its size and the free space."""
        return Space(self._bytes_max, self._bytes_max - self._used_bytes)

    def lock(self) -> None:
        """Lock it; BlockingIOError when it is locked."""
        if self._locked:
            raise BlockingIOError(errno.EAGAIN, "another broker runs on this log directory", f"{self.root}/.lock")
        self._locked = True

    def close(self) -> None:
        """Release the lock; the files stay."""
        self._locked = False

    def _directory(self, name: str, path_in_error: str | None = None) -> dict[str, bytearray | None]:
        """Return the contents of a directory; an error names the `asked` path."""
        found = self._children.get(checked_name(name, may_be_root=True))
        if found is None:
            number = errno.ENOTDIR if self.exists(name) else errno.ENOENT
            raise self._error(number, name if path_in_error is None else path_in_error)
        return found

    def _file(self, name: str) -> bytearray:
        directory, leaf = self._entry(name)
        file = directory[leaf]
        if file is None:
            raise self._error(errno.EISDIR, name)
        return file

    def _entry(self, name: str) -> tuple[dict[str, bytearray | None], str]:
        """Return the directory that has this name, and the name in it."""
        parent, leaf = _split(name)
        directory = self._directory(parent, name)
        if leaf not in directory:
            raise self._error(errno.ENOENT, name)
        return directory, leaf

    def _below(self, name: str) -> Iterator[str]:
        """Yield a directory and all directories in it."""
        if name in self._children:
            yield name
            for leaf, file in self._children[name].items():
                if file is None:
                    yield from self._below(f"{name}/{leaf}")

    def _error(self, number: int, name: str) -> OSError:
        return OSError(number, os.strerror(number), f"{self.root}/{name}" if name else self.root)

    def _take(self, name: str, more_bytes: int) -> None:
        if more_bytes > 0 and self._used_bytes + more_bytes > self._bytes_max:
            raise self._error(errno.ENOSPC, name)
        self._used_bytes += more_bytes


def _split(name: str) -> tuple[str, str]:
    parent, _, leaf = checked_name(name).rpartition("/")
    return parent, leaf

"""A log directory on a real file system."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator

from mockraft.brokers.disks.disk import Space, checked_name
from mockraft.files.directory_lock import lock_directory
from mockraft.files.given_files import open_regular
from mockraft.files.private_files import DIRECTORY_MODE

_TEMPORARY = ".tmp"


class RealDisk:
    """The files below an existing directory. See `Disk`.

    No file except `.lock` stays open between calls, so ten thousand logs do not need ten thousand handles. A symbolic
    link below the root is refused (ELOOP), and never followed by `remove`.
    """

    __slots__ = ("_lock", "delay_ms", "root")

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self.delay_ms = 0.0
        self._lock = -1

    def names(self, under: str = "") -> list[str]:
        """Return the names directly under a directory, sorted."""
        return sorted(os.listdir(self._path(under, may_be_root=True)))

    def exists(self, name: str) -> bool:
        """Return True if there is a file or directory of this name."""
        try:
            os.stat(self._path(name, may_be_root=True))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        found = os.stat(self._path(name))
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), f"{self.root}/{name}")
        return found.st_size

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """Return part of a file."""
        with self._open(name, os.O_RDONLY) as file:
            wanted = max(os.fstat(file).st_size - offset, 0)
            if 0 <= size < wanted:
                wanted = size
            data = os.pread(file, wanted, offset)
            while 0 < len(data) < wanted:
                more = os.pread(file, wanted - len(data), offset + len(data))
                if not more:
                    break
                data += more
            return data

    def append(self, name: str, data: bytes) -> None:
        """Append to a file. Writes all of the data or none: a partial write on a full disk is cut off again."""
        with self._open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
            if not data:
                return
            before = os.fstat(file).st_size
            try:
                _write(file, data)
            except OSError:
                os.ftruncate(file, before)
                raise

    def replace(self, name: str, data: bytes) -> None:
        """Replace the content of a file: write another, force it to the disk, rename."""
        path = self._path(name)
        beside = path + _TEMPORARY
        try:
            with self._open(name + _TEMPORARY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
                _write(file, data)
                os.fsync(file)
            os.replace(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        _sync(os.path.dirname(path))

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to this size, on the disk as well."""
        with self._open(name, os.O_WRONLY) as file:
            if size > os.fstat(file).st_size:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            os.ftruncate(file, size)
            os.fsync(file)

    def sync(self, name: str) -> None:
        """Force a file, or the names in a directory, to the disk."""
        _sync(self._path(name, may_be_root=True))

    def make_dir(self, name: str) -> None:
        """Create a directory."""
        os.mkdir(self._path(name), DIRECTORY_MODE)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory atomically; the rename is on the disk on return."""
        source, target = self._path(old), self._path(new)
        os.rename(source, target)
        for parent in sorted({os.path.dirname(source), os.path.dirname(target)}):
            _sync(parent)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with everything in it; for a symbolic link the link itself."""
        path = os.path.join(self.root, checked_name(name))
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def space(self) -> Space:
        """Return the size of the volume and the space available to this process."""
        found = os.statvfs(self.root)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def lock(self) -> None:
        """Lock `.lock` as Kafka does; BlockingIOError when another process, or another broker in this one, has it."""
        descriptor = lock_directory(self.root)
        if descriptor is None:
            message = "another broker runs on this log directory: stop it, or give this one a directory of its own"
            raise BlockingIOError(errno.EAGAIN, message, f"{self.root}/.lock")
        self._lock = descriptor

    def close(self) -> None:
        """Release the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _path(self, name: str, *, may_be_root: bool = False) -> str:
        """Return the path of a name. ValueError outside the root, OSError (ELOOP) behind a symbolic link."""
        path = self.root
        for part in filter(None, checked_name(name, may_be_root=may_be_root).split("/")):
            path = f"{path}/{part}"
            if os.path.islink(path):
                raise OSError(errno.ELOOP, "symbolic links below a log directory are not followed", path)
        return path

    @contextlib.contextmanager
    def _open(self, name: str, flags: int) -> Iterator[int]:
        path = self._path(name)
        descriptor = open_regular(path, flags | os.O_NOFOLLOW)
        try:
            yield descriptor
        except OSError as error:
            # Errors of calls on a descriptor have no file name.
            raise OSError(error.errno, error.strerror, path) from error
        finally:
            os.close(descriptor)


def _write(file: int, data: bytes) -> None:
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(descriptor)

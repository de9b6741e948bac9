"""A log directory on a real file system."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import struct
from collections.abc import Iterator

from mockraft.brokers.log_dirs.disk import Space, checked_name

_TEMPORARY = ".tmp"


class RealDisk:
    """The files below a directory that is there already. See `Disk`.

    No file stays open between calls but `.lock`, so ten thousand logs need no ten thousand handles. What lies below the
    root and is a symbolic link is refused (ELOOP), and never followed by `remove`.
    """

    __slots__ = ("_lock", "root")

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._lock = -1

    async def ready(self) -> None:
        """The operating system takes what it is given."""

    def names(self, under: str = "") -> list[str]:
        """What lies directly under a directory, sorted."""
        return sorted(os.listdir(self._path(under, may_be_root=True)))

    def exists(self, name: str) -> bool:
        """Whether there is a file or directory of this name."""
        try:
            os.stat(self._path(name, may_be_root=True))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def size(self, name: str) -> int:
        """The bytes of a file."""
        found = os.stat(self._path(name))
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), f"{self.root}/{name}")
        return found.st_size

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """Part of a file."""
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
        """Write at the end of a file. All of it or none: what a full disk cut short is cut off."""
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
        """Make this the whole of a file: write another, force it to the disk, rename."""
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
        """Make a directory."""
        os.mkdir(self._path(name))

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name, in one step that the disk has when this returns."""
        source, target = self._path(old), self._path(new)
        os.rename(source, target)
        for parent in sorted({os.path.dirname(source), os.path.dirname(target)}):
            _sync(parent)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it; a symbolic link itself, not what it names."""
        path = os.path.join(self.root, checked_name(name))
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def space(self) -> Space:
        """How large the volume is and how much is left to us."""
        found = os.statvfs(self.root)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def lock(self) -> None:
        """Take `.lock` as Kafka does; BlockingIOError when another process, or another broker in this one, has it."""
        path = os.path.join(self.root, ".lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
                # Excludes Kafka's own lock on this file (FileChannel.tryLock) and, other than a plain POSIX lock,
                # also a second opening in the same process.
                whole_file = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole_file)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                said = "another broker runs on this log directory: stop it, or give this one a directory of its own"
                raise BlockingIOError(errno.EAGAIN, said, path) from error
            raise
        self._lock = descriptor

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _path(self, name: str, *, may_be_root: bool = False) -> str:
        """Where a name lies. ValueError for one that leaves the root, OSError (ELOOP) behind a symbolic link."""
        path = self.root
        for part in filter(None, checked_name(name, may_be_root=may_be_root).split("/")):
            path = f"{path}/{part}"
            if os.path.islink(path):
                raise OSError(errno.ELOOP, "a symbolic link below a log directory is not followed", path)
        return path

    @contextlib.contextmanager
    def _open(self, name: str, flags: int) -> Iterator[int]:
        path = self._path(name)
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            yield descriptor
        except OSError as error:
            # The calls on a descriptor do not say what it was of.
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

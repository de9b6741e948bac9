"""The lock on a log directory, in the file `.lock`, as Kafka takes it (FileLock)."""

import errno
import fcntl
import os
import struct

from mockraft.files.private_files import FILE_MODE


def lock_directory(path: str) -> int | None:
    """Return an open, locked file descriptor; None if another process, or this one, has the lock. Raises OSError."""
    descriptor = os.open(os.path.join(path, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            # Excludes Kafka's own lock on this file (FileChannel.tryLock) and, unlike a plain POSIX lock,
            # also a second opening in the same process.
            whole_file = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole_file)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        raise
    return descriptor

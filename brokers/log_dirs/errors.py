"""Errors of a log, with the error codes that clients get for them."""

from __future__ import annotations

from mockraft.wire import error_codes


class LogError(Exception):
    """A log operation failed or was refused. `error_code` is Kafka's code for it."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


class StorageError(LogError):
    """KAFKA_STORAGE_ERROR (56): the disk below a log failed; the OSError is its cause.

    `directory_id` is the log directory's, `key` the replica's (topic id, partition), None when it concerns no replica.
    """

    def __init__(self, message: str, directory_id: bytes, key: tuple[bytes, int] | None = None) -> None:
        super().__init__(error_codes.KAFKA_STORAGE_ERROR, message)
        self.directory_id = directory_id
        self.key = key


class LogClosedError(OSError):
    """EBADF: a log was used after it was removed, replaced or closed. The disk is not at fault."""

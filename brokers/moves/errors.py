"""What a move between log directories ends with when it does not end well."""

from __future__ import annotations


class MoveRefusedError(Exception):
    """A broker does not begin a move. `error_code` is what AlterReplicaLogDirs answers."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


class MoveEndedError(Exception):
    """A move that had begun ended early; the replica is where it was. The message says why."""

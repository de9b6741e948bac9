"""Errors of moves between log directories."""

from __future__ import annotations


class MoveRefusedError(Exception):
    """A broker refuses to start a move. `error_code` is the code in the AlterReplicaLogDirs response."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


class MoveEndedError(Exception):
    """A started move ended early; the replica is where it was. The message has the reason."""

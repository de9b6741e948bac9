"""Errors of capture files, with the file and the offset."""

from __future__ import annotations


class CaptureError(ValueError):
    """Raised for an unreadable capture file: the problem, the file and the offset in it."""

    def __init__(self, problem: str, file: str = "", offset: int = 0) -> None:
        super().__init__(f"{file}: {problem} (offset {offset})" if file else problem)
        self.problem, self.file, self.offset = problem, file, offset

    def __reduce__(self) -> tuple[type[CaptureError], tuple[str, str, int]]:
        return type(self), (self.problem, self.file, self.offset)


class SplitDesyncError(CaptureError):
    """Raised if a split does not end where the next one starts: the plan is wrong, use `exact`."""

"""What is wrong with a capture file, with the file and the offset."""

from __future__ import annotations


class CaptureError(ValueError):
    """A capture file that cannot be read (on): what is wrong, in which file and at which offset of it."""

    def __init__(self, problem: str, file: str = "", offset: int = 0) -> None:
        super().__init__(f"{file}: {problem} (offset {offset})" if file else problem)
        self.problem, self.file, self.offset = problem, file, offset

    def __reduce__(self) -> tuple[type[CaptureError], tuple[str, str, int]]:
        return type(self), (self.problem, self.file, self.offset)


class SplitDesyncError(CaptureError):
    """A split did not end where the next one starts: the splits of this plan are wrong, plan with `exact`."""

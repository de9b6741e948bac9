"""Errors of capture files, and the parts of a file that are in no table, as rows of `schemas.FILE_EVENTS`."""

from __future__ import annotations

from typing import Literal, TypedDict


class CaptureError(ValueError):
    """Raised for an unreadable capture file: the problem, the file and the offset in it."""

    def __init__(self, problem: str, file: str = "", offset: int = 0) -> None:
        super().__init__(f"{file}: {problem} (offset {offset})" if file else problem)
        self.problem, self.file, self.offset = problem, file, offset

    def __reduce__(self) -> tuple[type[CaptureError], tuple[str, str, int]]:
        return type(self), (self.problem, self.file, self.offset)


class SplitDesyncError(CaptureError):
    """Raised if a split does not end where the next one starts: the plan is wrong, use `exact`."""


OnError = Literal["fail", "quarantine", "skip"]

DAMAGE_KINDS = ("corrupt", "quarantined", "truncated")
"""The kinds that are a place in a file, one row each; the others are counts of packets."""


class FileEvent(TypedDict):
    """A row of `schemas.FILE_EVENTS`."""

    file: str
    file_offset: int
    kind: str
    count: int
    detail: str


class FileEvents:
    """Count what is left out of one file (or split); `finish` appends one row for each kind to `rows`.

    Damage is a row of its own with its place, or with `on_error="fail"` a CaptureError.
    """

    def __init__(self, file: str, rows: list[FileEvent] | None, on_error: OnError = "fail") -> None:
        self.file = file
        self.on_error = on_error
        self.rows = [] if rows is None else rows
        self._counted: dict[tuple[str, str], FileEvent] = {}

    def count(self, kind: str, offset: int, count: int, detail: str = "") -> None:
        """Count packets that were left out, the first of them at `offset`."""
        if count:
            row = self._counted.setdefault((kind, detail), self._row(kind, offset, 0, detail))
            row["count"] += count

    def add(self, kind: str, offset: int, count: int, detail: str) -> None:
        """Add a place in the file; `count` is bytes."""
        self.rows.append(self._row(kind, offset, count, detail))

    def damage(self, offset: int, lost_bytes: int, problem: str) -> None:
        """Report unreadable bytes at `offset`, of which `lost_bytes` are skipped; raise CaptureError if `on_error` is
        fail.
        """
        if self.on_error == "fail":
            raise CaptureError(problem, self.file, offset)
        self.add("corrupt", offset, lost_bytes, problem)

    def finish(self) -> None:
        """Append the counts."""
        self.rows.extend(self._counted.values())
        self._counted = {}

    def _row(self, kind: str, offset: int, count: int, detail: str) -> FileEvent:
        return {"file": self.file, "file_offset": offset, "kind": kind, "count": count, "detail": detail}

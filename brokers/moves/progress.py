"""The progress of a move between log directories, for people and for tests."""

from __future__ import annotations

from typing import NamedTuple

from mockraft.brokers.moves.move import Stage


class MoveProgress(NamedTuple):
    """One active move. Directories are paths.

    `offset_lag` is the number of offsets that the future log is behind, as in DescribeLogDirs; `bytes_left` are still
    to be copied; `eta_ms` is an estimate from this move's rate so far, None while nothing was copied.
    """

    topic: str
    partition: int
    source: str
    target: str
    stage: Stage
    offset_lag: int
    bytes_left: int
    eta_ms: float | None


def eta_ms(bytes_left: int, copied_bytes: int, elapsed_ms: float) -> float | None:
    """Return the estimated time for the rest at the rate so far; None without a rate."""
    if bytes_left == 0:
        return 0.0
    return bytes_left * elapsed_ms / copied_bytes if copied_bytes and elapsed_ms > 0 else None

"""How far a move between log directories is, for people and for tests."""

from __future__ import annotations

from typing import NamedTuple

from mockraft.brokers.moves.move import Stage


class MoveProgress(NamedTuple):
    """One move under way. Directories are paths.

    `offset_lag` is how many offsets the future log is behind, as DescribeLogDirs says it; `bytes_left` what is still to
    be copied; `eta_ms` how long that takes at the rate of this move so far, None while nothing was copied.
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
    """How long the rest takes at the rate so far; None when there was none."""
    if bytes_left == 0:
        return 0.0
    return bytes_left * elapsed_ms / copied_bytes if copied_bytes and elapsed_ms > 0 else None

"""Limits of epochs and offsets, so that another election and another record always have a number.

Kafka has no such limits: its controller counts past 2³¹−1 to a negative epoch and exits. A number of a file that leaves
no room is refused at start, one of another node when it arrives.
"""

from __future__ import annotations

from typing import Final

EPOCH_MAX: Final = 2**31 - 1
"""Largest leader epoch; no election can follow it."""

EPOCH_REPORTED_MAX: Final = EPOCH_MAX - 2**24
"""Largest epoch to which a request or response may raise this node's at once; above it, only by EPOCH_STEP_MAX.

2²⁴ elections are one each second for half a year.
"""

EPOCH_STEP_MAX: Final = 16
"""Elections that a node may have missed above EPOCH_REPORTED_MAX: more than a majority holds while one node is away."""

EPOCH_PEER_MAX: Final = EPOCH_MAX - 2**16
"""Largest epoch to which other nodes may raise this node's at all: it can restart and lead 65,536 times more."""

OFFSET_MAX: Final = 2**63 - 1 - 2**40
"""Largest end offset of a snapshot or start offset of a segment; it leaves room for 2⁴⁰ records."""


def is_reachable(epoch: int, own_epoch: int) -> bool:
    """Return True if another node may raise this node's epoch to `epoch`."""
    return epoch <= min(max(EPOCH_REPORTED_MAX, own_epoch + EPOCH_STEP_MAX), EPOCH_PEER_MAX)


def refusal(*, epoch: int = 0, offset: int = 0) -> str | None:
    """Return the reason why a log cannot continue after this epoch and offset; None if it can."""
    if not 0 <= epoch < EPOCH_MAX:
        return f"leader epoch {epoch} is not 0 to {EPOCH_MAX - 1}: no election can follow it"
    if not 0 <= offset <= OFFSET_MAX:
        return f"offset {offset} is not 0 to {OFFSET_MAX}: no record can follow it"
    return None

"""Transactions of the metadata log (KIP-868): their records take effect together at the end, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from mockraft.wire.metadata_log_frame import RecordAt

_NOTHING: tuple[RecordAt, ...] = ()


class Transactions:
    """Holds back committed records while their transaction is open."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[RecordAt] | None = None

    def clear(self) -> None:
        """Drop the open transaction before a snapshot is read."""
        self._held = None

    def passed(self, at: RecordAt) -> Sequence[RecordAt]:
        """Return the records that take effect with this committed one: itself, a whole transaction, or none."""
        kind = type(at.record).__name__
        if kind == "BeginTransactionRecord":
            self._held = []
        elif kind == "AbortTransactionRecord":
            self._held = None
        elif kind == "EndTransactionRecord":
            held, self._held = self._held or _NOTHING, None
            return held
        elif self._held is None:
            return (at,)
        else:
            self._held.append(at)
        return _NOTHING

"""What happened on the listener: exchanges, closed connections, counts; looking for and verifying what was asked."""

from mockraft.server.journal.journal import (
    ENTRY_OVERHEAD_BYTES,
    BrokenTick,
    ClosedConnection,
    Entry,
    Exchange,
    Journal,
    without_secrets,
)

__all__ = [
    "ENTRY_OVERHEAD_BYTES",
    "BrokenTick",
    "ClosedConnection",
    "Entry",
    "Exchange",
    "Journal",
    "without_secrets",
]

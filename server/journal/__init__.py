"""What happened on the listener: exchanges, closed connections, counts; looking for and verifying what was asked."""

from mockraft.server.journal.endings import BrokenTick, ClosedConnection
from mockraft.server.journal.exchange import Exchange, first_error, without_secrets
from mockraft.server.journal.journal import ENTRY_OVERHEAD_BYTES, Entry, Journal, Matching

__all__ = [
    "ENTRY_OVERHEAD_BYTES",
    "BrokenTick",
    "ClosedConnection",
    "Entry",
    "Exchange",
    "Journal",
    "Matching",
    "first_error",
    "without_secrets",
]

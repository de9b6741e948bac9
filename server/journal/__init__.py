"""What happened on the listener: exchanges, closed connections, counts; looking for and verifying what was asked."""

from mockraft.server.journal.capture_file import write_pcapng
from mockraft.server.journal.endings import BrokenTick, ClosedConnection
from mockraft.server.journal.exchange import Exchange, first_error, without_secrets
from mockraft.server.journal.journal import ENTRY_OVERHEAD_BYTES, Entry, Journal, Matching
from mockraft.server.journal.lines import line, report
from mockraft.server.journal.verification import VerificationError, verify
from mockraft.server.journal.waiting import merged, when

__all__ = [
    "ENTRY_OVERHEAD_BYTES",
    "BrokenTick",
    "ClosedConnection",
    "Entry",
    "Exchange",
    "Journal",
    "Matching",
    "VerificationError",
    "first_error",
    "line",
    "merged",
    "report",
    "verify",
    "when",
    "without_secrets",
    "write_pcapng",
]

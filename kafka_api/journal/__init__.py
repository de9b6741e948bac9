"""The journal: what happened on a node's listener, and what a test can find, wait for and verify in it.

A `Journal` is a ring of entries, oldest first: an `Exchange` (a request and its answer), a `ClosedConnection` (with the
reason) or a `Failure` (of a login or of periodic work, which is mockraft's). An exchange keeps the bytes of the wire
and decodes them on access, so that writing an entry is cheap and a reader sees what was sent. The ring is bounded in
entries and in bytes; counts are kept since the start.

A request that a broker forwards (KIP-590) is an exchange of its own: its API, client and principal are those of the
request in the Envelope, and `Exchange.envelope` is what was on the wire.

The nodes of a quorum share one counter of ids, so ids order the events of all nodes; `merged` does so. A mark
(`Journal.mark`) is the newest id, and `since` in every search means "after this mark".

Invariants: entries are complete when they are added and never changed afterwards; the tokens of SaslAuthenticate are
removed before an entry is added; whatever becomes text, JSON or a file has asterisks or `[hidden]` for secrets
(`mockraft.wire.redaction`), unless the journal's `show_secrets` is set; listeners are called in the thread of the event
loop and must not raise.

`verify` counts matching requests and raises `VerificationError` with a report; `when` calls back once enough requests
have matched; `lines` and `report` are the text form; `pcapng_pieces` is the journal as a capture.
"""

from mockraft.kafka_api.journal.capture_file import pcapng_pieces
from mockraft.kafka_api.journal.exchange import (
    Answer,
    ClosedConnection,
    Exchange,
    Failure,
    first_error,
    without_secrets,
)
from mockraft.kafka_api.journal.journal import ENTRY_OVERHEAD_BYTES, Entry, Journal, Matching, matching, merged, when
from mockraft.kafka_api.journal.lines import line, report
from mockraft.kafka_api.journal.verification import VerificationError, verify

__all__ = [
    "ENTRY_OVERHEAD_BYTES",
    "Answer",
    "ClosedConnection",
    "Entry",
    "Exchange",
    "Failure",
    "Journal",
    "Matching",
    "VerificationError",
    "first_error",
    "line",
    "matching",
    "merged",
    "pcapng_pieces",
    "report",
    "verify",
    "when",
    "without_secrets",
]

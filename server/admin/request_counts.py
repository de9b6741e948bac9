"""Counts of a journal's exchanges for the metrics: one dictionary update per request, evaluated on a scrape."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mockraft.server.journal import Entry, Exchange, Journal
from mockraft.wire import api_keys, error_codes

BUCKETS_MS = (1, 5, 10, 25, 50, 100, 250, 500, 1000, 5000)
"""Upper bounds of the latency histogram; 0 ms, within one step of the clock, is in the first."""

LARGE_FRAME_BYTES = 256
KINDS_MAX = 2048

UNANSWERED = "UNANSWERED"
"""Label in place of an error if there is no readable answer."""

_WITH_RECORDS = (api_keys.FETCH, api_keys.FETCH_SNAPSHOT)


class RequestCounts:
    """Counts of a journal's entries, those that it held before included.

    Most answers of an API differ only in their correlation id, so they are counted by their bytes, and each distinct
    answer is decoded for its error once, when `settle` is called.
    """

    def __init__(self, journal: Journal) -> None:
        self.requests: Counter[tuple[str, int, str]] = Counter()
        """Number by API, version and error."""
        self.latencies: dict[str, list[int]] = {}
        """Number by API that took at most each of `BUCKETS_MS`, and that took longer."""
        self.elapsed_ms: Counter[str] = Counter()
        self.received_bytes = self.sent_bytes = self.unexpected = 0
        self._kinds: dict[tuple[Any, ...], list[Any]] = {}
        for entry in tuple(journal.entries):
            self._count(entry)
        journal.subscribe(self._count)

    def settle(self) -> None:
        """Bring `requests`, `latencies` and `elapsed_ms` up to date."""
        kinds, self._kinds = self._kinds, {}
        for (_, version, elapsed_ms, said), (count, exchange) in kinds.items():
            code = said if isinstance(said, int) else exchange.error_code
            error = UNANSWERED if code is None else error_codes.name(code)
            api = exchange.api
            self.requests[api, version, error] += count
            buckets = self.latencies.setdefault(api, [0] * (len(BUCKETS_MS) + 1))
            buckets[next((i for i, bound in enumerate(BUCKETS_MS) if elapsed_ms <= bound), len(BUCKETS_MS))] += count
            self.elapsed_ms[api] += elapsed_ms * count

    def _count(self, entry: Entry) -> None:
        if entry.__class__ is not Exchange:
            return
        frame = entry.response_frame
        self.received_bytes += len(entry.request_frame) + 4
        self.sent_bytes += len(frame)
        self.unexpected += entry.unmatched
        api_key = entry.api_key
        said: Any
        if len(frame) <= LARGE_FRAME_BYTES:
            said = frame[8:]
        else:
            # Whoever is refused a fetch is sent no records.
            said = error_codes.NONE if api_key in _WITH_RECORDS else entry.error_code
        kind = (api_key, entry.api_version, entry.answered_ms - entry.received_ms, said)
        known = self._kinds.get(kind)
        if known is not None:
            known[0] += 1
            return
        self._kinds[kind] = [1, entry]
        if len(self._kinds) >= KINDS_MAX:
            self.settle()

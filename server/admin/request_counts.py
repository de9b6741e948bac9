"""Counts of a journal's exchanges for the metrics: one dictionary update per request, evaluated on a scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from mockraft.kafka_api.journal import Entry, Exchange, Journal
from mockraft.wire import api_keys, error_codes

BUCKETS_US = (
    *(50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000),
    *(1_000_000, 2_500_000, 5_000_000),
)
"""Upper bounds of the latency histogram in microseconds: from 50 µs to 5 s."""

LARGE_FRAME_BYTES = 256
KINDS_MAX = 2048

UNANSWERED = "UNANSWERED"
"""Label in place of an error if there is no readable answer."""

_WITH_RECORDS = (api_keys.FETCH, api_keys.FETCH_SNAPSHOT)


_Kind = tuple[int, int, int, bytes | int | None]
"""API key, version, bucket of the latency, and the error code, or the answer's bytes that have it."""


@dataclass(slots=True)
class _Counted:
    exchange: Exchange
    elapsed_us: int
    count: int = 1


class RequestCounts:
    """Counts of a journal's entries, those that it held before included.

    Most answers of an API differ only in their correlation id, so they are counted by their bytes, and each distinct
    answer is decoded for its error once, when `settle` is called.
    """

    def __init__(self, journal: Journal) -> None:
        self.requests: Counter[tuple[str, int, str]] = Counter()
        """Number by API, version and error."""
        self.latencies: dict[str, list[int]] = {}
        """Number by API that took at most each of `BUCKETS_US`, and that took longer."""
        self.elapsed_us: Counter[str] = Counter()
        self.received_bytes = self.sent_bytes = self.unexpected = 0
        self._kinds: dict[_Kind, _Counted] = {}
        for entry in journal.entries:
            self._count(entry)
        journal.subscribe(self._count)

    def settle(self) -> None:
        """Bring `requests`, `latencies` and `elapsed_us` up to date."""
        kinds, self._kinds = self._kinds, {}
        for (_, version, bucket, code_or_body), counted in kinds.items():
            code = counted.exchange.error_code if isinstance(code_or_body, bytes) else code_or_body
            error = UNANSWERED if code is None else error_codes.name(code)
            api = counted.exchange.api
            self.requests[api, version, error] += counted.count
            buckets = self.latencies.setdefault(api, [0] * (len(BUCKETS_US) + 1))
            buckets[bucket] += counted.count
            self.elapsed_us[api] += counted.elapsed_us

    def _count(self, entry: Entry) -> None:
        if entry.__class__ is not Exchange:
            return
        frame = entry.response_frame
        self.received_bytes += len(entry.request_frame) + 4
        self.sent_bytes += len(frame)
        self.unexpected += entry.unmatched
        api_key = entry.api_key
        code_or_body: bytes | int | None
        if len(frame) <= LARGE_FRAME_BYTES:
            code_or_body = frame[8:]
        else:
            # Whoever is refused a fetch is sent no records.
            code_or_body = error_codes.NONE if api_key in _WITH_RECORDS else entry.error_code
        kind = (api_key, entry.api_version, bisect_left(BUCKETS_US, entry.took_us), code_or_body)
        known = self._kinds.get(kind)
        if known is not None:
            known.count += 1
            known.elapsed_us += entry.took_us
            return
        self._kinds[kind] = _Counted(entry, entry.took_us)
        if len(self._kinds) >= KINDS_MAX:
            self.settle()

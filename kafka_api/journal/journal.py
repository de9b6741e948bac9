"""The ring of journal entries: every exchange, every closed connection with its reason, and counts.

An entry keeps the bytes that were exchanged and decodes them on access, so that writing it is cheap and a reader sees
what was on the wire. The ring is bounded in entries and in bytes.
"""

from __future__ import annotations

import heapq
import itertools
import json
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from mockraft.kafka_api.api import call_of_test, failure_text
from mockraft.kafka_api.journal.exchange import ClosedConnection, Exchange, Failure, no_topic_name, opened
from mockraft.wire import api_keys

if TYPE_CHECKING:
    from mockraft.wire.json_form import Tree


Entry = Exchange | ClosedConnection | Failure

Matching = Callable[[Exchange], bool]
"""A condition on exchanges; a `Match` is one."""

ENTRY_OVERHEAD_BYTES = 512
"""Approximate size of an entry without its frames and texts, so that small entries count against the bytes too."""


class Journal:
    """The ring of entries, oldest first, and counts since the start (these are not bounded by the ring).

    Switched off (`enabled` False) it keeps no further entries; it still counts and notifies its listeners. `numbers`
    gives the entries' ids; the nodes of a quorum, and simulated brokers, share them, so that ids order the events of
    all. `show_secrets` lets texts, JSON and captures of its entries have secrets.
    """

    def __init__(
        self,
        entries_max: int,
        bytes_max: int,
        api_name: Callable[[int], str] = api_keys.name,
        node_id: int = 0,
        numbers: Iterator[int] | None = None,
        *,
        show_secrets: bool = False,
    ) -> None:
        self.entries_max = entries_max
        self.bytes_max = bytes_max
        self._ring: deque[tuple[int, Entry]] = deque()
        self.api_name = api_name
        self.node_id = node_id
        self.show_secrets = show_secrets
        self.at_broker = False
        """True if it is a simulated broker's."""
        self.topic_name: Callable[[bytes], str | None] = no_topic_name
        """Returns the name of the topic with an id, None for an unknown one."""
        self.enabled = entries_max > 0
        self.address = ("127.0.0.1", 0)
        """The node's listening address, as (host, port)."""
        self._entries_max_at_first = entries_max
        self.numbers = numbers or itertools.count(1)
        self._last_id = 0
        self._listeners: tuple[Callable[[Entry], None], ...] = ()
        self._listeners_to_failures: tuple[Callable[[Entry], None], ...] = ()
        self.clear()

    def clear(self) -> None:
        """Forget all entries and counts; ids continue, and listeners stay."""
        self._ring.clear()
        self.bytes_held = self.dropped = 0
        self.exchanges_by_api: Counter[int] = Counter()
        self.closed_by_reason: Counter[str] = Counter()
        self.failures = 0

    def forget(self, ids: Collection[int]) -> None:
        """Forget entries by their ids; counts stay."""
        kept = [(size, entry) for size, entry in self._ring if entry.id not in ids]
        self._ring.clear()
        self._ring.extend(kept)
        self.bytes_held = sum(size for size, _ in kept)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries that are still held, oldest first."""
        return tuple([entry for _, entry in self._ring.copy()])

    def reset(self) -> None:
        """Clear it, and restore the initial `enabled` and `entries_max`."""
        self.entries_max = self._entries_max_at_first
        self.enabled = self.entries_max > 0
        self.clear()

    def subscribe(self, listener: Callable[[Entry], None], *, every_exchange: bool = True) -> None:
        """Call `listener` with all further entries, or without successful exchanges.

        What it raises becomes a failure in the journal, and it is called no more.
        """
        if every_exchange:
            self._listeners = (*self._listeners, listener)
        else:
            self._listeners_to_failures = (*self._listeners_to_failures, listener)

    def unsubscribe(self, listener: Callable[[Entry], None]) -> None:
        """Remove a listener; no effect if it is not subscribed."""
        self._listeners = tuple(each for each in self._listeners if each != listener)
        self._listeners_to_failures = tuple(each for each in self._listeners_to_failures if each != listener)

    def add_exchange(self, exchange: Exchange) -> Exchange:
        """Keep, count and report an exchange, of an Envelope the one that it carries; return what is kept."""
        if exchange.header.api_key == api_keys.ENVELOPE:
            exchange = opened(exchange)
        self.exchanges_by_api[exchange.header.api_key] += 1
        exchange.topic_name = self.topic_name
        self._keep(exchange)
        if (envelope := exchange.envelope) is not None:
            envelope.id, envelope.node_id, envelope.show_secrets = exchange.id, exchange.node_id, exchange.show_secrets
        if exchange.answer.failure is not None:
            self.failures += 1
            self._notify_failure(exchange)
        return exchange

    def add_closed(self, closed: ClosedConnection, kind: str) -> None:
        """Add a closed connection; `kind` is the reason without its numbers, to count by."""
        self.closed_by_reason[kind] += 1
        self._keep(closed)
        self._notify_failure(closed)

    def add_failure(self, failure: Failure) -> None:
        """Add a failure of a login or of periodic work."""
        self.failures += 1
        self._keep(failure)
        self._notify_failure(failure)

    def mark(self) -> int:
        """Return the id of the newest entry ever added, as `since` for `find`; 0 before the first."""
        return self._last_id

    def find(self, match: Matching | None = None, since: int = 0, limit: int | None = None) -> list[Exchange]:
        """Return the newest `limit` exchanges still held that match and came after a mark, oldest first."""
        newest = itertools.takewhile(lambda entry: entry.id > since, reversed(self.entries))
        return list(itertools.islice(matching(newest, match), limit))[::-1]

    def count(self, match: Matching | None = None, since: int = 0) -> int:
        """Return the number of exchanges still held that match and came after a mark."""
        return len(self.find(match, since))

    def exchanges(self, api_key: int | None = None) -> list[Exchange]:
        """Return the exchanges still held, oldest first, of one API or of all."""
        if api_key is None:
            return self.find()
        parts = (part for each in self.find() for part in (each, each.envelope))
        return [part for part in parts if part is not None and part.api_key == api_key]

    def unmatched(self, since: int = 0) -> list[Exchange]:
        """Return the exchanges that strict stubs did not expect."""
        return self.find(lambda exchange: exchange.unmatched, since)

    def closed(self) -> list[ClosedConnection]:
        """Return the closed connections still held, oldest first."""
        return [entry for entry in self.entries if isinstance(entry, ClosedConnection)]

    def entry(self, entry_id: int) -> Entry | None:
        """Return the entry with this id, if it is still held."""
        held = self.entries
        index = bisect_left(held, entry_id, key=lambda entry: entry.id)
        return held[index] if index < len(held) and held[index].id == entry_id else None

    def counters(self) -> Tree:
        """Return counts since the start: exchanges by API, closed connections by reason, failures, dropped entries."""
        return {
            "exchanges": {self.api_name(key): count for key, count in sorted(self.exchanges_by_api.items())},
            "closed": dict(sorted(self.closed_by_reason.items())),
            "failures": self.failures,
            "dropped": self.dropped,
        }

    def json_lines(self) -> Iterator[str]:
        """Yield one JSON text per entry, oldest first."""
        for entry in self.entries:
            yield json.dumps(entry.to_json(), separators=(",", ":"))

    def _keep(self, entry: Entry) -> None:
        self._last_id = number = next(self.numbers)
        entry.id, entry.node_id = number, self.node_id
        if self.at_broker:
            entry.at_broker = True
        if self.show_secrets and not isinstance(entry, Failure):
            entry.show_secrets = True
        if self.enabled:
            size = entry.bytes_held + ENTRY_OVERHEAD_BYTES
            ring = self._ring
            ring.append((size, entry))
            self.bytes_held += size
            while len(ring) > self.entries_max or (self.bytes_held > self.bytes_max and len(ring) > 1):
                self.bytes_held -= ring.popleft()[0]
                self.dropped += 1
        for listener in self._listeners:
            self._notify(listener, entry)

    def _notify_failure(self, entry: Entry) -> None:
        for listener in self._listeners_to_failures:
            self._notify(listener, entry)

    def _notify(self, listener: Callable[[Entry], None], entry: Entry) -> None:
        try:
            call_of_test(listener, entry)
        except Exception:
            self.unsubscribe(listener)
            match entry:
                case Exchange(answered_ms=at_ms) | ClosedConnection(closed_ms=at_ms) | Failure(at_ms=at_ms):
                    self.add_failure(Failure(at_ms, failure_text()))


def matching(entries: Iterable[Entry], match: Matching | None = None) -> Iterator[Exchange]:
    """Yield the exchanges among entries that match; Envelopes themselves only to a match by their API."""
    wants_envelopes = api_keys.ENVELOPE in getattr(match, "api_keys", ())
    for entry in entries:
        if not isinstance(entry, Exchange):
            continue
        if match is None or match(entry):
            yield entry
        elif wants_envelopes and entry.envelope is not None and match(entry.envelope):
            yield entry.envelope


Then = Callable[[list[Exchange], BaseException | None], None]
"""Called with the exchanges that matched, or with the exception that the match raised."""


def when(journals: Iterable[Journal], match: Matching | None, n: int, then: Then, since: int = 0) -> Callable[[], None]:
    """Call `then` once, as soon as `n` exchanges after the mark `since` match: at once if they are there already.

    `journals` are those of all nodes of a quorum. Return a function that ends the waiting. `then` is called in the
    thread of the event loop; it must not raise.
    """
    journals = list(journals)
    found = sorted((each for journal in journals for each in journal.find(match, since)), key=lambda each: each.id)

    def stop() -> None:
        for journal in journals:
            journal.unsubscribe(listen)

    def listen(entry: Entry) -> None:
        try:
            found.extend(matching([entry], match))
        except BaseException as wrong:
            stop()
            then(found, wrong)
            return
        if len(found) >= n:
            stop()
            then(found, None)

    if len(found) >= n:
        then(found, None)
    else:
        for journal in journals:
            journal.subscribe(listen)
    return stop


def merged(journals: Iterable[Journal], since: int = 0) -> list[Entry]:
    """Return the entries of several nodes in the order in which they were added."""
    held = [[entry for entry in journal.entries if entry.id > since] for journal in journals]
    return list(heapq.merge(*held, key=lambda entry: entry.id))

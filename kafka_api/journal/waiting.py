"""Waiting for a number of matching requests, as a callback that every style of waiting is built on."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from mockraft.kafka_api.journal.exchange import Exchange
from mockraft.kafka_api.journal.journal import Entry, Journal, Matching

Then = Callable[[list[Exchange], Exception | None], None]
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
        if not isinstance(entry, Exchange):
            return
        try:
            if match is not None and not match(entry):
                return
        except Exception as wrong:
            stop()
            then(found, wrong)
            return
        found.append(entry)
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

"""Verification of received requests; a failure reports what was found, the near misses and the journal."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from mockraft.kafka_api.journal.exchange import Exchange
from mockraft.kafka_api.journal.journal import Entry, Matching, matching
from mockraft.kafka_api.journal.lines import began_ms, lines, report
from mockraft.wire.printable import printable

FOUND_SHOWN_MAX = 10

NearMisses = Callable[[Sequence[Exchange]], Iterable[str]]
"""Return descriptions of the exchanges that come nearest to a match."""


class VerificationError(AssertionError):
    """The number of matching requests was not the expected one; the text is a report, with the journal at its end."""

    def __init__(self, findings: str, journal: str) -> None:
        findings = printable(findings)
        super().__init__(f"{findings}\n\n{journal}")
        self.findings = findings
        self.journal = journal
        self.double: object = None
        """The controller or quorum whose journal it is, where that is known."""

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Return what makes a copy; `double` stays in this process."""
        return type(self), (self.findings, self.journal)


def verify(
    entries: Iterable[Entry],
    match: Matching | None = None,
    n: int | None = None,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    near: NearMisses | None = None,
) -> list[Exchange]:
    """Return the matching exchanges if their number is as expected; at least one by default.

    `near` describes near misses. If no controller has any, those that clients sent to simulated brokers must not be too
    many either, unless the match says where. Raise VerificationError, and ValueError for numbers that contradict each
    other.
    """
    least, most = _bounds(n, at_least, at_most)
    entries = list(entries)
    since_ms = began_ms(entries)
    exchanges = list(matching(entries))
    found = list(matching(entries, match))
    # A test that expects none of a client's requests does not mean that brokers may receive them.
    of_clients = getattr(match, "of_clients_at_brokers", None)
    elsewhere = list(matching(entries, of_clients)) if of_clients is not None and not found else []
    if least <= len(found) and (most is None or max(len(found), len(elsewhere)) <= most):
        return found
    parts = [f"{described(match)}: expected {_times(least, most)}, found {len(found)} of {len(exchanges)} requests"]
    if elsewhere:
        parts.append(_at_brokers(elsewhere))
    if found:
        shown = [f"  {text}" for text in lines(found[-FOUND_SHOWN_MAX:], since_ms)]
        parts.append("\n".join([f"found{_of(shown, found)}:", *shown]))
    if len(found) < least and near is not None:
        met = set(map(id, found))
        others = [exchange for exchange in exchanges if id(exchange) not in met]
        if misses := list(map(_indented, near(others))):
            parts.append("\n".join(["nearest other requests:", *misses]))
    if entries:
        journal = "\n".join(["journal:", _indented(report(entries, since_ms))])
    else:
        journal = "The journal is empty: no request was received, or it is switched off."
    raise VerificationError("\n\n".join(parts), journal)


def described(match: Matching | None) -> str:
    """Return a match in a few words, without secrets; of a function its name."""
    to_json = getattr(match, "to_json", None)
    if to_json is None:
        return "any request" if match is None else f"requests for which {getattr(match, '__name__', match)!s} holds"
    tree = to_json(show_secrets=False)
    conditions = {
        **{name: value for name, value in tree.items() if name not in ("api", "where")},
        **tree.get("where", {}),
    }
    texts = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in conditions.items()]
    return " ".join([str(tree.get("api", "any request")), *texts])


def _at_brokers(exchanges: Sequence[Exchange]) -> str:
    counts = Counter(exchange.node_id for exchange in exchanges)
    where = " and ".join(f"{count} did reach broker {node_id}" for node_id, count in sorted(counts.items()))
    fix = " or ".join(f"broker={node_id}" for node_id in sorted(counts))
    return f"no such request reached the controller; {where}: verify with {fix}, or with node= for a controller alone"


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")


def _bounds(n: int | None, at_least: int | None, at_most: int | None) -> tuple[int, int | None]:
    if n is not None:
        if at_least is not None or at_most is not None:
            raise ValueError("n is an exact number: give n, or at_least and at_most")
        at_least = at_most = n
    elif at_least is None and at_most is None:
        at_least = 1
    least = at_least or 0
    if least < 0 or (at_most is not None and at_most < least):
        raise ValueError(f"there is no number that is at least {least} and at most {at_most}")
    return least, at_most


def _times(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least}"
    if least == most:
        return f"exactly {least}" if least else "none"
    return f"{least} to {most}" if least else f"at most {most}"


def _of(shown: Sequence[str], found: Sequence[Exchange]) -> str:
    return f" (the newest {len(shown)} of {len(found)})" if len(shown) < len(found) else ""

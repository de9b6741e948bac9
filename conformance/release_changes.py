"""Changes of the controller between two Kafka releases, from what is known of both.

APIs, features, configuration keys and error codes are read from the releases' own classes; rules are those that the
conformance suite was found to need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from mockraft.conformance.observed import OBSERVED, Observed
from mockraft.conformance.observed import as_text as observed_as_text
from mockraft.releases import Behaviour, Release
from mockraft.releases.changes import NONE, RULE, Change, fact_changes
from mockraft.releases.changes import as_text as facts_as_text

KINDS = {
    RULE: "rules",
    OBSERVED: "observed answers",
    "api": "APIs",
    "feature": "features",
    "metadata.version": "metadata versions",
    "error": "errors",
    "config": "configuration keys",
}
"""The kinds of changes in their order, in the plural."""


def changes(old: Release, new: Release) -> list[Change]:
    """Return the changes between two releases, the rules first. ValueError if `new` is not the later one."""
    if not new.is_since(old.kafka_version) or old is new:
        raise ValueError(f"Kafka {new.name} is not later than Kafka {old.name}: name the older release first")
    return [*_rules(old, new), *fact_changes(old, new)]


def _rules(old: Release, new: Release) -> Iterator[Change]:
    """Yield the rules that only one of them has: the older one may have rules that came to its line later."""
    for rule in Behaviour:
        if new.has(rule) and not old.has(rule):
            yield Change(RULE, rule.rule, NONE, rule.since)
        elif old.has(rule) and not new.has(rule):
            yield Change(RULE, f"not in Kafka {new.name}: {rule.rule}", rule.since, NONE)


def select(kind: str, found: Sequence[Change], answers: Sequence[Observed]) -> tuple[list[Change], list[Observed]]:
    """Return the changes and the answers of one kind of KINDS."""
    return [each for each in found if each.kind == kind], [*answers] if kind == OBSERVED else []


def as_text(found: Sequence[Change], answers: Sequence[Observed], old: str, new: str) -> Iterator[str]:
    """Yield the lines of a terminal: the counts, the rules, the observed answers, and the other kinds of changes."""
    counts = Counter([each.kind for each in found] + [OBSERVED] * len(answers))
    yield f"What the controller of Kafka {new} does differently from that of Kafka {old} ({NONE}: not there):"
    yield "  " + (", ".join(f"{counts[kind]} {KINDS[kind]}" for kind in KINDS if counts[kind]) or "nothing")
    rules = [each for each in found if each.kind == RULE]
    others = [each for each in found if each.kind != RULE]
    parts = (facts_as_text(rules), observed_as_text(answers, old, new) if answers else (), facts_as_text(others))
    for line in chain.from_iterable(parts):
        yield from ("", line) if not line.startswith(" ") else (line,)

"""Changes of the controller between two Kafka releases, from what is known of both.

APIs, features, configuration keys and error codes are read from the releases' own classes; rules are those that the
conformance suite was found to need, with the cases that show them: each ran on Kafka's own controllers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from mockraft.conformance import baseline
from mockraft.conformance.documents.observed import as_rows, observed
from mockraft.conformance.suite import all_cases
from mockraft.conformance.verdicts import Outcome
from mockraft.releases import SUPPORTED, Behaviour, Release, release
from mockraft.releases.changes import NONE, Change, fact_changes
from mockraft.releases.changes import as_markdown as tables


def changes(old: Release, new: Release) -> list[Change]:
    """Return the changes between two releases, the rules first. ValueError if `new` is not the later one."""
    if not new.is_since(old.name) or old is new:
        raise ValueError(f"Kafka {new.name} is not later than Kafka {old.name}: name the older release first")
    return [*_rules(old, new), *fact_changes(old, new)]


def _rules(old: Release, new: Release) -> Iterator[Change]:
    """Yield the rules that only the newer release has; Kafka's own controllers passed the cases."""
    passed = [
        {each.name for each in baseline.read(f"kafka-{of.kafka_version}").verdicts if each.outcome is Outcome.PASSED}
        for of in (old, new)
    ]
    for rule in Behaviour:
        if new.has(rule) and not old.has(rule):
            before = [case.name for case in all_cases() if case.lacks is rule and case.name in passed[0]]
            since = [case.name for case in all_cases() if case.has is rule and case.name in passed[1]]
            yield Change("rule", rule.rule, "; ".join(before) or NONE, "; ".join(since) or NONE)


def as_markdown() -> str:
    """Return the page's part for each pair of neighbours, the newest first."""
    parts = []
    for old, new in reversed([*pairwise(release(version) for version in SUPPORTED)]):
        parts.append(f"## Kafka {old.name} to {new.name}\n")
        parts.append(tables(changes(old, new), old.name, new.name))
        parts.append(as_rows(observed(old, new), old.name, new.name))
    return "\n".join(part for part in parts if part)

"""Changes of the controller between two Kafka releases, from what is known of both.

APIs, features, configuration keys and error codes are read from the releases' own classes; rules are those that the
conformance suite was found to need, with the cases that show them: each ran on Kafka's own controllers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from mockraft.conformance import baseline
from mockraft.conformance.suite import all_cases
from mockraft.conformance.verdicts import Outcome
from mockraft.releases import SUPPORTED, Behaviour, Release, release
from mockraft.wire.schema_files import load, parse

_TABLES = {"topic": "topic", "broker": "broker", "group": "group", "client_metrics": "client metrics"}
_PARTS = ("type", "default", "validator", "internal", "update_mode")
_TITLES = {
    "rule": "Rules",
    "api": "APIs on the controller's listener",
    "feature": "Features",
    "config": "Configuration",
    "error": "Errors",
}
_NONE = "—"


class Change(NamedTuple):
    """One change: its kind, what it is about, how it was and how it is; for a rule the cases that pass on one only."""

    kind: str
    what: str
    before: str
    since: str


def changes(old: Release, new: Release) -> list[Change]:
    """Return the changes between two releases, the rules first. ValueError if `new` is not the later one."""
    if not new.is_since(old.name) or old is new:
        raise ValueError(f"Kafka {new.name} is not later than Kafka {old.name}: name the older release first")
    return [*_rules(old, new), *_apis(old, new), *_features(old, new), *_configs(old, new), *_errors(old, new)]


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
            yield Change("rule", rule.rule, "; ".join(before) or _NONE, "; ".join(since) or _NONE)


def _apis(old: Release, new: Release) -> Iterator[Change]:
    names = {**_api_names(old), **_api_names(new)}
    for key in sorted(old.api_versions.keys() | new.api_versions.keys()):
        yield from _changed("api", names[key], *(_range(of.api_versions.get(key)) for of in (old, new)))


def _features(old: Release, new: Release) -> Iterator[Change]:
    ranges = [of.feature_ranges() for of in (old, new)]
    for name in sorted(ranges[0].keys() | ranges[1].keys()):
        yield from _changed("feature", name, *(_range(each.get(name)) for each in ranges))
    newest = [max(of.metadata_versions.values()) for of in (old, new)]
    levels = [each.default_levels for each in newest]
    for name in sorted(levels[0].keys() | levels[1].keys()):
        yield from _changed("feature", f"{name} of a new log", *(str(each.get(name, 0)) for each in levels))


def _configs(old: Release, new: Release) -> Iterator[Change]:
    for table, title in _TABLES.items():
        rows = [{row["name"]: row for row in of.config_tables[table]} for of in (old, new)]
        for name in sorted(rows[0].keys() | rows[1].keys()):
            yield from _changed("config", f"{title}: `{name}`", *_told([each.get(name) for each in rows]))


def _told(rows: list[Mapping[str, object] | None]) -> list[str]:
    """Return what differs between two rows; of a new or a dropped key its default."""
    known = [row for row in rows if row is not None]
    parts = [part for part in _PARTS if len(known) == 2 and known[0].get(part) != known[1].get(part)] or ["default"]
    return [_NONE if row is None else ", ".join(f"{part} {_value(row.get(part))}" for part in parts) for row in rows]


def _value(of: object) -> str:
    return json.dumps(of) if of in (None, "") or not isinstance(of, str) else of


def _errors(old: Release, new: Release) -> Iterator[Change]:
    for code in sorted(new.error_names):
        yield from _changed("error", str(code), *(_error(of, code) for of in (old, new)))


def _error(of: Release, code: int) -> str:
    return f"{of.error_names[code]}: {of.error_messages[code]}" if code in of.error_names else _NONE


def _changed(kind: str, what: str, before: str, since: str) -> Iterator[Change]:
    if before != since:
        yield Change(kind, what, before, since)


def _range(of: tuple[int, int] | None) -> str:
    return _NONE if of is None else f"{of[0]} to {of[1]}"


@cache
def _api_names(of: Release) -> Mapping[int, str]:
    specs = (parse(load(text)) for path, text in of.specs.items() if path.endswith("Request.json"))
    return {spec.api_key: spec.name.removesuffix("Request") for spec in specs if spec.kind == "request"}


def as_text(found: list[Change]) -> Iterator[str]:
    """Yield the lines of a terminal."""
    for kind, title in _TITLES.items():
        of_kind = [each for each in found if each.kind == kind]
        if of_kind:
            yield f"{title} ({len(of_kind)})"
        for each in of_kind:
            yield f"  {each.what}"
            yield f"    before  {each.before}"
            yield f"    since   {each.since}"


def as_markdown() -> str:
    """Return the page's part for each pair of neighbours, the newest first."""
    parts = []
    for old, new in reversed([*pairwise(release(version) for version in SUPPORTED)]):
        parts.append(f"## Kafka {old.name} to {new.name}\n")
        found = changes(old, new)
        for kind, title in _TITLES.items():
            rows = [f"| {each.what} | {each.before} | {each.since} |" for each in found if each.kind == kind]
            if rows:
                parts.append("\n".join([f"| {title} | {old.name} | {new.name} |", "| --- | --- | --- |", *rows]) + "\n")
    return "\n".join(parts)

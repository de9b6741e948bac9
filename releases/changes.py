"""Differences between two releases: APIs, features, metadata versions, configs, error codes, from Kafka's classes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mockraft.releases.release import MetadataVersion, Release

LINE_LENGTH = 120
"""Columns of a terminal that a change on one line may take."""

NONE = "—"
"""Text of a value that a release does not have."""

RULE = "rule"

TITLES = {
    RULE: "Rules",
    "spec": "Message specs",
    "api": "APIs on the controller's listener",
    "feature": "Features",
    "metadata.version": "Metadata versions",
    "error": "Errors",
    "config": "Configuration",
}
"""Kinds of changes in their order, with a title."""

_TABLES = {"topic": "topic", "broker": "broker", "group": "group", "client_metrics": "client metrics"}
_PART_LENGTH = 160
"""Characters of a part of a key's description; of a longer one the ends are shown."""


class Change(NamedTuple):
    """One change: its kind (a key of TITLES), its subject, and the value of the older and of the newer release.

    A rule has no values: `since` are the releases that it came with, or `before` if only the older one has it.
    """

    kind: str
    what: str
    before: str
    since: str

    def as_tree(self) -> dict[str, str | None]:
        """Return plain data for JSON: a value that a release does not have is None."""
        return {key: None if value == NONE else value for key, value in self._asdict().items()}


def as_text(found: Sequence[Change]) -> Iterator[str]:
    """Yield the lines of a terminal."""
    for kind, title in TITLES.items():
        of_kind = [each for each in found if each.kind == kind]
        if of_kind:
            yield f"{title} ({len(of_kind)})"
        for each in of_kind:
            line = f"  {each.what}: {each.before} → {each.since}"
            if kind == RULE:
                yield f"  {each.what}, since {each.before if each.since == NONE else each.since}"
            elif len(line) <= LINE_LENGTH:
                yield line
            else:
                yield from (f"  {each.what}", f"    {each.before}", f"  → {each.since}")


def as_tables(found: Sequence[Change], old: str, new: str) -> str:
    """Return a list of the rules, and a table for each other kind of change, with the releases above its columns."""
    parts = []
    for kind, title in TITLES.items():
        of_kind = [each for each in found if each.kind == kind]
        if kind == RULE:
            lines = [f"{title}:\n", *(f"- {each.what}" for each in of_kind)]
        else:
            rows = [f"| {each.what} | {each.before} | {each.since} |" for each in of_kind]
            lines = [f"| {title} | {old} | {new} |", "| --- | --- | --- |", *rows]
        if of_kind:
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def fact_changes(old: Release, new: Release) -> list[Change]:
    """Return every difference between the classes of two releases; message specs and rules are not among them."""
    kinds = (_api_changes, _feature_changes, _metadata_version_changes, _error_changes, _config_changes)
    return [change for of_kind in kinds for change in of_kind(old, new)]


def changed(kind: str, what: str, before: str, since: str) -> Iterator[Change]:
    """Yield a change if the two values differ."""
    if before != since:
        yield Change(kind, what, before, since)


def _api_changes(old: Release, new: Release) -> Iterator[Change]:
    """Yield changes of the APIs on the controller's listener: versions from and to."""
    names = {**_api_names(old), **_api_names(new)}
    for key in sorted(old.api_versions.keys() | new.api_versions.keys()):
        yield from changed("api", names.get(key, str(key)), *(_range(of.api_versions.get(key)) for of in (old, new)))


def _feature_changes(old: Release, new: Release) -> Iterator[Change]:
    """Yield changes of features: their levels, what these depend on, and the levels of a new log."""
    ranges = [of.feature_ranges() for of in (old, new)]
    for name in sorted(ranges[0].keys() | ranges[1].keys()):
        yield from changed("feature", name, *(_range(each.get(name)) for each in ranges))
    for name in sorted(old.features.keys() & new.features.keys()):
        needs = [json.dumps(of.features[name].dependencies) for of in (old, new)]
        yield from changed("feature", f"dependencies of {name}", *needs)
    levels = [max(of.metadata_versions.values()).default_levels for of in (old, new)]
    for name in sorted(levels[0].keys() | levels[1].keys()):
        yield from changed("feature", f"{name} of a new log", *(str(each.get(name, 0)) for each in levels))


def _metadata_version_changes(old: Release, new: Release) -> Iterator[Change]:
    """Yield changes of metadata versions; one that both releases have is compared property by property."""
    versions = [{**of.unstable_metadata_versions, **of.metadata_versions} for of in (old, new)]
    known = frozenset[str]().union(*(each.supports for each in versions[1].values()))
    for level in sorted(versions[0].keys() | versions[1].keys()):
        names = [_readiness(of, level) for of in (old, new)]
        yield from changed("metadata.version", str(level), *names)
        if NONE not in names:
            for part, values in _parts(versions[0][level], versions[1][level], known):
                yield from changed("metadata.version", f"{level}: {part}", *values)


def _readiness(of: Release, level: int) -> str:
    if level in of.metadata_versions:
        return of.metadata_versions[level].name
    unstable = of.unstable_metadata_versions.get(level)
    return NONE if unstable is None else f"{unstable.name}, unstable"


def _parts(old: MetadataVersion, new: MetadataVersion, known: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the properties of one level: name, [before, since]. Dropped capabilities are none."""
    sides = (old, new)
    for name in sorted(old.supports & known | new.supports):
        yield name, [_yes_or_no(name in each.supports) for each in sides]
    yield "records may change", [_yes_or_no(each.metadata_changed) for each in sides]
    yield (
        "leader epoch grows when the ISR shrinks",
        [_yes_or_no(each.leader_epoch_bump_on_isr_shrink) for each in sides],
    )
    for name in sorted(old.record_versions.keys() & new.record_versions.keys()):
        yield f"version of {name}", [str(each.record_versions[name]) for each in sides]
    for name in sorted(old.default_levels.keys() & new.default_levels.keys()):
        yield f"{name} of a new log", [str(each.default_levels[name]) for each in sides]


def _yes_or_no(of: bool) -> str:
    return "yes" if of else "no"


def _config_changes(old: Release, new: Release) -> Iterator[Change]:
    """Yield changes of configuration keys: types, defaults, bounds, whether they are internal or can be updated."""
    for table, title in _TABLES.items():
        rows = [{row["name"]: row for row in of.config_tables[table]} for of in (old, new)]
        for name in sorted(rows[0].keys() | rows[1].keys()):
            yield from changed("config", f"{title}: `{name}`", *_compared([each.get(name) for each in rows]))


def _compared(rows: list[Mapping[str, Any] | None]) -> list[str]:
    """Return what differs between two rows, in words; of a new or a dropped key its default."""
    old, new = rows
    if old is None or new is None:
        return [NONE if row is None else f"default {_value(row.get('default'))}" for row in rows]
    parts = [_shortened(*pair) for pair in zip(_row_words(old), _row_words(new), strict=True) if pair[0] != pair[1]]
    return [", ".join(pair[side] for pair in parts) for side in (0, 1)]


def _shortened(old: str, new: str) -> tuple[str, str]:
    """Leave out the middle of long texts, unless it is what differs."""
    cut = [text if len(text) <= _PART_LENGTH else f"{text[:30].strip()} … {text[-30:].strip()}" for text in (old, new)]
    return (old, new) if cut[0] == cut[1] else (cut[0], cut[1])


def _row_words(row: Mapping[str, Any]) -> list[str]:
    return [
        str(row["type"]),
        f"default {_value(row.get('default'))}",
        _validator_words(row.get("validator")),
        "internal" if row.get("internal") else "public",
        row.get("update_mode") or "read-only",
    ]


def _value(of: object) -> str:
    return json.dumps(of) if of in (None, "") or not isinstance(of, str) else of


def _validator_words(of: Mapping[str, Any] | None) -> str:
    """Return the values that a validator allows, without the class that checks them."""
    if of is None:
        return "any value"
    if of["kind"] == "Range":
        low, high = of["min"], of["max"]
        return f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
    if "values" not in of:
        return str(of["says"])
    values = ", ".join(of["values"]) or "any values"
    if of["kind"] == "ValidString":
        return f"one of {values}"
    refused = [word for word in ("empty", "null") if not of[f"{word}_allowed"]]
    return f"list of {values}{''.join(f', not {word}' for word in refused)}"


def _error_changes(old: Release, new: Release) -> Iterator[Change]:
    """Yield changes of error codes: names and texts."""
    for code in sorted(old.error_names.keys() | new.error_names.keys()):
        yield from changed("error", str(code), *(_error(of, code) for of in (old, new)))


def _error(of: Release, code: int) -> str:
    return f"{of.error_names[code]}: {of.error_messages[code]}" if code in of.error_names else NONE


def _range(of: tuple[int, int] | None) -> str:
    return NONE if of is None else f"{of[0]} to {of[1]}"


def _api_names(of: Release) -> Mapping[int, str]:
    found = {}
    for path, text in of.specs.items():
        if path.endswith("Request.json") and (key := re.search(r'^\s*"apiKey":\s*(\d+)', text, re.MULTILINE)):
            found[int(key[1])] = path.rpartition("/")[2].removesuffix("Request.json")
    return found

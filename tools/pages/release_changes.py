"""The page of what each Kafka release changed in its controller."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mockraft.conformance.observed import Observed, cut, named, observed
from mockraft.conformance.release_changes import changes
from mockraft.releases import SUPPORTED, release
from mockraft.releases.changes import as_tables


def as_markdown() -> str:
    """Return the page's part for each pair of neighbours, the newest first."""
    parts = []
    for old, new in reversed([*pairwise(release(version) for version in SUPPORTED)]):
        parts.append(f"## Kafka {old.name} to {new.name}\n")
        parts.append(as_tables(changes(old, new), old.name, new.name))
        parts.append(_rows(observed(old, new), old.name, new.name))
    return "\n".join(part for part in parts if part)


def _rows(found: Sequence[Observed], old: str, new: str) -> str:
    """Return a Markdown table: the request and what differs in both answers; nothing without a difference."""
    if not found:
        return ""
    rows = [f"| Observed | {old} | {new} |", "| --- | --- | --- |"]
    for each in found:
        before = "<br>".join(f"{field}: {_code(named(field, value))}" for field, value, _ in each.differences)
        since = "<br>".join(f"{field}: {_code(named(field, value))}" for field, _, value in each.differences)
        rows.append(f"| {each.case}:<br>{_code(f'{each.api} {each.request}')} | {before} | {since} |")
    return "\n".join(rows) + "\n"


def _code(text: str) -> str:
    shown = cut(text).replace("|", "\\|").replace("`", "'").replace("\n", " ")
    return f"`{shown}`" if shown.strip() else "(empty)"

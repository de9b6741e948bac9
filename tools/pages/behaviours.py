"""The page of how controllers differ: the gate's table."""

from __future__ import annotations

from collections.abc import Iterator

from mockraft.releases.behaviour import METADATA_VERSION, Behaviour, Row
from mockraft.releases.release import SUPPORTED, metadata_version, release

_NAMES = [release(each).name for each in SUPPORTED]

_INTRODUCTION = f"""# How controllers differ

`mockraft serve --release`, `--metadata-version`, `--feature` and `--profile` decide how a controller behaves. This
table has every difference that is not data of a release (APIs, features, configuration keys, error texts), for the
releases {_NAMES[0]} to {_NAMES[-1]}: the member of `mockraft.releases.Behaviour`, when controllers have it, and what it
is.
"""


def as_markdown() -> str:
    """Return the page."""
    return "\n".join((_INTRODUCTION, *_table(), *_proposals()))


def _table() -> Iterator[str]:
    yield from ("| behaviour | when | what |", "| --- | --- | --- |")
    for each in Behaviour:
        if when := _when(each.row):
            yield f"| `{each.name}` | {when} | {each.rule} |"


def _proposals() -> Iterator[str]:
    yield from ("", "## Proposals", "")
    yield "[Profiles](../how-to/faults/proposals.md#-profile) have the texts' behaviour instead of Kafka's."
    yield from ("", "| behaviour | profile | the text | Kafka |", "| --- | --- | --- | --- |")
    for each in Behaviour:
        row = each.row
        if row.proposal:
            yield f"| `{each.name}` | {row.proposal} | {row.rule} | {row.otherwise} |"
    yield ""


def _when(row: Row) -> str:
    """Return the condition by release or level in words."""
    parts = [f"since {' and '.join((*row.backports, row.since))}"] if row.since else []
    parts += [f"before {row.until}"] if row.until else []
    if row.levels is not None:
        feature, low, high = row.levels
        if low:
            parts.append(f"from {feature} {_level(feature, low)}")
        else:
            parts.append(f"up to {feature} {_level(feature, high)}")
    return ", ".join(parts)


def _level(feature: str, level: int) -> str:
    if feature != METADATA_VERSION:
        return str(level)
    oldest = release(SUPPORTED[0])
    known = oldest.metadata_versions.get(level) or metadata_version(level)
    return f"{known.name} ({level})"

"""The page of known differences from Kafka."""

from __future__ import annotations

from mockraft.conformance.known_differences import KnownDifference, known_differences

_TITLES = {"missing": "Missing features", "otherwise": "Different behaviour"}


def as_markdown() -> str:
    """Return the page's part: the entries of each kind."""
    parts = []
    for kind, title in _TITLES.items():
        items = [_item(each) for each in known_differences() if each.kind == kind]
        parts.append(f"## {title}\n\n" + "\n".join(items) + "\n")
    return "\n".join(parts)


def _item(each: KnownDifference) -> str:
    lines = (f"**`{each.id}`** ({each.area})", f"Kafka: {each.kafka}.", f"Here: {each.mockraft}.", f"Why: {each.why}.")
    return "- " + "<br>\n  ".join(lines)

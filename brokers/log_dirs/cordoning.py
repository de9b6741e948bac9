"""The cordoned log directories that a value of `cordoned.log.dirs` selects (KIP-1066)."""

from __future__ import annotations

from collections.abc import Sequence

CORDONED_LOG_DIRS = "cordoned.log.dirs"
ALL = "*"


class CordoningError(ValueError):
    """A value of cordoned.log.dirs that Kafka rejects; the text is Kafka's."""


def cordoned_paths(value: str, paths: Sequence[str]) -> frozenset[str]:
    """Return the cordoned directories among `paths` (log.dirs, offline ones too) by Kafka's LIST value.

    `*` alone selects all of them, an empty value none. Paths are compared as strings, as in Kafka. Raises
    CordoningError for a path that is not in log.dirs, and for `*` beside others.
    """
    entries = [entry.strip() for entry in value.split(",")] if value.strip() else []
    if ALL in entries:
        if len(entries) > 1:
            raise CordoningError(f"When {CORDONED_LOG_DIRS} is set to {ALL}, it must not contain other values")
        return frozenset(paths)
    if unknown := [entry for entry in entries if entry not in paths]:
        raise CordoningError(
            f"All entries in {CORDONED_LOG_DIRS} must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(unknown)}"
        )
    return frozenset(entries)

"""Rows of evidence in `docs/evidence/data`: one line for each Kafka version, so that a new run changes only its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mockraft.wire.spec_files import sort_key

FOLDER = Path(__file__).parents[2] / "docs" / "evidence" / "data"


def read(name: str) -> list[Any]:
    """Return the rows of a file, the oldest version first; none if there is no such file."""
    path = FOLDER / name
    rows: list[Any] = json.loads(path.read_text()) if path.exists() else []
    return rows


def keep(name: str, row: Mapping[str, object]) -> None:
    """Write a row in the place of the older one of its `kafka` version."""
    rows = {each["kafka"]: each for each in read(name)} | {row["kafka"]: row}
    lines = ",\n".join(json.dumps(rows[version]) for version in sorted(rows, key=sort_key))
    (FOLDER / name).write_text(f"[\n{lines}\n]\n")

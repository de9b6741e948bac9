"""The list of intended deviations of mockraft from Kafka, `known_differences.toml`, read and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

KINDS = ("missing", "otherwise")
_KEYS = {"id", "area", "kind", "kafka", "mockraft", "why"}


@dataclass(frozen=True)
class KnownDifference:
    """One entry; its fields are those of the file, which its header explains."""

    id: str
    area: str
    kind: Literal["missing", "otherwise"]
    kafka: str
    mockraft: str
    why: str


@cache
def known_differences() -> tuple[KnownDifference, ...]:
    """Return all entries, in the file's order. Raises ValueError for an entry that breaks the rules of the file."""
    text = resources.files("mockraft.conformance").joinpath("known_differences.toml").read_text(encoding="utf-8")
    return parse(text)


def parse(text: str) -> tuple[KnownDifference, ...]:
    """Read the entries of a file. Raises ValueError with the fault."""
    found: dict[str, KnownDifference] = {}
    for entry in tomllib.loads(text)["difference"]:
        name = entry.get("id", "an entry without an id")
        if wrong := set(entry) ^ _KEYS:
            raise ValueError(f"known_differences.toml: {name}: missing or unknown: {', '.join(sorted(wrong))}")
        if entry["kind"] not in KINDS:
            raise ValueError(f"known_differences.toml: {name}: kind is one of {', '.join(KINDS)}")
        if name in found:
            raise ValueError(f"known_differences.toml: {name} is there twice")
        found[name] = KnownDifference(**entry)
    return tuple(found.values())

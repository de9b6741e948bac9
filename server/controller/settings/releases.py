"""Offers of other Kafka releases' controllers: version ranges of their APIs and levels of their features.

Source: releases.json, which documents how it was read from Kafka.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypedDict

Range = tuple[int, int]


class Offer(NamedTuple):
    """An offer that replaces the default: a release's, and APIs by key, None to hide the API."""

    release: str | None = None
    ranges: Mapping[int, Range | None] = {}


class _Release(TypedDict):
    api_versions: Mapping[str, Range]
    features: Mapping[str, Range]


@cache
def _table() -> Mapping[str, _Release]:
    table: Mapping[str, _Release] = json.loads(Path(__file__).with_name("releases.json").read_text())["releases"]
    return table


def release_of(text: str) -> str:
    """Return the release of a version ("3.9", "3.9.1"). ValueError lists the known ones."""
    release = ".".join(text.removeprefix("v").split(".")[:2])
    if release not in _table():
        raise ValueError(f"as_version={text!r}: known releases are {', '.join(_table())}")
    return release


@cache
def api_ranges(release: str) -> Mapping[int, Range]:
    """Return the version range of every API that a controller of the release offers, by API key."""
    rows = _table()[release]["api_versions"]
    return {int(api_key): (low, high) for api_key, (low, high) in rows.items()}


def feature_ranges(release: str) -> Mapping[str, Range]:
    """Return the level range of every feature that a controller of the release supports."""
    return {name: (low, high) for name, (low, high) in _table()[release]["features"].items()}


def read_ranges(said: Mapping[str, object] | Mapping[int, object]) -> dict[int, Range | None]:
    """Parse ranges by API key: keys are names or numbers, values `(1, 2)`, "1-2", "1" or "off" (None).

    ValueError names the invalid part.
    """
    from mockraft.wire import api_keys

    by_name = {name: api_key for api_key, name in api_keys.NAMES.items()}
    ranges: dict[int, Range | None] = {}
    for api, value in said.items():
        text = str(api)
        api_key = int(text) if text.isdecimal() else by_name.get(text)
        if api_key is None:
            raise ValueError(f"api_versions: there is no API {text}")
        ranges[api_key] = _range(text, value)
    return ranges


def _range(api: str, value: object) -> Range | None:
    if value is None or value == "off":
        return None
    parts = [str(part) for part in value] if isinstance(value, list | tuple) else str(value).split("-")
    if not all(part.isdecimal() for part in parts) or not 1 <= len(parts) <= 2:
        raise ValueError(f"api_versions: {api}={value}: must be MIN-MAX, as in 0-1, or off")
    low, high = int(parts[0]), int(parts[-1])
    if not low <= high < 1 << 15:
        raise ValueError(f"api_versions: {api}={value}: needs MIN <= MAX <= 32767")
    return low, high

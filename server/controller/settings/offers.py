"""The contents of ApiVersions: the APIs and features of a release, and single APIs that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mockraft.releases import Release
from mockraft.wire import api_keys

Range = tuple[int, int]


class Offer(NamedTuple):
    """An offer: a release's, with other versions of APIs by key, None to hide the API."""

    release: Release
    ranges: Mapping[int, Range | None] = {}


def read_ranges(given: Mapping[str, object] | Mapping[int, object]) -> dict[int, Range | None]:
    """Parse ranges by API key: keys are names or numbers, values `(1, 2)`, "1-2", "1" or "off" (None).

    ValueError names the invalid part.
    """
    by_name = {name: api_key for api_key, name in api_keys.NAMES.items()}
    ranges: dict[int, Range | None] = {}
    for api, value in given.items():
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

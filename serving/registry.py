"""The table of the APIs of a listener."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from mockraft.serving.api import Api

AnyApi = TypeVar("AnyApi", bound=Api[Any, Any])


def by_api_key(apis: Iterable[AnyApi]) -> dict[int, AnyApi]:
    """Return the APIs by key, in the order of the keys. ValueError for a key that is there twice or wrong classes."""
    table: dict[int, AnyApi] = {}
    for api in sorted(apis, key=lambda each: each.api_key):
        if api.api_key in table:
            raise ValueError(f"duplicate API key {api.api_key}: {api.request.__name__}")
        if api.response.api_key != api.api_key:
            raise ValueError(f"{api.response.__name__} is not the response of {api.request.__name__}")
        table[api.api_key] = api
    return table

"""The APIs of a broker's client listener: what is in this list is served, and ApiVersions says so."""

from __future__ import annotations

from mockraft.brokers.apis import api_versions, metadata
from mockraft.brokers.apis.api import Api

APIS: dict[int, Api] = {
    api.api_key: api
    for api in sorted(
        (
            api_versions.API,
            metadata.API,
        ),
        key=lambda api: api.api_key,
    )
}
"""By API key, in the order of the keys."""

"""The APIs of a broker's client listener: what is in this list is served, and ApiVersions says so."""

from __future__ import annotations

from mockraft.brokers.apis import alter_replica_log_dirs, api_versions, describe_log_dirs, metadata
from mockraft.brokers.apis.api import Api

APIS: dict[int, Api] = {
    api.api_key: api
    for api in sorted(
        (
            alter_replica_log_dirs.API,
            api_versions.API,
            describe_log_dirs.API,
            metadata.API,
        ),
        key=lambda api: api.api_key,
    )
}
"""By API key, in the order of the keys."""

"""The APIs of a broker's client listener: ApiVersions offers exactly this list."""

from __future__ import annotations

from mockraft.brokers.apis import (
    alter_configs,
    alter_replica_log_dirs,
    api_versions,
    consumer_groups,
    delete_records,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    describe_user_scram_credentials,
    fetch,
    find_coordinator,
    forwarded,
    group_admin,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    offsets,
    produce,
    refused,
    transaction_admin,
    transactions,
    txn_offset_commit,
    write_txn_markers,
)
from mockraft.brokers.apis.api import AnyApi

ALL: tuple[AnyApi, ...] = (
    *alter_configs.APIS,
    *consumer_groups.APIS,
    *forwarded.APIS,
    *group_admin.APIS,
    *offsets.APIS,
    *refused.APIS,
    *transaction_admin.APIS,
    *transactions.APIS,
    alter_replica_log_dirs.API,
    api_versions.API,
    describe_client_quotas.API,
    describe_cluster.API,
    describe_configs.API,
    describe_log_dirs.API,
    describe_topic_partitions.API,
    describe_user_scram_credentials.API,
    list_config_resources.API,
    delete_records.API,
    fetch.API,
    find_coordinator.API,
    list_offsets.API,
    metadata.API,
    offset_for_leader_epoch.API,
    produce.API,
    txn_offset_commit.API,
    write_txn_markers.API,
)
APIS: dict[int, AnyApi] = {api.api_key: api for api in sorted(ALL, key=lambda api: api.api_key)}
"""By API key, in the order of the keys."""

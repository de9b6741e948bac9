"""The APIs of the controller listener: what is in this list is handled, and ApiVersions says so."""

from mockraft.server.apis import (
    allocate_producer_ids,
    alter_client_quotas,
    alter_partition,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    api_versions,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_quorum,
    describe_user_scram_credentials,
    elect_leaders,
    envelope,
    fetch,
    fetch_snapshot,
    incremental_alter_configs,
    list_partition_reassignments,
    sasl_authenticate,
    sasl_handshake,
    unregister_broker,
    update_features,
)
from mockraft.server.apis.api import Api

APIS: dict[int, Api] = {
    module.API.api_key: module.API
    for module in (
        fetch,
        sasl_handshake,
        api_versions,
        create_topics,
        delete_topics,
        sasl_authenticate,
        create_partitions,
        elect_leaders,
        incremental_alter_configs,
        alter_partition_reassignments,
        list_partition_reassignments,
        alter_client_quotas,
        describe_user_scram_credentials,
        alter_user_scram_credentials,
        describe_quorum,
        alter_partition,
        update_features,
        envelope,
        fetch_snapshot,
        describe_cluster,
        broker_registration,
        broker_heartbeat,
        unregister_broker,
        allocate_producer_ids,
        controller_registration,
        assign_replicas_to_dirs,
    )
}
"""By API key, in the order of the keys."""

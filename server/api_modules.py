"""The APIs that controllers and simulated brokers serve; tables without imports, as stubs are below the APIs."""

MODULES = {
    1: "fetch",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    36: "sasl_authenticate",
    37: "create_partitions",
    38: "create_delegation_token",
    39: "renew_delegation_token",
    40: "expire_delegation_token",
    41: "describe_delegation_token",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    52: "vote",
    53: "begin_quorum_epoch",
    54: "end_quorum_epoch",
    55: "describe_quorum",
    56: "alter_partition",
    57: "update_features",
    58: "envelope",
    59: "fetch_snapshot",
    60: "describe_cluster",
    62: "broker_registration",
    63: "broker_heartbeat",
    64: "unregister_broker",
    67: "allocate_producer_ids",
    70: "controller_registration",
    73: "assign_replicas_to_dirs",
    80: "add_raft_voter",
    81: "remove_raft_voter",
    82: "update_raft_voter",
    94: "unregister_controller",
}
"""Names of the modules in `apis` by API key, in ascending order."""

OF_SIMULATED_BROKERS = frozenset(
    (*range(4), *range(8, 52), 55, 57, 60, 61, *range(64, 67), 68, 69, *range(74, 82), *range(83, 95))
)
"""API keys of the brokers' own listeners (`mockraft.brokers.apis.registry`)."""

"""The APIs of the controller listener: every API in this table is handled and offered in ApiVersions.

The module of an API, and with it the messages that only it uses, is imported with the first request for it: most
controllers get requests for a few of them, and importing them all is a tenth of the time until a controller answers.
"""

from mockraft.server.apis.api import AnyApi, later

_MODULES = {
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
"""Names of the modules in this folder by API key, in ascending order."""

APIS: dict[int, AnyApi] = {api_key: later(f"mockraft.server.apis.{name}") for api_key, name in _MODULES.items()}
"""APIs by API key, in ascending order."""

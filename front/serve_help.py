"""What `mockraft serve --help` says, and its options in groups: there are too many for one list."""

from __future__ import annotations

from mockraft.grouped_help import GroupedCommand

ABOUT = """Run a Kafka KRaft controller, or a quorum of several, that brokers can use as their only one.

Prints one line on stdout once it accepts connections:

\b
  mockraft ready bootstrap=127.0.0.1:9093 cluster_id=… node_id=3000 admin=off

A broker joins it with that cluster id and three properties:

\b
  controller.quorum.bootstrap.servers=127.0.0.1:9093
  controller.listener.names=CONTROLLER
  process.roles=broker
  (kafka-storage.sh format -t CLUSTER_ID -c broker.properties; kafka-server-start.sh broker.properties)

Without --data-dir the log is in memory, and brokers must not outlive the controller: a broker stops when its
controller comes back with a shorter log. SIGTERM and SIGINT end the controller with exit code 0.

\b
  mockraft serve --port 0 --brokers 3              any free port, three simulated brokers that serve clients
  mockraft serve --data-dir controller-data        the log stays, in Kafka's own format
  mockraft serve --controllers 3                   a quorum in one process
  mockraft serve --metadata-version 3.9            for older brokers
  mockraft serve --stubs stubs.yaml                errors, delays, silence and other things on purpose
  mockraft serve --as-version 3.9                  as a controller of Kafka 3.9 says it is
  mockraft serve --admin-port 8080                 the admin API and the live page at 127.0.0.1:8080

Exit codes: 2 a bad option, 3 the address cannot be listened on, 4 the data directory cannot be used.
"""

GROUPS = {
    "Listening": (
        "host",
        "port",
        "advertised_host",
        "advertised_port",
        "controller_listener_name",
    ),
    "Things on purpose": ("stubs", "initial_state"),
    "Admin API": (
        "admin_port",
        "admin_host",
        "admin_token_file",
        "admin_insecure",
        "virtual_clock",
    ),
    "Cluster": (
        "cluster_id",
        "node_id",
        "metadata_version",
        "as_version",
        "api_versions",
        "brokers",
        "brokers_port",
        "session_timeout_ms",
        "num_partitions",
        "default_replication_factor",
        "min_insync_replicas",
        "seed",
    ),
    "Log": (
        "data_dir",
        "metadata_log_fsync",
        "metadata_log_segment_bytes",
        "metadata_log_max_record_bytes_between_snapshots",
        "metadata_log_max_snapshot_interval_ms",
        "metadata_max_retention_bytes",
        "metadata_max_idle_interval_ms",
    ),
    "Quorum": (
        "controllers",
        "initial_controllers",
        "controller_quorum_voters",
        "controller_quorum_bootstrap_servers",
    ),
    "Security": (
        "security_protocol",
        "ssl_certificate_file",
        "ssl_key_file",
        "ssl_truststore_file",
        "ssl_client_auth",
        "ssl_principal_mapping_rules",
        "sasl_enabled_mechanisms",
        "plain_users_file",
        "scram_users_file",
        "client_config_file",
        "connections_max_reauth_ms",
        "authentication_timeout_ms",
        "unauthenticated_connections_max",
    ),
    "Authorisation": (
        "authorizer",
        "super_users",
        "allow_everyone_if_no_acl_found",
    ),
    "Delegation tokens": (
        "delegation_token_secret_key",
        "delegation_token_max_lifetime_ms",
        "delegation_token_expiry_time_ms",
        "delegation_token_expiry_check_interval_ms",
    ),
    "Proposals": (
        "profile",
        "schemas",
    ),
    "Limits": (
        "frame_bytes_max",
        "connections_max",
        "connections_max_idle_ms",
        "write_bytes_max",
        "write_stuck_ms",
        "journal_entries_max",
    ),
    "Logs": (
        "log_level",
        "log_json",
        "help",
    ),
}
"""Parameters of `serve` by the heading that they stand under, in the order in which they are shown."""


class ServeCommand(GroupedCommand):
    """`serve`, whose help has a list of options for each of `GROUPS`."""

    groups = GROUPS

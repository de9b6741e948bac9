"""Keyword options of `Controller`, `Quorum` and simulated brokers, for type checkers.

A test compares the names with the fields of `ControllerConfig` and `BrokerConfig`, which check the values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from mockraft.brokers.disks.disk import Disk
    from mockraft.kafka_api.authorization.authorizer import Authorizer
    from mockraft.kafka_api.clock import Clock
    from mockraft.kafka_api.security import ServerSecurity
    from mockraft.server.controller.settings.policies import AlterConfigPolicy, CreateTopicPolicy
    from mockraft.server.stubs.stub import Stub
    from mockraft.twin.history import History, Point
    from mockraft.wire.client_security import ClientSecurity
    from mockraft.wire.message import MessageLookup
    from mockraft.wire.overlay import Overlay
    from mockraft.wire.scram import ScramUser


TEST_HEARTBEAT_INTERVAL_MS = 100
"""Heartbeat interval of brokers in tests, in real time; they wait as long after a refused request (Kafka: 2,000)."""


class ConfigOptions(TypedDict, total=False):
    """Options that describe the controller: the fields of `ControllerConfig`, proposals and a saved state."""

    profile: str | Iterable[str]
    schemas: str | Path | Iterable[str | Path]
    state: str | Path | None
    twin_of: str | Path | History | None
    twin_at: Point
    node_id: int
    cluster_id: str
    host: str
    port: int
    advertised_host: str | None
    advertised_port: int | None
    controller_listener_name: str
    data_dir: str | Path | None
    initial_state: Path | None
    seed: int | None
    metadata_version: int | str
    kraft_version: int | None
    features: Mapping[str, int]
    unstable_feature_versions_enable: bool
    unstable_api_versions_enable: bool
    release: str
    as_version: str | None
    api_versions: Mapping[str, object] | Mapping[int, object]
    controller_quorum_voters: str | None
    initial_controllers: str | None
    controller_quorum_bootstrap_servers: str | None
    controller_quorum_election_timeout_ms: int
    controller_quorum_fetch_timeout_ms: int
    controller_quorum_election_backoff_max_ms: int
    controller_quorum_request_timeout_ms: int
    controller_quorum_retry_backoff_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    metadata_max_idle_interval_ms: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    unclean_leader_election_interval_ms: int
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_max_retention_bytes: int
    metadata_log_segment_bytes: int
    metadata_log_fsync: bool
    num_partitions: int
    default_replication_factor: int
    min_insync_replicas: int
    delete_topic_enable: bool
    server_properties: Mapping[str, str]
    proposals: frozenset[str]
    overlay: Overlay | None
    create_topic_policy: CreateTopicPolicy | None
    alter_config_policy: AlterConfigPolicy | None
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int
    authorizer: bool
    super_users: str
    allow_everyone_if_no_acl_found: bool
    delegation_token_secret_key: str | None
    delegation_token_max_lifetime_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_expiry_check_interval_ms: int
    security_protocol: str
    ssl_certificate_file: Path | None
    ssl_key_file: Path | None
    ssl_truststore_file: Path | None
    ssl_client_auth: str
    ssl_principal_mapping_rules: str
    sasl_enabled_mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str]
    scram_users: tuple[ScramUser, ...]
    client_security: ClientSecurity | None
    sasl_server_max_receive_size: int
    connections_max_reauth_ms: int
    connection_failed_authentication_delay_ms: int
    show_secrets: bool
    authentication_timeout_ms: int
    unauthenticated_connections_max: int
    frame_bytes_max: int
    request_elements_max: int
    received_bytes_max: int
    write_bytes_max: int
    write_stuck_ms: int
    connections_max: int
    connections_max_idle_ms: int
    journal_entries_max: int
    journal_bytes_max: int


class ControllerOptions(ConfigOptions, total=False):
    """Options of `Controller` and `Quorum`: those of the controller, and those of the test and its brokers."""

    clock: Clock | Literal["virtual"] | None
    brokers: int
    brokers_port: int
    twin_brokers: Literal["live", "all"] | None
    broker_heartbeat_interval_ms: int | None
    strict: bool
    stubs: str | Path | Iterable[Stub]
    admin_port: int | None


class BrokerConfigOptions(TypedDict, total=False):
    """Options that describe a simulated broker: its listener, and the fields of `BrokerConfig`."""

    log_dir_paths: tuple[str, ...]
    host: str
    port: int | None
    rack: str | None
    previous_broker_epoch: int
    features: Mapping[str, tuple[int, int]]
    controller_listener_name: str
    security: ClientSecurity | None
    listener_security: ServerSecurity
    authorizer: Authorizer | None
    messages: MessageLookup
    heartbeat_interval_ms: int
    session_timeout_ms: int
    registration_timeout_ms: int
    log_dir_failure_timeout_ms: int
    offline_log_dirs: Mapping[str, str]
    cordoned_log_dirs: str
    fenced_until_assigned: bool
    io_errors: Literal["kafka", "kip-18"]
    restart_partitions_elsewhere: bool
    raft_request_timeout_ms: int
    recovery_ms: int
    serve_clients: bool
    properties: Mapping[str, str]
    open_disk: Callable[[str], Disk]


class BrokerOptions(BrokerConfigOptions, total=False):
    """Options of `SimulatedBroker.joining`."""

    seed: int | None
    log_dirs: Sequence[str | os.PathLike[str]]
    metadata_log_dir: str | os.PathLike[str] | None
    format_missing: bool


class StartOptions(BrokerOptions, total=False):
    """Options of `start_broker`."""

    wait: Literal["registered", "running"] | None
    timeout_s: float

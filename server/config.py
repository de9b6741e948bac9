"""What one controller is told at its start."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.server.rules import Rule

if TYPE_CHECKING:
    from mockraft.server.controller.policies import AlterConfigPolicy, CreateTopicPolicy
    from mockraft.server.controller.releases import Range
    from mockraft.server.controller.voter_set import VoterSet
    from mockraft.wire.overlay import Overlay

from mockraft.server import security_options
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.scram import ScramUser

CLUSTER_ID = "bW9ja3JhZnQtY2x1c3Rlcg"
"""Cluster id of a controller that was given none: a valid Kafka uuid, the same each time."""

METADATA_VERSION_MIN = 7
METADATA_VERSION_MAX = 30

BOUNDS = {
    "node_id": (0, 2**31 - 1),
    "port": (0, 65_535),
    "advertised_port": (1, 65_535),
    "metadata_version": (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    "kraft_version": (0, 1),
    "journal_entries_max": (0, 2**63 - 1),
    "metadata_max_idle_interval_ms": (0, 2**63 - 1),
    "leader_imbalance_check_interval_seconds": (0, 2**63 - 1),
    "unclean_leader_election_interval_ms": (0, 2**63 - 1),
    "metadata_log_max_snapshot_interval_ms": (0, 2**63 - 1),
    "metadata_max_retention_bytes": (0, 2**63 - 1),
    "frame_bytes_max": (64, 2**31 - 1),
    "connections_max_reauth_ms": (0, 2**63 - 1),
    "connection_failed_authentication_delay_ms": (0, 2**31 - 1),
}
"""Lowest and highest value of a number; of those that are not here, 1 is the lowest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Every option of a controller, named as in Kafka's configuration where Kafka has it.

    Times are milliseconds, sizes bytes. `metadata_version` is a feature level (7 is 3.3-IV3, 30 is 4.3-IV0).
    `port` is the port it listens on, 0 any free one; `advertised_host` and `advertised_port` (None: the ones it
    listens on) go into the VotersRecord and so are where brokers connect to. `data_dir` None keeps the log in memory.
    `initial_state` is a saved state, or a snapshot of Kafka's, that a new log begins with.
    Without `delegation_token_secret_key` there are no delegation tokens. `rules` are those of proposals that hold in
    place of Kafka's, `overlay` the messages and records that it speaks beside Kafka's or in their place.
    `super_users` are principals with semicolons between (User:admin;User:broker); naming any turns the authorizer on,
    which without them allows what ACLs allow.

    `as_version` ("3.9") has ApiVersions and features be those of another release's controllers, and `api_versions`
    has single APIs, by key, offer other versions, or none (None).

    `ssl_…_file` are PEM files. `plain_users` are passwords by name; `scram_users` are written into a new log, as
    `kafka-storage format --add-scram` does. There are no users unless they are given. `client_security` is how this
    process speaks to controllers itself; None is how it listens, as far as that goes without a login.

    A controller is a quorum of its own unless one of these says otherwise: `controller_quorum_voters`, as
    `ID@HOST:PORT,…`, are the voters at kraft.version 0; `initial_controllers`, as `ID@HOST:PORT:DIRECTORY_ID,…`, those
    that a new quorum begins with at kraft.version 1 (`kafka-storage format --initial-controllers`);
    `controller_quorum_bootstrap_servers`, as `HOST:PORT,…`, are asked for the leader, also by who is no voter.
    """

    node_id: int = 3000
    cluster_id: str = CLUSTER_ID
    host: str = "127.0.0.1"
    port: int = 9093
    advertised_host: str | None = None
    advertised_port: int | None = None
    controller_listener_name: str = "CONTROLLER"
    data_dir: Path | None = None
    initial_state: Path | None = None
    seed: int | None = None

    metadata_version: int = METADATA_VERSION_MAX
    kraft_version: int = 1
    as_version: str | None = None
    api_versions: "Mapping[int, Range | None]" = field(default_factory=dict)

    controller_quorum_voters: str | None = None
    initial_controllers: str | None = None
    controller_quorum_bootstrap_servers: str | None = None
    controller_quorum_election_timeout_ms: int = 1_000
    controller_quorum_fetch_timeout_ms: int = 2_000
    controller_quorum_election_backoff_max_ms: int = 1_000
    controller_quorum_request_timeout_ms: int = 2_000
    controller_quorum_retry_backoff_ms: int = 20

    session_timeout_ms: int = 9_000
    heartbeat_interval_ms: int = 2_000
    metadata_max_idle_interval_ms: int = 500
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300
    unclean_leader_election_interval_ms: int = 300_000
    metadata_log_max_record_bytes_between_snapshots: int = 20_971_520
    metadata_log_max_snapshot_interval_ms: int = 3_600_000
    metadata_max_retention_bytes: int = 104_857_600
    metadata_log_segment_bytes: int = 1_073_741_824
    metadata_log_fsync: bool = False

    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    delete_topic_enable: bool = True

    rules: frozenset[Rule] = frozenset()
    overlay: "Overlay | None" = None

    create_topic_policy: "CreateTopicPolicy | None" = None
    alter_config_policy: "AlterConfigPolicy | None" = None
    controller_quota_window_num: int = 11
    controller_quota_window_size_seconds: int = 1

    authorizer: bool = False
    super_users: str = ""
    allow_everyone_if_no_acl_found: bool = False

    delegation_token_secret_key: str | None = field(default=None, repr=False)
    delegation_token_max_lifetime_ms: int = 604_800_000
    delegation_token_expiry_time_ms: int = 86_400_000
    delegation_token_expiry_check_interval_ms: int = 3_600_000

    security_protocol: str = "PLAINTEXT"
    ssl_certificate_file: Path | None = None
    ssl_key_file: Path | None = None
    ssl_truststore_file: Path | None = None
    ssl_client_auth: str = "none"
    ssl_principal_mapping_rules: str = "DEFAULT"
    sasl_enabled_mechanisms: tuple[str, ...] = ()
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    scram_users: tuple[ScramUser, ...] = ()
    client_security: ClientSecurity | None = None
    sasl_server_max_receive_size: int = 524_288
    connections_max_reauth_ms: int = 0
    connection_failed_authentication_delay_ms: int = 100
    authentication_timeout_ms: int = 30_000
    unauthenticated_connections_max: int = 4_096

    frame_bytes_max: int = 104_857_600
    received_bytes_max: int = 536_870_912
    write_bytes_max: int = 67_108_864
    write_stuck_ms: int = 60_000
    connections_max: int = 50_000
    connections_max_idle_ms: int = 600_000
    journal_entries_max: int = 20_000
    journal_bytes_max: int = 67_108_864

    def __post_init__(self) -> None:
        if not self.cluster_id or any(character.isspace() for character in self.cluster_id):
            raise ValueError(f"cluster_id={self.cluster_id!r}: a cluster id is a text without spaces")
        for user in self.super_user_principals:
            if not all(user.partition(":")):
                about = f"{user} is not Type:name, as in User:admin;User:broker"
                raise ValueError(f"super_users={self.super_users!r}: {about}")
        for option in fields(self):
            value = getattr(self, option.name)
            lowest, highest = BOUNDS.get(option.name, (1, 2**63 - 1))
            if type(value) is int and option.name != "seed" and not lowest <= value <= highest:
                raise ValueError(f"{option.name}={value}: it must be {lowest} to {highest}")
        if self.as_version is not None:
            self._check_release(self.as_version)
        security_options.check(self)
        if self.controller_quorum_voters and self.initial_controllers:
            raise ValueError("controller_quorum_voters and initial_controllers exclude each other")
        if not self.is_alone:
            self._check_quorum()

    @property
    def has_authorizer(self) -> bool:
        """Whether requests are checked against super users and ACLs."""
        return self.authorizer or bool(self.super_users)

    @property
    def super_user_principals(self) -> frozenset[str]:
        """The super users, each `Type:name`."""
        users = (user.strip() for user in self.super_users.split(";"))
        return frozenset(user for user in users if user)

    @property
    def own_client_security(self) -> ClientSecurity | None:
        """How this process speaks to controllers; None for PLAINTEXT, and where nobody said as whom to log in."""
        if self.client_security is not None or self.security_protocol != "SSL":
            return self.client_security
        return ClientSecurity("SSL", self.ssl_truststore_file, self.ssl_certificate_file, self.ssl_key_file)

    @property
    def voter_host(self) -> str:
        """Host that brokers connect to."""
        return self.host if self.advertised_host is None else self.advertised_host

    @property
    def voter_port(self) -> int:
        """Port that brokers connect to."""
        return self.port if self.advertised_port is None else self.advertised_port

    @property
    def is_alone(self) -> bool:
        """Whether it is a quorum of its own."""
        return not (
            self.controller_quorum_voters or self.initial_controllers or self.controller_quorum_bootstrap_servers
        )

    @property
    def configured_voters(self) -> "VoterSet":
        """The voters that the configuration names, none where it names bootstrap servers only."""
        from mockraft.server.controller.voter_set import VoterSet, read_voters

        text = self.controller_quorum_voters or self.initial_controllers
        return read_voters(text, self.controller_listener_name) if text else VoterSet()

    @property
    def initial_kraft_version(self) -> int:
        """The kraft.version before the log says one."""
        if self.controller_quorum_voters:
            return 0
        return 1 if self.initial_controllers else self.kraft_version

    @property
    def initial_directory_id(self) -> bytes | None:
        """The directory id that `initial_controllers` has for this node."""
        node = self.configured_voters.nodes.get(self.node_id) if self.initial_controllers else None
        return node.key.directory_id if node else None

    @property
    def bootstrap_addresses(self) -> list[tuple[str, int]]:
        """The addresses in `controller_quorum_bootstrap_servers`."""
        from mockraft.server.controller.voter_set import read_addresses

        return read_addresses(self.controller_quorum_bootstrap_servers or "")

    def _check_release(self, as_version: str) -> None:
        from mockraft.server.controller.releases import feature_ranges, release_of

        low, high = feature_ranges(release_of(as_version))["metadata.version"]
        if not low <= self.metadata_version <= high:
            about = f"controllers of Kafka {as_version} know metadata.version {low} to {high}"
            raise ValueError(f"metadata_version={self.metadata_version}: {about}")

    def _check_quorum(self) -> None:
        """ValueError where the options of a quorum cannot be read, or lack what their kind needs."""
        known = [node.key.directory_id != bytes(16) for node in self.configured_voters.nodes.values()]
        if self.initial_controllers and not all(known):
            raise ValueError(f"initial_controllers={self.initial_controllers!r}: each needs its :DIRECTORY_ID")
        if self.controller_quorum_voters and any(known):
            raise ValueError(
                f"controller_quorum_voters={self.controller_quorum_voters!r}: directory ids belong into"
                " initial_controllers"
            )
        _ = self.bootstrap_addresses

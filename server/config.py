"""Options of one controller: the fields of `ControllerConfig`, each with its bounds and help text."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.kafka_api.options import INT_MAX, PORT_MAX, check_option, option, options_of
from mockraft.kafka_api.security import (
    MECHANISMS,
    SECURITY_PROTOCOLS,
    SSL_CLIENT_AUTH,
    ServerSecurity,
    own_client_security,
    uses_sasl,
)
from mockraft.releases import DEFAULT, SUPPORTED, Behaviour, metadata_version, release
from mockraft.server import server_properties
from mockraft.server.controller.quorum.voter_set import VoterSet, read_addresses, read_voters
from mockraft.server.controller.settings import features
from mockraft.wire.scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN, ScramUser

if TYPE_CHECKING:
    from mockraft.kafka_api.authorization.authorizer import Authorizer
    from mockraft.server.controller.settings.offers import Range
    from mockraft.server.controller.settings.policies import AlterConfigPolicy, CreateTopicPolicy
    from mockraft.wire.client_security import ClientSecurity
    from mockraft.wire.overlay import Overlay

CLUSTER_ID = "bW9ja3JhZnQtY2x1c3Rlcg"
"""Cluster id of a controller that was given none: a valid Kafka uuid, the same each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Every option of a controller, named as in Kafka's configuration where Kafka has it.

    Times are milliseconds, sizes bytes. `release` ("3.9") is the Kafka release whose controller it is; `api_versions`
    changes the offered versions of single APIs, by key; None hides the API. `metadata_version` is a feature level (7 is
    3.3-IV3, 27 is 4.1-IV1), 0 the newest of the release; `features` are levels of a new log that are not its defaults,
    and `unstable_feature_versions_enable` allows levels that are not ready in that release, which ApiVersions names
    only with `unstable_api_versions_enable`. `kraft_version` None is 1, or 0 with configured voters and for releases
    before 3.9. `port` is the port to listen on, 0 any free one; `advertised_host` and `advertised_port` (None: the
    ones it listens on) go into the VotersRecord, so brokers connect to them. `data_dir` None keeps the log in memory.
    `initial_state` is a saved state, or a snapshot of Kafka's, that a new log begins with. `server_properties` are
    static configs of Kafka's that have no field here, by key. Without `delegation_token_secret_key` delegation tokens
    are disabled. `proposals` are the names of those that replace Kafka's behaviour, `overlay` the messages and records
    added to Kafka's or replacing them. `super_users` are principals separated by semicolons (User:admin;User:broker);
    setting any enables the authorizer, which otherwise allows what ACLs allow.

    `ssl_…_file` are PEM or PKCS12 files. `plain_users` are passwords by name; `scram_users` are written into a new log,
    as `kafka-storage format --add-scram` does. By default there are no users. `client_security` is used for connections
    to other controllers; None: reuse the listener's security settings, and log in as the first user.

    A controller is a quorum of its own unless one of these is set: `controller_quorum_voters`, as `ID@HOST:PORT,…`,
    are the voters at kraft.version 0; `initial_controllers`, as `ID@HOST:PORT:DIRECTORY_ID,…`, those that a new quorum
    begins with at kraft.version 1 (`kafka-storage format --initial-controllers`);
    `controller_quorum_bootstrap_servers`, as `HOST:PORT,…`, are asked for the leader, also by nodes that are not
    voters.
    """

    node_id: int = option(3000, group="Cluster", help="The controller's node id.", lowest=0, highest=INT_MAX)
    cluster_id: str = option(
        CLUSTER_ID,
        group="Cluster",
        help="The cluster's id. Default: the id in the data directory, else a new one.",
        shown_default="",
    )
    host: str = option("127.0.0.1", group="Listening", help="Address to listen on.")
    port: int = option(
        9093, group="Listening", help="Port to listen on; 0 takes any free one.", lowest=0, highest=PORT_MAX
    )
    advertised_host: str | None = option(
        None, group="Listening", help="Host that brokers connect to, if it differs from the one listened on."
    )
    advertised_port: int | None = option(
        None, group="Listening", help="Port that brokers connect to, if it differs.", highest=PORT_MAX, lowest=1
    )
    controller_listener_name: str = option(
        "CONTROLLER", group="Listening", help="The brokers' controller.listener.names."
    )
    data_dir: Path | None = option(
        None, group="Metadata log", help="Directory of the metadata log, in Kafka's own format. Default: in memory."
    )
    initial_state: Path | None = option(
        None,
        group="Test setup",
        help="A saved state, or a snapshot (.checkpoint) of Kafka's metadata log, that a new log begins with.",
    )
    seed: int | None = option(None, group="Cluster", help="Seed of everything random, for runs that repeat.")

    metadata_version: int = option(
        0,
        kind=str,
        shown_default="the newest",
        group="Cluster",
        help="metadata.version of a new log: a name (4.1-IV1), a release (4.1) or a level (7 to 33).",
        lowest=0,
    )
    kraft_version: int | None = option(None, lowest=0, highest=1)
    features: Mapping[str, int] = option(
        {},
        "--feature",
        metavar="NAME=LEVEL",
        group="Cluster",
        help="Level of a feature in a new log (kafka-storage format --feature): group.version=0. Default: those of the"
        " metadata.version.",
    )
    unstable_feature_versions_enable: bool = option(
        False,
        group="Cluster",
        help="Allow feature levels that are not ready in the release (unstable.feature.versions.enable).",
    )
    unstable_api_versions_enable: bool = option(
        False,
        group="Cluster",
        help="Also name levels that are not ready in ApiVersions (unstable.api.versions.enable).",
    )
    release: str = option(
        DEFAULT,
        "--release",
        "--as-version",
        group="Cluster",
        help="Be the controller of this Kafka release: 3.7 to 4.4, a patch release (4.2.1), or 4.5 as a preview.",
        completes=tuple(each.rpartition(".")[0] for each in SUPPORTED),
    )
    api_versions: "Mapping[int, Range | None]" = option(
        {},
        metavar="API=MIN-MAX",
        group="Cluster",
        help="Versions that an API offers, by its name or key; API=off for none.",
    )

    controller_quorum_voters: str | None = option(
        None,
        group="Quorum",
        help=(
            "The voters of a quorum of separate processes at kraft.version 0 (controller.quorum.voters): ID@HOST:PORT,…"
        ),
    )
    initial_controllers: str | None = option(
        None,
        group="Quorum",
        help=(
            "The first voters of a quorum of separate processes, including this one, in the form that "
            "kafka-storage format takes: ID@HOST:PORT:DIRECTORY_ID,…"
        ),
    )
    controller_quorum_bootstrap_servers: str | None = option(
        None,
        group="Quorum",
        help="Controllers of a quorum that this one follows as an observer until it is added as a voter: HOST:PORT,…",
    )
    controller_quorum_auto_join_enable: bool = option(
        False,
        group="Quorum",
        help="Join the voters without being added, from Kafka 4.2 on (controller.quorum.auto.join.enable).",
    )
    controller_quorum_election_timeout_ms: int = option(1_000, lowest=1)
    controller_quorum_fetch_timeout_ms: int = option(2_000, lowest=1)
    controller_quorum_election_backoff_max_ms: int = option(1_000, lowest=1)
    controller_quorum_request_timeout_ms: int = option(2_000, lowest=1)
    controller_quorum_retry_backoff_ms: int = option(20, lowest=1)

    session_timeout_ms: int = option(
        9_000,
        group="Cluster",
        help="Fence a broker that sends no heartbeat for so long (broker.session.timeout.ms).",
        lowest=1,
    )
    heartbeat_interval_ms: int = option(2_000, lowest=1)
    metadata_max_idle_interval_ms: int = option(
        500, group="Metadata log", help="Write a NoOpRecord after so long without a record; 0 is never.", lowest=0
    )
    auto_leader_rebalance_enable: bool = option(True)
    leader_imbalance_check_interval_seconds: int = option(
        300, group="Cluster", help="Elect the preferred leaders, where others lead, this often.", lowest=1
    )
    unclean_leader_election_interval_ms: int = option(
        300_000,
        group="Cluster",
        help="Look for leaderless partitions whose topic allows an unclean election this often.",
        lowest=1,
    )
    metadata_log_max_record_bytes_between_snapshots: int = option(
        20_971_520, group="Metadata log", help="Write a snapshot after so many bytes of log.", lowest=1
    )
    metadata_log_max_snapshot_interval_ms: int = option(
        3_600_000, group="Metadata log", help="Write a snapshot after so long; 0 is never.", lowest=0
    )
    metadata_max_retention_bytes: int = option(
        104_857_600,
        group="Metadata log",
        help="Delete the oldest snapshots, and the log below the first one left, above so many bytes; -1 is never.",
        lowest=-1,
    )
    metadata_max_retention_ms: int = option(
        604_800_000,
        group="Metadata log",
        help="Delete snapshots whose last record is older, and the log below the first one left; -1 is never.",
        lowest=-1,
    )
    metadata_log_segment_bytes: int = option(
        1_073_741_824, group="Metadata log", help="Size of a segment file of the log.", lowest=1
    )
    metadata_log_segment_ms: int = option(
        604_800_000, group="Metadata log", help="Time between the first and the last record of a segment.", lowest=1
    )
    metadata_log_fsync: bool = option(
        False, group="Metadata log", help="Force every append to the disk, so that it survives a power cut too."
    )

    num_partitions: int = option(1, group="Cluster", help="Default partitions of a topic.", lowest=1)
    default_replication_factor: int = option(1, group="Cluster", help="Default replicas of a partition.", lowest=1)
    min_insync_replicas: int = option(
        1, group="Cluster", help="min.insync.replicas that a new log begins with.", lowest=1
    )
    delete_topic_enable: bool = option(True)
    server_properties: Mapping[str, str] = option(
        {},
        "--server-property",
        metavar="KEY=VALUE",
        group="Cluster",
        help=(
            "A property of the controller's server.properties, as in "
            "group.streams.max.heartbeat.interval.ms=20000: bounds and defaults of groups' and topics' configs, "
            "for instance. One that is an option here sets that option; both with different values are refused."
        ),
    )

    proposals: frozenset[str] = frozenset()
    overlay: "Overlay | None" = None

    create_topic_policy: "CreateTopicPolicy | None" = None
    alter_config_policy: "AlterConfigPolicy | None" = None
    controller_quota_window_num: int = option(11, lowest=1)
    controller_quota_window_size_seconds: int = option(1, lowest=1)

    authorizer: bool = option(
        False, group="Authorization", help="Check every request against ACLs, as Kafka's StandardAuthorizer does."
    )
    super_users: str = option(
        "",
        group="Authorization",
        help='Principals that may do everything: "User:admin;User:broker". Naming any turns --authorizer on.',
    )
    allow_everyone_if_no_acl_found: bool = option(
        False, group="Authorization", help="Allow everyone on a resource without any ACL."
    )

    delegation_token_secret_key: str | None = option(
        None,
        group="Delegation tokens",
        help=(
            "Key of delegation tokens, the same as the brokers'. Default: no delegation tokens. On a command line "
            "other users can see it: better give a file or the variable."
        ),
        is_secret=True,
    )
    delegation_token_max_lifetime_ms: int = option(
        604_800_000, group="Delegation tokens", help="A delegation token cannot be renewed after so long.", lowest=1
    )
    delegation_token_expiry_time_ms: int = option(
        86_400_000, group="Delegation tokens", help="A delegation token must be renewed after so long.", lowest=1
    )
    delegation_token_expiry_check_interval_ms: int = option(
        3_600_000, group="Delegation tokens", help="Remove expired delegation tokens this often.", lowest=1
    )

    security_protocol: str = option(
        "PLAINTEXT",
        choices=tuple(SECURITY_PROTOCOLS),
        group="Security",
        help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, as in the brokers' listener.security.protocol.map.",
    )
    ssl_certificate_file: Path | None = option(
        None, group="Security", help="File of the controller's certificate chain: PEM, or PKCS12 with its key."
    )
    ssl_key_file: Path | None = option(None, group="Security", help="PEM file of its private key.")
    ssl_key_password: str | None = option(
        None, group="Security", help="Password of the key, or of the PKCS12 file with it.", is_secret=True
    )
    ssl_truststore_file: Path | None = option(
        None, group="Security", help="PEM or PKCS12 file of the authorities that sign the brokers' certificates."
    )
    ssl_truststore_password: str | None = option(
        None, group="Security", help="Password of that PKCS12 file.", is_secret=True
    )
    ssl_client_auth: str = option(
        "none",
        choices=SSL_CLIENT_AUTH,
        group="Security",
        help="Client certificates of brokers: none, requested or required.",
    )
    ssl_principal_mapping_rules: str = option(
        "DEFAULT",
        group="Security",
        help="Map the names in certificates to users: RULE:pattern/replacement/[LU], …, DEFAULT.",
    )
    sasl_enabled_mechanisms: tuple[str, ...] = option(
        (),
        metavar="MECHANISM,…",
        choices=MECHANISMS,
        group="Security",
        help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; several separated by commas.",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = option(
        None,
        metavar="URL",
        group="Security",
        help="Keys of signed tokens, a JWKS in file:/…; without it tokens are unsecured.",
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = option(
        (), metavar="NAME,…", group="Security", help="The accepted audiences (aud) of signed tokens."
    )
    sasl_oauthbearer_expected_issuer: str | None = option(
        None, metavar="NAME", group="Security", help="The required issuer (iss) of signed tokens."
    )
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    scram_users: "tuple[ScramUser, ...]" = ()
    client_security: "ClientSecurity | None" = None
    sasl_server_max_receive_size: int = option(524_288, lowest=1)
    connections_max_reauth_ms: int = option(
        0, group="Security", help="A SASL connection must authenticate again within so long; 0 is never.", lowest=0
    )
    connection_failed_authentication_delay_ms: int = option(100, lowest=0, highest=INT_MAX)
    show_secrets: bool = option(
        False,
        group="Security",
        help=(
            "Show passwords, keys, tokens and sensitive configs in the journal, the state, its files and logs, "
            "which have [hidden] or asterisks instead."
        ),
    )
    authentication_timeout_ms: int = option(
        30_000, group="Security", help="Close a connection that is not authenticated after so long.", lowest=1
    )
    unauthenticated_connections_max: int = option(
        4_096, group="Security", help="Refuse further connections while so many are not authenticated.", lowest=1
    )

    frame_bytes_max: int = option(
        104_857_600,
        group="Limits",
        help="Close the connection of a longer request (socket.request.max.bytes).",
        lowest=64,
        highest=INT_MAX,
    )
    request_elements_max: int = option(
        65_536,
        group="Limits",
        help=(
            "Close the connection of a request with more elements: of arrays, at any depth, and unknown tagged "
            "fields; a quarter in its outer arrays, and a quarter structs in arrays of those. AlterPartition may have "
            "four times as many."
        ),
        lowest=1,
    )
    received_bytes_max: int = option(536_870_912, lowest=1)
    write_bytes_max: int = option(
        67_108_864, group="Limits", help="Close a connection with more bytes that its peer has not read.", lowest=1
    )
    write_stuck_ms: int = option(
        60_000, group="Limits", help="Close a connection whose peer reads nothing for so long.", lowest=1
    )
    connections_max: int = option(50_000, group="Limits", help="Refuse further connections.", lowest=1)
    connections_max_idle_ms: int = option(
        600_000, group="Limits", help="Close a connection without any traffic for so long.", lowest=1
    )
    journal_entries_max: int = option(
        20_000, group="Limits", help="Exchanges kept in the journal; 0 keeps no journal.", lowest=0
    )
    journal_bytes_max: int = option(
        67_108_864, group="Limits", help="Bytes kept in the journal; the oldest exchanges go first.", lowest=1
    )

    def __post_init__(self) -> None:
        for each in (declared for declared in fields(self) if declared.repr):  # errors would show the secret others
            check_option(each.name, getattr(self, each.name), each.type, *BOUNDS.get(each.name, ()))
        for row in OPTIONS:
            value = getattr(self, row.name)
            for one in value if row.by_commas else (value,):
                if row.choices and one not in row.choices:
                    raise ValueError(f"{row.name}={one!r}: it must be {' or '.join(row.choices)}")
        if not self.cluster_id or any(character.isspace() for character in self.cluster_id):
            raise ValueError(f"cluster_id={self.cluster_id!r}: a cluster id is a text without spaces")
        for user in self.super_user_principals:
            if not all(user.partition(":")):
                about = f"{user} is not Type:name, as in User:admin;User:broker"
                raise ValueError(f"super_users={self.super_users!r}: {about}")
        self._check_release()
        _check_security(self)
        if self.controller_quorum_voters and self.initial_controllers:
            raise ValueError("controller_quorum_voters and initial_controllers exclude each other")
        if not self.is_alone:
            self._check_quorum()

    @property
    def has_authorizer(self) -> bool:
        """True if requests are checked against super users and ACLs."""
        return self.authorizer or bool(self.super_users)

    def authorizer_of(self) -> "Authorizer | None":
        """Return the authorizer of the controller, and of simulated brokers; None: everything is allowed."""
        if not self.has_authorizer:
            return None
        from mockraft.kafka_api.authorization.authorizer import Authorizer

        return Authorizer(
            self.super_user_principals,
            allow_everyone_if_no_acl_found=self.allow_everyone_if_no_acl_found,
            ranges=release(self.release).has(Behaviour.ACL_HOSTS_ARE_RANGES),
        )

    @property
    def super_user_principals(self) -> frozenset[str]:
        """Super users, each as `Type:name`."""
        users = (user.strip() for user in self.super_users.split(";"))
        return frozenset(user for user in users if user)

    @property
    def listener_security(self) -> ServerSecurity:
        """Security of the listener, with that of connections to it; None there: PLAINTEXT, or SASL without a user."""
        given = ServerSecurity(**{each.name: getattr(self, each.name) for each in fields(ServerSecurity)})
        own = own_client_security(given, self.scram_users, self.super_user_principals)
        return replace(given, client_security=own)

    @property
    def mechanisms_max_reauth_ms(self) -> Mapping[str, int]:
        """`connections.max.reauth.ms` of single mechanisms, in `server_properties`."""
        return server_properties.mechanisms_max_reauth_ms(self.server_properties, self.controller_listener_name)

    @property
    def own_client_security(self) -> "ClientSecurity | None":
        """Security of connections to other controllers; None: PLAINTEXT, or SASL without configured credentials."""
        return self.listener_security.client_security

    @property
    def needs_login(self) -> bool:
        """True if nodes have to log in, and no option has a user for them."""
        return uses_sasl(self.security_protocol) and self.own_client_security is None

    @property
    def voter_host(self) -> str:
        """Host that brokers connect to."""
        return self.host if self.advertised_host is None else self.advertised_host

    @property
    def voter_port(self) -> int:
        """Port that brokers connect to."""
        return self.port if self.advertised_port is None else self.advertised_port

    @property
    def bulk_elements_max(self) -> int:
        """Maximum number of elements of a request that brokers send for all of their partitions at once.

        By default 65,535 partitions with three replicas each fit into one AlterPartition.
        """
        return 4 * self.request_elements_max

    @property
    def is_bounded(self) -> bool:
        """True if requests have the limits of Kafka's readers: elements of an array, tagged fields of a struct."""
        return release(self.release).has(Behaviour.READERS_ARE_BOUNDED)

    @property
    def is_alone(self) -> bool:
        """True if this controller is a quorum of its own."""
        return not (
            self.controller_quorum_voters or self.initial_controllers or self.controller_quorum_bootstrap_servers
        )

    @property
    def configured_voters(self) -> VoterSet:
        """Configured voters; empty if only bootstrap servers are configured."""
        text = self.controller_quorum_voters or self.initial_controllers
        return read_voters(text, self.controller_listener_name) if text else VoterSet()

    @property
    def static_voter_ids(self) -> Collection[int]:
        """Ids of `controller_quorum_voters`."""
        return self.configured_voters.nodes if self.controller_quorum_voters else ()

    @property
    def initial_kraft_version(self) -> int:
        """The kraft.version until the log contains one."""
        if self.controller_quorum_voters:
            return 0
        if self.initial_controllers:
            return 1
        if self.kraft_version is not None:
            return self.kraft_version
        return features.default_kraft_version(release(self.release))

    @property
    def initial_directory_id(self) -> bytes | None:
        """Directory id of this node in `initial_controllers`."""
        node = self.configured_voters.nodes.get(self.node_id) if self.initial_controllers else None
        return node.key.directory_id if node else None

    @property
    def bootstrap_addresses(self) -> list[tuple[str, int]]:
        """Addresses in `controller_quorum_bootstrap_servers`."""
        return read_addresses(self.controller_quorum_bootstrap_servers or "")

    def _check_release(self) -> None:
        """Choose the levels of a new log that are not given. ValueError for levels that the release does not have."""
        of, unstable = release(self.release), self.unstable_feature_versions_enable
        levels = features.initial_levels(of, self.metadata_version, self.features, unstable=unstable)
        object.__setattr__(self, "metadata_version", levels.metadata_version)
        object.__setattr__(self, "features", levels.others)
        if levels.kraft_version is not None:
            if self.kraft_version not in (None, levels.kraft_version):
                feature = f"kraft.version={levels.kraft_version}"
                raise ValueError(f"kraft_version={self.kraft_version} contradicts the feature {feature}")
            object.__setattr__(self, "kraft_version", levels.kraft_version)
        if self.controller_quorum_auto_join_enable and not of.has(Behaviour.AUTO_JOIN):
            raise ValueError(f"controller_quorum_auto_join_enable: Kafka {of.name} has no such property, 4.2 has it")
        if self.server_properties:
            server_properties.check(self.server_properties, of, fields(self))

    def _check_quorum(self) -> None:
        """Raise ValueError if quorum options cannot be parsed or a required one is missing."""
        known = [node.key.directory_id != bytes(16) for node in self.configured_voters.nodes.values()]
        if self.initial_controllers and not all(known):
            raise ValueError(f"initial_controllers={self.initial_controllers!r}: each needs its :DIRECTORY_ID")
        if self.controller_quorum_voters and any(known):
            about = "directory ids belong into initial_controllers"
            raise ValueError(f"controller_quorum_voters={self.controller_quorum_voters!r}: {about}")
        if self.kraft_version == 1 and self.controller_quorum_voters:
            raise ValueError("kraft_version=1: controller_quorum_voters are voters at kraft.version 0")
        if self.kraft_version == 0 and self.initial_controllers:
            raise ValueError("kraft_version=0: initial_controllers are voters at kraft.version 1")
        _ = self.bootstrap_addresses


OPTIONS = options_of(ControllerConfig, {each.name: each.type for each in fields(ControllerConfig)})
"""The options of a controller that are more than a value: their bounds, and help where `mockraft serve` has them."""

BOUNDS = {each.name: (each.lowest, each.highest) for each in OPTIONS if each.lowest is not None}
"""Lowest and highest value of each number."""


def _check_security(config: ControllerConfig) -> None:
    """Raise ValueError that names the wrong option and its allowed values."""
    _ = config.listener_security
    if config.scram_users and not metadata_version(config.metadata_version).has(Behaviour.SCRAM):
        raise ValueError("scram_users need metadata_version 11 (3.5-IV2) or later")
    if isinstance(config.scram_users, str) or not all(hasattr(each, "mechanism") for each in config.scram_users):
        raise ValueError("scram_users: give mockraft.wire.scram.ScramUser(name, password, mechanism), one or more")
    for user in config.scram_users:
        _check_scram_user(user)


def _check_scram_user(user: ScramUser) -> None:
    if user.mechanism not in HASHES:
        raise ValueError(f"scram_users: mechanism={user.mechanism!r}: it must be {' or '.join(HASHES)}")
    if not user.name or not user.password:
        raise ValueError("scram_users: neither a name nor a password may be empty")
    if not ITERATIONS_MIN <= user.iterations <= ITERATIONS_MAX:
        raise ValueError(f"scram_users: iterations of {user.name} must be {ITERATIONS_MIN} to {ITERATIONS_MAX}")

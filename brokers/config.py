"""The configuration of one simulated broker, and the registration that follows from it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, NamedTuple, cast, get_type_hints

from mockraft.brokers.disks.disk import Disk
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.placement import DirectoryAt
from mockraft.kafka_api.authorization.authorizer import Authorizer
from mockraft.kafka_api.options import check_option
from mockraft.kafka_api.security import SECURITY_PROTOCOLS, ServerSecurity, own_client_security, uses_sasl
from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_keys import BROKER
from mockraft.kafka_configs.config_values import parse_property
from mockraft.releases import release
from mockraft.wire import api_keys, messages
from mockraft.wire.client_security import PROTOCOLS, ClientSecurity
from mockraft.wire.directory_ids import draw_uuid, in_java_order
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from mockraft.wire.messages.broker_registration_request import Listener as RegisteredListener
from mockraft.wire.names import did_you_mean, similar_names
from mockraft.wire.recast import recast

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = release().feature_ranges()
"""The feature ranges that brokers of the default release register, (min, max) by feature."""
PLAINTEXT = 0
REQUEST_TIMEOUT_MS = ("request.timeout.ms", 30_000)
"""A key of server.properties, and its default."""
_FIELD_OF_KEY: Final = {
    "broker.heartbeat.interval.ms": "heartbeat_interval_ms",
    "broker.rack": "rack",
    "broker.session.timeout.ms": "session_timeout_ms",
    "controller.quorum.request.timeout.ms": "raft_request_timeout_ms",
    "cordoned.log.dirs": "cordoned_log_dirs",
    "initial.broker.registration.timeout.ms": "registration_timeout_ms",
    "log.dir.failure.timeout.ms": "log_dir_failure_timeout_ms",
    "metadata.log.dir": "metadata_log_dir",
}
"""Fields of a BrokerConfig that keys of server.properties set, with Kafka's default."""


_OF_OLD_RELEASES = {"metadata.log.segment.min.bytes", "internal.metadata.max.fetch.size.in.bytes"}
"""Keys of older releases that are like newer ones."""


class Listener(NamedTuple):
    """One advertised client listener; `security_protocol` is Kafka's number (0 PLAINTEXT, 1 SSL …)."""

    name: str
    host: str
    port: int
    security_protocol: int = PLAINTEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Every option of a simulated broker, named as in Kafka's configuration where Kafka has it. Times are ms.

    `log_dirs` are the readable directories of log.dirs; `offline_log_dirs` maps the paths of the others to the reason.
    `metadata_log_dir` is a directory for the metadata log alone; None: it lies in the first of log.dirs.
    `cordoned_log_dirs` is cordoned.log.dirs as in a properties file: comma-separated paths, or `*`.
    `fenced_until_assigned` follows KIP-858's text: stay fenced until the controller knows the directory of every
    replica; Kafka does not. `io_errors` "kip-18" takes a single replica offline when the disk itself works;
    "kafka" takes the directory offline on any error. `restart_partitions_elsewhere` recreates lost replicas in another
    directory. `bootstrap` is controller.quorum.bootstrap.servers as (host, port) pairs. `recovery_ms` is the time the
    broker stays in RECOVERY before it asks to be unfenced. Ids are 16 raw bytes. `security` is used for connections to
    controllers, None for PLAINTEXT; `listener_security` is that of the listeners, also for other brokers. `messages`
    are the message classes in use: Kafka's own, or an Overlay's for a broker of a proposal. `serve_clients` opens the
    listeners; `properties` are further keys of its server.properties, and may set fields that have a key there.
    `authorizer` checks clients' requests. `open_disk` returns the disk for the path of a log dir: memory, which is
    empty at each start, or RealDisk.
    """

    broker_id: int
    cluster_id: str
    bootstrap: tuple[tuple[str, int], ...]
    incarnation_id: bytes
    metadata_directory_id: bytes
    log_dirs: tuple[DirectoryAt, ...]
    listeners: tuple[Listener, ...]
    rack: str | None = None
    previous_broker_epoch: int = -1
    features: Mapping[str, tuple[int, int]] = field(default_factory=lambda: SUPPORTED_FEATURES)
    controller_listener_name: str = "CONTROLLER"
    security: ClientSecurity | None = None
    listener_security: ServerSecurity = field(default_factory=ServerSecurity)
    messages: Any = messages
    heartbeat_interval_ms: int = 2_000
    session_timeout_ms: int = 9_000
    registration_timeout_ms: int = 60_000
    log_dir_failure_timeout_ms: int = 30_000
    offline_log_dirs: Mapping[str, str] = field(default_factory=dict)
    metadata_log_dir: str | None = None
    cordoned_log_dirs: str = ""
    fenced_until_assigned: bool = False
    io_errors: Literal["kafka", "kip-18"] = "kafka"
    restart_partitions_elsewhere: bool = False
    raft_request_timeout_ms: int = 2_000
    recovery_ms: int = 20
    serve_clients: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    authorizer: Authorizer | None = None
    open_disk: Callable[[str], Disk] = MemoryDisk

    @property
    def log_dir_paths(self) -> tuple[str, ...]:
        """The paths of log.dirs, those that are offline last."""
        return (*(each.path for each in self.log_dirs), *self.offline_log_dirs)


_KINDS = get_type_hints(BrokerConfig) | {"host": str, "port": int | None}
_BOUNDS = {"broker_id": (0, 2**31 - 1), "port": (0, 65_535)}


def draw_config(
    broker_id: int,
    cluster_id: str,
    bootstrap: tuple[tuple[str, int], ...],
    rng: random.Random,
    *,
    log_dir_paths: tuple[str, ...] = (),
    port: int | None = None,
    **options: Any,
) -> BrokerConfig:
    """Return a config with ids drawn from `rng`, one log dir unless paths are given, and one listener.

    It has the name of its security protocol. The port is 9092 + broker id unless given, or any free one when clients
    are served: that port is known and advertised once the broker has started. A real controller needs a port other than
    0: it resigns over a registration with port 0. `options` are `host` and any other fields of `BrokerConfig`, such as
    `rack`; they count before `properties`. TypeError and ValueError name an option of another type or out of its
    bounds, or a wrong property.
    """
    for name, value in fields_in(options.get("properties", {})).items():
        options.setdefault(name, value)
    known = [each.name for each in fields(BrokerConfig)]
    for name in options.keys() - known - {"host"}:
        raise TypeError(f"{name}: a simulated broker has no such option; {did_you_mean(name, known)}")
    given = {"broker_id": broker_id, "cluster_id": cluster_id, "host": "127.0.0.1", "port": port, **options}
    for name, value in given.items():
        check_option(name, value, _KINDS[name], *_BOUNDS.get(name, (0 if name.endswith("_ms") else -1,)))
    paths = log_dir_paths or (f"/simulated/broker-{broker_id}/d0",)
    host = options.pop("host", "127.0.0.1")
    if port is None:
        port = 0 if options.get("serve_clients") else 1 + (9091 + broker_id) % 65535
    security = _for_peers(options.pop("listener_security", ServerSecurity()), options.get("security"))
    protocol = security.security_protocol
    return BrokerConfig(
        broker_id=broker_id,
        cluster_id=cluster_id,
        bootstrap=bootstrap,
        incarnation_id=draw_uuid(rng),
        metadata_directory_id=draw_uuid(rng),
        log_dirs=tuple(DirectoryAt(path, draw_uuid(rng)) for path in paths),
        listeners=(Listener(protocol, host, port, SECURITY_PROTOCOLS[protocol]),),
        listener_security=security,
        **options,
    )


def fields_in(properties: Mapping[str, str]) -> dict[str, object]:
    """Return the fields that properties set. ValueError for a value that Kafka refuses, or a misspelled key."""
    keys = config_keys.keys(BROKER)
    for name in properties.keys() - keys.keys() - _OF_OLD_RELEASES:
        if near := similar_names(name, keys, cutoff=0.9):
            raise ValueError(f"properties: Kafka's brokers have no {name}; did you mean {' or '.join(near)}?")
    parsed = {name: parse_property(keys[name], text) for name, text in properties.items() if name in keys}
    set_here = {field: parsed[name] for name, field in _FIELD_OF_KEY.items() if name in parsed}
    return {field: ",".join(value) if isinstance(value, list) else value for field, value in set_here.items()}


def _for_peers(security: ServerSecurity, to_controllers: ClientSecurity | None) -> ServerSecurity:
    """Return the security of a listener, with that of other brokers' connections to it. ValueError without a user."""
    own = own_client_security(security)
    if own is None and to_controllers is not None and to_controllers.protocol == security.security_protocol:
        own = to_controllers
    if own is None and uses_sasl(security.security_protocol):
        about = f"brokers log in to each other by {security.security_protocol}"
        raise ValueError(f"listener_security: {about}: give plain_users, or client_security")
    return replace(security, client_security=own)


def registration_of(
    config: BrokerConfig, version: int, cordoned_dirs: Iterable[bytes] = ()
) -> BrokerRegistrationRequest:
    """Return the registration of a broker with this config; directories in Java's order of uuids.

    Below version 4 a feature whose range starts at 0 is left out, as in Kafka. `cordoned_dirs` are sent when the
    message classes have the field: those of KIP-1066's text do, Kafka's do not.
    """
    request = BrokerRegistrationRequest(
        broker_id=config.broker_id,
        cluster_id=config.cluster_id,
        incarnation_id=config.incarnation_id,
        listeners=[
            RegisteredListener(name=name, host=host, port=port, security_protocol=protocol)
            for name, host, port, protocol in config.listeners
        ],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in config.features.items()
            if version >= 4 or low > 0
        ],
        rack=config.rack,
        log_dirs=in_java_order(log_dir.directory_id for log_dir in config.log_dirs),
        previous_broker_epoch=config.previous_broker_epoch,
    )
    if config.messages is not messages:
        # Imported here: without a proposal the generator need not be in memory.
        worded = recast(request, config.messages.request(api_keys.BROKER_REGISTRATION))
        if hasattr(worded, "cordoned_log_dirs"):
            worded.cordoned_log_dirs = in_java_order(cordoned_dirs)
            return cast(BrokerRegistrationRequest, worded)
    return request


def registers_cordoned_dirs(config: BrokerConfig) -> bool:
    """Return True for KIP-1066's text, by which each registration and heartbeat has the cordoned directories."""
    registration = config.messages.request(api_keys.BROKER_REGISTRATION)
    return config.messages is not messages and hasattr(registration, "cordoned_log_dirs")


def static_configs(config: BrokerConfig) -> dict[str, str]:
    """Return keys and values, including `config.properties`; unset keys with default values are left out."""
    controllers = config.controller_listener_name
    named = [f"{each.name}:{PROTOCOLS[each.security_protocol]}" for each in config.listeners]
    protocol = "PLAINTEXT"
    if config.security is not None:
        ends = ("SSL" if config.security.tls is not None else "PLAINTEXT",)
        protocol = "_".join(("SASL", *ends) if config.security.login is not None else ends)
    values = {
        "process.roles": "broker",
        "node.id": str(config.broker_id),
        "controller.quorum.bootstrap.servers": ",".join(f"{host}:{port}" for host, port in config.bootstrap),
        "controller.listener.names": controllers,
        "listeners": ",".join(f"{each.name}://{each.host}:{each.port}" for each in config.listeners),
        "listener.security.protocol.map": ",".join([f"{controllers}:{protocol}", *named]),
        "log.dirs": ",".join(config.log_dir_paths),
    }
    security = config.listener_security
    if security.security_protocol != PROTOCOLS[PLAINTEXT]:
        values["inter.broker.listener.name"] = config.listeners[0].name
    if security.sasl_enabled_mechanisms:
        values["sasl.enabled.mechanisms"] = ",".join(security.sasl_enabled_mechanisms)
    if security.ssl_client_auth != "none":
        values["ssl.client.auth"] = security.ssl_client_auth
    defaults = {each.name: each.default for each in fields(BrokerConfig)}
    given = {name: getattr(config, field) for name, field in _FIELD_OF_KEY.items()}
    return (
        values
        | dict(config.properties)
        | {
            name: str(value)
            for name, value in given.items()
            if value != defaults[_FIELD_OF_KEY[name]] or name in config.properties
        }
    )

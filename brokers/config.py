"""What one simulated broker is told at its start, and the registration that follows from it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from mockraft.brokers.features import SUPPORTED_FEATURES
from mockraft.brokers.log_dirs.directory_ids import draw_uuid, in_java_order
from mockraft.brokers.log_dirs.disk import Disk
from mockraft.brokers.log_dirs.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.placement import DirectoryAt
from mockraft.wire import api_keys, messages
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from mockraft.wire.messages.broker_registration_request import Listener as RegisteredListener


class Listener(NamedTuple):
    """One advertised client listener; `security_protocol` is Kafka's number (0 PLAINTEXT, 1 SSL …)."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Every option of a simulated broker, named as in Kafka's configuration where Kafka has it. Times are ms.

    `log_dirs` are those of log.dirs that can be read; `offline_log_dirs` says of the others, by path, why not.
    `cordoned_log_dirs` is cordoned.log.dirs as in a properties file, paths with commas between or `*`.
    `fenced_until_assigned` is KIP-858's text: stay fenced until the controller knows where every replica lies; Kafka
    4.3.1 does not. `io_errors` "kip-18" lets one replica fail where the disk is well; "kafka" takes the directory
    offline whatever the error. `restart_partitions_elsewhere` gives lost replicas a new life in another directory.
    `bootstrap` is controller.quorum.bootstrap.servers as (host, port) pairs. `recovery_ms` is how long the broker
    stays in RECOVERY before it wants to be unfenced. Ids are 16 raw bytes. `security` is how it speaks to controllers,
    None for PLAINTEXT. `messages` are those it speaks: Kafka's own, or an Overlay's for a broker of a proposal.
    `serve_clients` has it listen on its listeners; `properties` are others of its server.properties.
    `open_disk` gives the disk below the path of a log dir: memory, which is empty at each start, or RealDisk.
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
    messages: Any = messages
    heartbeat_interval_ms: int = 2_000
    session_timeout_ms: int = 9_000
    registration_timeout_ms: int = 60_000
    log_dir_failure_timeout_ms: int = 30_000
    offline_log_dirs: Mapping[str, str] = field(default_factory=dict)
    cordoned_log_dirs: str = ""
    fenced_until_assigned: bool = False
    io_errors: Literal["kafka", "kip-18"] = "kafka"
    restart_partitions_elsewhere: bool = False
    raft_request_timeout_ms: int = 2_000
    recovery_ms: int = 20
    serve_clients: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    open_disk: Callable[[str], Disk] = MemoryDisk


def draw_config(
    broker_id: int,
    cluster_id: str,
    bootstrap: tuple[tuple[str, int], ...],
    chance: random.Random,
    *,
    log_dir_paths: tuple[str, ...] = (),
    host: str = "127.0.0.1",
    port: int | None = None,
    **options: Any,
) -> BrokerConfig:
    """A config with fresh ids drawn from `chance`, one log dir unless paths are given, one PLAINTEXT listener.

    The port is 9092 + broker id unless given, or any free one when clients are served: that is known, and advertised,
    once the broker has started. A real controller needs one that is not 0: it resigns over it.
    `options` are any others of `BrokerConfig`, such as `rack` or `session_timeout_ms`.
    """
    paths = log_dir_paths or (f"/simulated/broker-{broker_id}/d0",)
    if port is None:
        port = 0 if options.get("serve_clients") else 1 + (9091 + broker_id) % 65535
    return BrokerConfig(
        broker_id=broker_id,
        cluster_id=cluster_id,
        bootstrap=bootstrap,
        incarnation_id=draw_uuid(chance),
        metadata_directory_id=draw_uuid(chance),
        log_dirs=tuple(DirectoryAt(path, draw_uuid(chance)) for path in paths),
        listeners=(Listener("PLAINTEXT", host, port),),
        **options,
    )


def endpoint_of(text: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[address]:port`. Raises ValueError."""
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]"), int(port)


def registration_of(
    config: BrokerConfig, version: int, cordoned_dirs: Iterable[bytes] = ()
) -> BrokerRegistrationRequest:
    """The registration a 4.3.1 broker with this config sends; directories in Java's order of uuids.

    Below version 4 a feature whose range starts at 0 is left out, as Kafka does. `cordoned_dirs` are told where the
    words have them: KIP-1066's text has, Kafka has not.
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
        # Who speaks no proposal need not have the generator in memory.
        from mockraft.wire.recast import recast

        worded = recast(request, config.messages.request(api_keys.BROKER_REGISTRATION))
        if hasattr(worded, "cordoned_log_dirs"):
            worded.cordoned_log_dirs = in_java_order(cordoned_dirs)
            return cast(BrokerRegistrationRequest, worded)
    return request

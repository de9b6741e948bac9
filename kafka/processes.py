"""Kafka's own brokers and controllers, each in a JVM with a small heap."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from mockraft.files.private_files import write_private
from mockraft.kafka.child_process import ChildProcess, KafkaProcessError, free_port, wait_until
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.tools import KafkaTool, java_command
from mockraft.kafka_configs import java_properties
from mockraft.wire import uuids

__all__ = [
    "ChildProcess",
    "KafkaBroker",
    "KafkaController",
    "KafkaProcessError",
    "KafkaServer",
    "KafkaTool",
    "free_port",
    "random_uuid",
    "wait_until",
]

_SMALL_HEAP = ("-Xms32m", "-Xmx96m")


def random_uuid() -> str:
    """A fresh cluster or directory id in Kafka's form: 16 bytes, base64url without padding, no leading dash."""
    while True:
        text = uuids.text_of(uuid.uuid4().bytes)
        if not text.startswith("-"):
            return text


def has_dynamic_quorum(version: str) -> bool:
    """Return True if servers of that version find the quorum by ``controller.quorum.bootstrap.servers`` (KIP-853)."""
    return tuple(map(int, version.split(".")[:2])) >= (3, 9)


def quorum_properties(version: str, bootstrap: str, node_id: int = 3000) -> dict[str, str]:
    """Return the property by which a server of that version finds its controllers, the first with that node id."""
    if has_dynamic_quorum(version):
        return {"controller.quorum.bootstrap.servers": bootstrap}
    voters = (f"{voter_id}@{address}" for voter_id, address in enumerate(bootstrap.split(","), node_id))
    return {"controller.quorum.voters": ",".join(voters)}


class KafkaServer(ChildProcess):
    """Base of Kafka's broker and controller processes: properties, formatted storage, ``kafka.Kafka``."""

    def __init__(self, name: str, directory: Path, cluster_id: str, version: str) -> None:
        super().__init__(name, directory / "server.log")
        self.directory = directory
        self.cluster_id = cluster_id
        self.version = version
        self.host = "127.0.0.1"
        self.port = free_port()
        self.properties: dict[str, str] = {}
        self.heap: Sequence[str] = _SMALL_HEAP

    @property
    def bootstrap(self) -> str:
        """``host:port`` of its listener."""
        return f"{self.host}:{self.port}"

    def write_properties(self) -> Path:
        """Write ``server.properties`` and return its path."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "server.properties"
        write_private(path, java_properties.write({key: str(value) for key, value in self.properties.items()}))
        return path

    def format(self, *options: str) -> str:
        """Format its folders as ``kafka-storage format`` does and return what the tool printed."""
        path = self.write_properties()
        return KafkaTool("kafka-storage", self.version).run("format", "-t", self.cluster_id, "-c", str(path), *options)

    def start(self) -> None:
        """Start ``kafka.Kafka`` with the properties as they are now."""
        path = self.write_properties()
        self.launch(java_command(self.version, self.heap, "kafka.Kafka", str(path)))

    def __enter__(self) -> Self:
        """Format its folders and start it; it may still be starting, or end by itself."""
        self.format()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()


class KafkaBroker(KafkaServer):
    """One real broker with its folders below ``directory``: ``meta`` for the metadata log, ``d0``, ``d1``… for data.

    ``directory`` is its own, made when it is not there; ``controller`` is ``host:port`` of the controller, or of
    several, whose node ids are 3000, 3001, …; ``version`` is a Kafka release. ``properties`` are more of
    ``server.properties``, or other values than the ones for small clusters used here. Clients find it on
    ``port``, any free one unless given, or on the first of its ``listeners`` there. Brokers of a quorum at
    kraft.version 0 need ``controller.quorum.voters`` among them; it stands in for ``controller``.
    """

    def __init__(
        self,
        node_id: int,
        directory: Path,
        cluster_id: str,
        controller: str,
        *,
        version: str = KAFKA_VERSION,
        log_dir_count: int = 2,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"broker {node_id}", directory, cluster_id, version)
        self.host, self.port = _client_address(port, properties or {}) or (self.host, self.port)
        self.node_id = node_id
        self.log_dirs = [directory / f"d{index}" for index in range(log_dir_count)]
        self.metadata_log_dir = directory / "meta"
        self.properties = {
            "process.roles": "broker",
            "node.id": str(node_id),
            **({} if "controller.quorum.voters" in (properties or {}) else quorum_properties(version, controller)),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "metadata.log.dir": str(self.metadata_log_dir),
            # The default of 128 MiB is allocated at start and does not fit into a small heap.
            "log.cleaner.dedupe.buffer.size": "2097152",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            **(properties or {}),
        }

    def wait_until_running(self, timeout_s: float = 60) -> float:
        """Wait until the broker is unfenced and has started; return the seconds that this took.

        Raises KafkaProcessError if it ends or takes too long.
        """
        began = time.monotonic()
        self.wait_for_log(r"Kafka Server started", timeout_s, "the end of its start")
        return time.monotonic() - began


def _client_address(port: int | None, properties: Mapping[str, str]) -> tuple[str, int] | None:
    """Return where clients find a broker with this port, or with listeners in its properties; None: on any free port.

    Raises ValueError for two ports, and for listeners whose port nobody knows.
    """
    if "listeners" not in properties:
        return None if port is None else ("127.0.0.1", port)
    listeners, controllers = properties["listeners"], properties.get("controller.listener.names", "CONTROLLER")
    for listener in listeners.split(","):
        name, separator, address = listener.strip().partition("://")
        host, colon, number = address.rpartition(":")
        if not (separator and colon and number.isdecimal()):
            raise ValueError(f"properties: listeners={listeners!r}: it must be NAME://HOST:PORT,…")
        if name in controllers.split(","):
            continue
        if int(number) == 0:
            raise ValueError(f"properties: listeners={listeners!r}: clients would not find port 0; give a free port")
        if port not in (None, int(number)):
            raise ValueError(f"port={port} contradicts listeners={listeners!r} of the properties")
        return ("127.0.0.1" if host in ("", "0.0.0.0") else host), int(number)
    return None


class KafkaController(KafkaServer):
    """One real controller, alone in its quorum, in a ``directory`` of its own, made when it is not there.

    ``version`` is the Kafka release that it runs, ``release_version`` what to format it with, for instance ``4.1-IV1``
    (None for the release's default); ``properties`` are more of ``server.properties``.
    """

    def __init__(
        self,
        directory: Path,
        cluster_id: str,
        *,
        node_id: int = 3000,
        version: str = KAFKA_VERSION,
        release_version: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"controller {node_id}", directory, cluster_id, version)
        self.node_id = node_id
        self.release_version = release_version
        self.properties = {
            "process.roles": "controller",
            "node.id": str(node_id),
            **quorum_properties(version, self.bootstrap, node_id),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{self.bootstrap}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(directory / "log"),
            **(properties or {}),
        }

    def format(self, *options: str) -> str:
        """Format its folder for a quorum of one and return what the tool printed."""
        quorum = ("--standalone",) if has_dynamic_quorum(self.version) else ()
        release = ("--release-version", self.release_version) if self.release_version else ()
        return super().format(*quorum, *release, *options)

    def wait_until_running(self, timeout_s: float = 60) -> float:
        """Wait until it has started and leads, or follows a leader; return the seconds that this took."""
        began = time.monotonic()
        self.wait_for_log(r"Kafka Server started", timeout_s, "the end of its start")
        # Until then it refuses with NOT_CONTROLLER what only the active controller does.
        self.wait_for_log(r"Becoming the active controller|the leader is \d", timeout_s, "a leader")
        return time.monotonic() - began

"""A cluster on this machine: real Kafka brokers with mockraft, or Kafka's own controller, as their only controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import ChildProcess, KafkaBroker, KafkaController, has_dynamic_quorum, random_uuid
from mockraft.kafka.security import ListenerSecurity
from mockraft.releases import release as release_of
from mockraft.wire.spec_files import sort_key

ControllerKind = Literal["mockraft", "kafka"]


class KafkaCluster:
    """Brokers 1, 2, … and one controller, each in a folder of its own below ``directory``.

    As a context manager it starts on entry and has no process left on exit, however the block ended.

    ``versions`` are the Kafka versions of the brokers: ``("4.1.2",) * 3`` is three brokers. The controller is of the
    newest of these releases (or ``release``) and starts with the metadata.version of the oldest (or
    ``metadata_version``, as 4.1-IV1). ``log_dir_count`` is the number of data folders of each broker.
    ``broker_properties`` and ``controller_properties`` are more of ``server.properties``; mockraft gets them as options
    of the same name: ``num.partitions`` is ``--num-partitions``. ``security`` is None for PLAINTEXT.
    """

    def __init__(
        self,
        directory: Path,
        *,
        controller: ControllerKind = "mockraft",
        versions: Sequence[str] = (KAFKA_VERSION,) * 3,
        release: str | None = None,
        metadata_version: str | None = None,
        session_timeout_ms: int = 9_000,
        log_dir_count: int = 2,
        broker_properties: Mapping[str, str] | None = None,
        controller_properties: Mapping[str, str] | None = None,
        security: ListenerSecurity | None = None,
    ) -> None:
        self.cluster_id = random_uuid()
        self.security = security
        properties = dict(controller_properties or {})
        ordered = sorted(versions or (KAFKA_VERSION,), key=sort_key)
        metadata_version = metadata_version or release_of(ordered[0]).line
        self.controller: KafkaController | MockraftController
        if controller == "kafka":
            self.controller = KafkaController(
                directory / "controller",
                self.cluster_id,
                version=release_of(release).kafka_version if release else ordered[-1],
                release_version=metadata_version,
                properties={
                    "broker.session.timeout.ms": str(session_timeout_ms),
                    **(security.controller_properties if security else {}),
                    **properties,
                },
            )
        else:
            self.controller = MockraftController(
                directory / "controller",
                self.cluster_id,
                release=release_of(release or ordered[-1]).name,
                options=[
                    *("--metadata-version", metadata_version),
                    *(() if has_dynamic_quorum(ordered[0]) else ("--feature", "kraft.version=0")),
                    *("--session-timeout-ms", str(session_timeout_ms)),
                    *(security.serve_options if security else ()),
                    *(text for key, value in properties.items() for text in (f"--{key.replace('.', '-')}", value)),
                ],
            )
        self.brokers = {
            node_id: KafkaBroker(
                node_id,
                directory / f"broker-{node_id}",
                self.cluster_id,
                self.controller.bootstrap,
                version=version,
                log_dir_count=log_dir_count,
                properties={**(security.broker_properties if security else {}), **(broker_properties or {})},
            )
            for node_id, version in enumerate(versions, start=1)
        }

    @property
    def bootstrap_servers(self) -> str:
        """Bootstrap servers for clients: every broker's ``host:port``."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def processes(self) -> Iterator[ChildProcess]:
        """The controller, then the brokers."""
        yield self.controller
        yield from self.brokers.values()

    def format(self) -> None:
        """Format the folders of every process that has any."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            if isinstance(self.controller, KafkaController):
                pool.submit(self.controller.format, *(self.security.format_options if self.security else ())).result()
            for done in [pool.submit(broker.format) for broker in self.brokers.values()]:
                done.result()

    def start(self, timeout_s: float = 60) -> None:
        """Start the formatted cluster and wait until all brokers are RUNNING.

        Raises KafkaProcessError if one of them ends first.
        """
        self.controller.start()
        self.controller.wait_until_running(timeout_s)
        for broker in self.brokers.values():
            broker.start()
        for broker in self.brokers.values():
            broker.wait_until_running(timeout_s)

    def restart_controller(self, release: str) -> None:
        """Stop the controller and start one of another release ("4.4") on the same log."""
        self.controller.stop()
        if isinstance(self.controller, KafkaController):
            self.controller.version = release_of(release).kafka_version
        else:
            self.controller.release = release_of(release).name
        self.controller.start()
        self.controller.wait_until_running()

    def restart_broker(self, node_id: int, version: str) -> None:
        """Stop a broker by a controlled shutdown and start another Kafka version ("4.4.0") on the same folders."""
        broker = self.brokers[node_id]
        broker.stop()
        broker.version = version
        broker.start()
        broker.wait_until_running()

    def stop(self, timeout_s: float = 30) -> None:
        """Close the brokers in parallel and then the controller, each with SIGTERM.

        Raises KafkaProcessError if one of them does not end.
        """
        for broker in self.brokers.values():
            broker.terminate()
        for process in (*self.brokers.values(), self.controller):
            if process.running:
                process.stop(timeout_s)

    def kill(self) -> None:
        """End whatever still runs, at once."""
        for process in self.processes:
            process.kill()

    def __enter__(self) -> Self:
        try:
            self.format()
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

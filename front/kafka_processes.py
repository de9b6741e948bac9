"""Kafka's own processes: brokers, the real controller and the command line tools, each in a JVM with a small heap."""

from __future__ import annotations

import base64
import os
import random
import re
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from mockraft.kafka_jars import classpath, java

T = TypeVar("T")

_JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
_SERVER_HEAP = ("-Xms32m", "-Xmx96m")
_TOOL_HEAP = ("-Xmx96m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")

# The names of the scripts in a Kafka distribution's bin folder, and the classes behind them.
_TOOL_CLASSES = {
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
_TOOL_CLASSES_3_9 = {"kafka-console-producer": "kafka.tools.ConsoleProducer"}

_ports_given: set[int] = set()


class KafkaProcessError(RuntimeError):
    """A Kafka process did not do what was waited for; the message ends with the last lines of its log."""


def random_uuid() -> str:
    """A fresh cluster or directory id in Kafka's form: 16 bytes, base64url without padding, no leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nothing listens on and that was not given before.

    It lies below the range the system takes the ports of outgoing connections from: a client that keeps trying to
    reach a stopped broker cannot take the broker's port, or connect to itself through it.
    """
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(20_000, 32_000)
        if port in _ports_given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _ports_given.add(port)
        return port


def wait_until(condition: Callable[[], T], timeout_s: float, what: str) -> T:
    """Call ``condition`` until it gives something true, and return that.

    Raises:
        TimeoutError: it did not within ``timeout_s``; the message is ``what``.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        if outcome := condition():
            return outcome
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.02)


class ServerProcess:
    """One child process in a session of its own (a Ctrl-C in the terminal does not reach it), its output in a file."""

    def __init__(self, name: str, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """The process id of the newest start."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended (negative: the signal's number), or None while it runs or before it was started."""
        return None if self._process is None else self._process.poll()

    @property
    def whole_log(self) -> str:
        """What all starts of this process have printed."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def log(self) -> str:
        """What the newest start has printed."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def launch(self, command: Sequence[str]) -> None:
        """Start the process; its output is appended to the log file."""
        assert not self.running, f"{self.name} runs already"
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait_for_log(self, pattern: str, timeout_s: float = 30) -> re.Match[str]:
        """Wait until the newest start's log has a match of the regular expression, and return the first.

        Raises:
            KafkaProcessError: the process ended without it, or the time is over.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            ended = not self.running
            if found := re.search(pattern, self.log):
                return found
            if ended:
                raise KafkaProcessError(f"{self.name} ended ({self.exit_code}) before {pattern!r}{self.last_lines()}")
            if time.monotonic() > deadline:
                raise KafkaProcessError(f"{self.name}: no {pattern!r} in {timeout_s:g} s{self.last_lines()}")
            time.sleep(0.02)

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM) and return at once."""
        if self.running:
            os.kill(self.pid, signal.SIGTERM)

    def wait(self, timeout_s: float = 30) -> int:
        """Wait for the end of the process and return its exit code.

        Raises:
            KafkaProcessError: it still runs after ``timeout_s``.
        """
        assert self._process is not None, f"{self.name} was not started"
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise KafkaProcessError(f"{self.name} still runs after {timeout_s:g} s{self.last_lines()}") from None

    def stop(self, timeout_s: float = 30) -> int:
        """SIGTERM, wait, and return the exit code (143 for a JVM that closed cleanly)."""
        self.terminate()
        return self.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL the process, if it runs, and wait for its end; no error when it was never started."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def last_lines(self) -> str:
        """The end of the newest start's log as lines to put below an error."""
        return "\n  | " + "\n  | ".join(self.log.splitlines()[-25:])


class KafkaServer(ServerProcess):
    """What a broker and a controller of Kafka share: properties, formatted storage, ``kafka.Kafka``."""

    def __init__(self, name: str, directory: Path, cluster_id: str, version: str) -> None:
        super().__init__(name, directory / "server.log")
        self.directory = directory
        self.cluster_id = cluster_id
        self.version = version
        self.host = "127.0.0.1"
        self.port = free_port()
        self.properties: dict[str, str] = {}

    @property
    def bootstrap(self) -> str:
        """``host:port`` of its listener."""
        return f"{self.host}:{self.port}"

    def write_properties(self) -> Path:
        """Write ``server.properties`` and return its path."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.properties.items()))
        return path

    def format(self, *options: str) -> str:
        """Format its folders as ``kafka-storage format`` does and return what the tool printed."""
        path = self.write_properties()
        return KafkaTool("kafka-storage", self.version).run("format", "-t", self.cluster_id, "-c", str(path), *options)

    def start(self) -> None:
        """Start ``kafka.Kafka`` with the properties as they are now."""
        path = self.write_properties()
        options = [*_SERVER_HEAP, *_JVM_OPTIONS]
        self.launch([java(), *options, "-cp", classpath(self.version), "kafka.Kafka", str(path)])


class KafkaBroker(KafkaServer):
    """One real broker with its folders below ``directory``: ``meta`` for the metadata log, ``d0``, ``d1``… for data.

    Args:
        node_id: its ``node.id``.
        directory: its own folder; made when it is not there.
        cluster_id: the cluster's id.
        controller: ``host:port`` of the controller (``controller.quorum.bootstrap.servers``).
        version: the Kafka release it runs.
        log_dir_count: how many data folders it has.
        properties: more of ``server.properties``, or other values than the ones for small clusters used here.
    """

    def __init__(
        self,
        node_id: int,
        directory: Path,
        cluster_id: str,
        controller: str,
        *,
        version: str = "4.3.1",
        log_dir_count: int = 2,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"broker {node_id}", directory, cluster_id, version)
        self.node_id = node_id
        self.log_dirs = [directory / f"d{index}" for index in range(log_dir_count)]
        self.metadata_log_dir = directory / "meta"
        self.properties = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "controller.quorum.bootstrap.servers": controller,
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

        Raises:
            KafkaProcessError: it ended, or the time is over; with the end of its log.
        """
        began = time.monotonic()
        self.wait_for_log(r"Kafka Server started", timeout_s)
        return time.monotonic() - began


class KafkaController(KafkaServer):
    """One real controller, alone in its quorum.

    Args:
        directory: its own folder; made when it is not there.
        cluster_id: the cluster's id.
        version: the Kafka release it runs.
        release_version: what to format it with, for instance ``4.1-IV1``; None for the release's default.
        properties: more of ``server.properties``.
    """

    def __init__(
        self,
        directory: Path,
        cluster_id: str,
        *,
        node_id: int = 3000,
        version: str = "4.3.1",
        release_version: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"controller {node_id}", directory, cluster_id, version)
        self.node_id = node_id
        self.release_version = release_version
        self.properties = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.quorum.bootstrap.servers": self.bootstrap,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{self.bootstrap}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(directory / "log"),
            **(properties or {}),
        }

    def format(self, *options: str) -> str:
        """Format its folder for a quorum of one and return what the tool printed."""
        release = ("--release-version", self.release_version) if self.release_version else ()
        return super().format("--standalone", *release, *options)

    def wait_until_running(self, timeout_s: float = 60) -> float:
        """Wait until it has started as the leader; return the seconds that this took."""
        began = time.monotonic()
        self.wait_for_log(r"Kafka Server started", timeout_s)
        return time.monotonic() - began


class KafkaTool:
    """One of Kafka's command line tools, by the name of its script: ``KafkaTool("kafka-topics").run("--list", …)``.

    Args:
        name: a script of Kafka's ``bin`` folder without ``.sh``, or the full name of a Java class.
        version: the Kafka release it comes from.
    """

    def __init__(self, name: str, version: str = "4.3.1") -> None:
        self.name = name
        self.version = version
        classes = {**_TOOL_CLASSES, **(_TOOL_CLASSES_3_9 if version.startswith("3.") else {})}
        self.main_class = classes.get(name, name)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the tool with pipes for all that it reads and prints; the caller ends it."""
        return subprocess.Popen(
            [java(), *_TOOL_HEAP, *_JVM_OPTIONS, "-cp", classpath(self.version), self.main_class, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, stdin: str = "", timeout_s: float = 60) -> str:
        """Run the tool to its end and return its standard output.

        Raises:
            KafkaProcessError: it failed or ran longer than ``timeout_s``; with all it printed.
        """
        with self.start(*arguments) as process:
            try:
                output, errors = process.communicate(stdin, timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
                told = f"{self._told(arguments)} ran over {timeout_s:g} s:\n{output}{errors}"
                raise KafkaProcessError(told) from None
        if process.returncode != 0:
            raise KafkaProcessError(f"{self._told(arguments)} exit {process.returncode}:\n{output}{errors}")
        return output

    def _told(self, arguments: Sequence[str]) -> str:
        return " ".join([self.name, *arguments])

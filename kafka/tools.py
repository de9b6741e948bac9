"""Kafka's command line tools, run from its jars, and the archive of classes with which its processes start sooner."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mockraft.kafka.child_process import ChildProcess, KafkaProcessError, free_port
from mockraft.kafka.jars import KAFKA_VERSION, cache_directory, classpath, java, java_release, only_one
from mockraft.wire.spec_files import sort_key

_START_TIMEOUT_S = 120
_END_TIMEOUT_S = 120
# What a JVM says of archives goes to standard output, where a tool's answer is read.
_SILENT = "-Xlog:disable"
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


@lru_cache
def class_archive_options(version: str, jvm_options: tuple[str, ...]) -> list[str]:
    """The JVM's options for a release's archive, which is made when it is not in the cache; none if that fails.

    `jvm_options` are what the release's processes are run with: an archive belongs to a garbage collector.
    """
    archive = cache_directory() / f"kafka-{version}-java-{java_release()}.jsa"
    if not archive.is_file():
        with only_one(archive.with_suffix(".lock")):
            if not archive.is_file():
                _make(archive, version, jvm_options)
    return [_SILENT, f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []


def _make(archive: Path, version: str, jvm_options: Sequence[str]) -> None:
    """Run a server of one until it has started; when it ends its JVM writes down which classes it had."""
    with TemporaryDirectory(prefix=archive.stem, dir=archive.parent) as folder:
        properties, made = Path(folder, "server.properties"), Path(folder, "made.jsa")
        properties.write_text(_properties(folder))
        run = [java(), *jvm_options, _SILENT]
        named = ["-cp", classpath(version)]
        formatted = subprocess.run(
            [*run, *named, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(properties)],
            capture_output=True,
            check=False,
        )
        if formatted.returncode != 0:
            return
        server = ChildProcess("the server that is archived", Path(folder, "server.log"))
        try:
            server.launch([*run, f"-XX:ArchiveClassesAtExit={made}", *named, "kafka.Kafka", str(properties)])
            server.wait_for_log("Kafka Server started", _START_TIMEOUT_S)
            server.stop(_END_TIMEOUT_S)
        except KafkaProcessError:
            return
        finally:
            server.kill()
        if made.is_file():
            os.replace(made, archive)


def _properties(folder: str) -> str:
    broker, controller = free_port(), free_port()
    return f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
log.cleaner.dedupe.buffer.size=2097152
"""


JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
"""For a quick start in little memory, with times in the log."""

_TOOL_HEAP = ("-Xmx96m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")

# The names of the scripts in a Kafka distribution's bin folder, and the classes behind them.
TOOL_CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "org.apache.kafka.tools.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
# Tools that were another class once, and the first release that has the class above.
_OLDER_TOOL_CLASSES = {
    "kafka-configs": ("kafka.admin.ConfigCommand", "4.4"),
    "kafka-console-consumer": ("kafka.tools.ConsoleConsumer", "3.8"),
    "kafka-console-producer": ("kafka.tools.ConsoleProducer", "4.0"),
    "kafka-consumer-groups": ("kafka.admin.ConsumerGroupCommand", "3.8"),
}


def java_command(version: str, options: Sequence[str], main_class: str, *arguments: str) -> list[str]:
    """The command that runs a class of a Kafka release with these JVM options. Raises KafkaUnavailableError."""
    classes = classpath(version)
    archive = class_archive_options(version, JVM_OPTIONS)
    return [java(), *options, *JVM_OPTIONS, *archive, "-cp", classes, main_class, *arguments]


class KafkaTool:
    """One of Kafka's command line tools, by the name of its script: ``KafkaTool("kafka-topics").run("--list", …)``.

    Its ``name`` may also be the full name of a Java class; ``version`` is the Kafka release it comes from.
    Maven has no ``kafka-metadata-shell`` after 4.3.1.
    """

    def __init__(self, name: str, version: str = KAFKA_VERSION) -> None:
        self.name = name
        self.version = version
        older, since = _OLDER_TOOL_CLASSES.get(name, ("", ""))
        self.main_class = older if sort_key(version) < sort_key(since) else TOOL_CLASSES.get(name, name)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the tool with pipes for all that it reads and prints; the caller ends it."""
        return subprocess.Popen(
            java_command(self.version, _TOOL_HEAP, self.main_class, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, stdin: str = "", timeout_s: float = 60) -> str:
        """Run the tool to its end and return its standard output. KafkaProcessError has all it printed."""
        with self.start(*arguments) as process:
            try:
                output, errors = process.communicate(stdin, timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
                message = f"{self._command_line(arguments)} ran over {timeout_s:g} s:\n{output}{errors}"
                raise KafkaProcessError(message) from None
        if process.returncode != 0:
            raise KafkaProcessError(f"{self._command_line(arguments)} exit {process.returncode}:\n{output}{errors}")
        return output

    def _command_line(self, arguments: Sequence[str]) -> str:
        return " ".join([self.name, *arguments])

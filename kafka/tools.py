"""Kafka's command line tools, run from its jars."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.class_archive import class_archive_options
from mockraft.kafka.jars import KAFKA_VERSION, classpath, java
from mockraft.wire.spec_files import sort_key

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

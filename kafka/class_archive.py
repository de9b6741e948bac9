"""Kafka's classes as the JVM shares them, archived once for a release: its processes start in half the processor time.

Source: JEP 350, dynamic class-data sharing archives. A JVM that finds the archive is not made of its own classes and
jars runs without it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mockraft.kafka.child_process import ChildProcess, KafkaProcessError, free_port
from mockraft.kafka.jars import cache_directory, classpath, java, java_release, only_one

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

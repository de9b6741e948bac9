"""A JVM that stays and runs Kafka's tools one after another: a tool costs what it does, not the start of a JVM."""

from __future__ import annotations

import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from unittest import mock

from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.jars import KAFKA_VERSION, classpath, java
from mockraft.kafka.tools import KafkaTool, java_command

HEAP = ("-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
SOURCE = Path(__file__).parents[1] / "oracle_java" / "ToolRunner.java"

_run_in_a_jvm_of_its_own = KafkaTool.run


class ToolJvm:
    """Starts with the first tool, and again after one that left something running in it."""

    def __init__(self, classes: Path) -> None:
        self._classes = classes
        self._process: subprocess.Popen[bytes] | None = None
        self._one_at_a_time = threading.Lock()

    def run(self, tool: KafkaTool, *arguments: str, stdin: str = "", timeout_s: float = 60) -> str:
        """`KafkaTool.run`; what reads standard input and other releases' tools have a JVM of their own."""
        if stdin or tool.version != KAFKA_VERSION:
            return _run_in_a_jvm_of_its_own(tool, *arguments, stdin=stdin, timeout_s=timeout_s)
        with self._one_at_a_time:
            code, output, errors = self._ask([tool.main_class, *arguments], timeout_s)
        command = " ".join([tool.name, *arguments])
        if code is None:
            raise KafkaProcessError(f"{command} ended its JVM, or ran over {timeout_s:g} s")
        if code != 0:
            raise KafkaProcessError(f"{command} exit {code}:\n{output}{errors}")
        return output

    def stop(self) -> None:
        """End the JVM, if one runs."""
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.kill()

    def _ask(self, command: list[str], timeout_s: float) -> tuple[int | None, str, str]:
        """Exit code (None: the JVM is gone), standard output and standard error."""
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        too_long = threading.Timer(timeout_s, process.kill)
        too_long.start()
        try:
            words = [word.encode() for word in command]
            process.stdin.write(struct.pack(">i", len(words)) + b"".join(struct.pack(">H", len(w)) + w for w in words))
            process.stdin.flush()
            (code,) = struct.unpack(">i", _exactly(process.stdout, 4))
            output, errors = (_text(process.stdout) for _ in range(2))
            if _exactly(process.stdout, 1) == b"\0":
                self.stop()
        except (OSError, EOFError):
            self.stop()
            return None, "", ""
        finally:
            too_long.cancel()
        return code, output, errors

    def _start(self) -> subprocess.Popen[bytes]:
        if not self._classes.is_dir():
            compiler = str(Path(java()).resolve().with_name("javac"))
            subprocess.run(
                [compiler, "-cp", classpath(KAFKA_VERSION), "-d", str(self._classes), str(SOURCE)], check=True
            )
        command = java_command(KAFKA_VERSION, HEAP, "ToolRunner")
        # Behind the jars: the archive of classes is for what the class path begins with.
        command[command.index("-cp") + 1] += f":{self._classes}"
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


@contextmanager
def tools_in_one_jvm(folder: Path) -> Iterator[None]:
    """As long as the block runs, `KafkaTool.run` starts no JVMs."""
    jvm = ToolJvm(folder / "classes")

    def run(tool: KafkaTool, *arguments: str, stdin: str = "", timeout_s: float = 60) -> str:
        return jvm.run(tool, *arguments, stdin=stdin, timeout_s=timeout_s)

    try:
        with mock.patch.object(KafkaTool, "run", run):
            yield
    finally:
        jvm.stop()


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def _text(stream: IO[bytes]) -> str:
    (length,) = struct.unpack(">i", _exactly(stream, 4))
    return _exactly(stream, length).decode()

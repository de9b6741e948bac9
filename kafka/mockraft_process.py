"""``mockraft serve`` as a child process, with the same handles that Kafka's own processes have."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from mockraft.kafka.child_process import ChildProcess, KafkaProcessError, free_port


class MockraftController(ChildProcess):
    """A mockraft controller, or a quorum of several with ports in a row, in a process of its own.

    ``directory`` has its log and, with ``keep_data``, its data folder ``data``, so that a restart carries on; it is
    made when it is not there. ``options`` are more options of ``mockraft serve``. ``release``, or None for mockraft's
    default, may be changed between two starts: the log goes on.
    """

    def __init__(
        self,
        directory: Path,
        cluster_id: str,
        *,
        release: str | None = None,
        controllers: int = 1,
        keep_data: bool = True,
        options: Sequence[str] = (),
    ) -> None:
        super().__init__("mockraft controller", directory / "server.log")
        self.cluster_id = cluster_id
        self.data_dir = directory / "data" if keep_data else None
        self.host = "127.0.0.1"
        self.port = free_port(controllers)
        self.controllers = controllers
        self.release = release
        own = {
            "--host": self.host,
            "--port": self.port,
            "--cluster-id": cluster_id,
            "--data-dir": self.data_dir,
            "--controllers": controllers,
        }
        self.options = [*_arguments(own), *options]

    @property
    def bootstrap(self) -> str:
        """``host:port`` of every node's listener, with commas between."""
        return ",".join(f"{self.host}:{port}" for port in range(self.port, self.port + self.controllers))

    def start(self) -> None:
        """Start ``mockraft serve``; it accepts connections once `wait_until_running` returns."""
        if self.data_dir is not None:
            self.data_dir.mkdir(parents=True, exist_ok=True)
        self.launch(
            [sys.executable, "-m", "mockraft", "serve", *_arguments({"--release": self.release}), *self.options]
        )

    def wait_until_running(self, timeout_s: float = 60) -> float:
        """Wait for the ready line and return the seconds that this took.

        KafkaProcessError when the process ended, the time is over, or it is ready under another address or cluster.
        """
        began = time.monotonic()
        ready = self.wait_for_log(r"mockraft ready bootstrap=(\S+) cluster_id=(\S+)", timeout_s, "its ready line")
        if ready.groups() != (self.bootstrap, self.cluster_id):
            raise KafkaProcessError(f"{self.name} came up as {ready[0]!r}, not as {self.bootstrap} {self.cluster_id}")
        return time.monotonic() - began


def _arguments(options: Mapping[str, object]) -> list[str]:
    return [text for flag, value in options.items() if value is not None for text in (flag, str(value))]

"""A simulated broker inside the test's own process, with asyncio or without."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Sequence
from typing import Any, Self

from mockraft import brokers
from mockraft.brokers.config import endpoint_of
from mockraft.brokers.config_on_disk import draw_config_on_disk
from mockraft.brokers.directory_view import LogDirView
from mockraft.brokers.disk_faults import AnyLogDir
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.moves.progress import MoveProgress
from mockraft.loop_thread import InLoopThread, LoopThread


class SimulatedBroker(brokers.SimulatedBroker):
    """A broker that registers, replicates the metadata log, heartbeats and shuts down; see `joining`.

    async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1) as broker:
        await broker.wait_until(BrokerState.RUNNING)
    """

    @classmethod
    def joining(
        cls,
        bootstrap: str,
        cluster_id: str,
        broker_id: int,
        *,
        seed: int | None = None,
        log_dirs: Sequence[str | os.PathLike[str]] = (),
        metadata_log_dir: str | os.PathLike[str] | None = None,
        format_missing: bool = True,
        **options: Any,
    ) -> Self:
        """A broker for the controllers at `bootstrap`: host:port, or several with commas between, else ValueError.

        `log_dirs` are directories on the file system, each formatted unless it is already; with `format_missing` off
        they must be, as Kafka wants it. LogDirsError when they cannot be used. Without any it is all in memory.
        `metadata_log_dir` is the one without which it cannot live, the first unless given. Clients are served on
        `host` and `port`, any free one unless given; `serve_clients=False` for a broker that only its controller
        sees. Other options are those of `BrokerConfig` by name: `rack`, `session_timeout_ms`, …
        """
        options = {"serve_clients": True} | options
        if not log_dirs:
            return super().joining(bootstrap, cluster_id, broker_id, seed=seed, **options)
        addresses = tuple(map(endpoint_of, bootstrap.split(",")))
        config = draw_config_on_disk(
            broker_id,
            cluster_id,
            addresses,
            random.Random(seed),
            [os.fspath(path) for path in log_dirs],
            metadata_log_dir=None if metadata_log_dir is None else os.fspath(metadata_log_dir),
            format_missing=format_missing,
            **options,
        )
        return cls(config)

    @classmethod
    def sync(cls, bootstrap: str, cluster_id: str, broker_id: int, **options: Any) -> SyncSimulatedBroker:
        """The same for a test without asyncio: `with SimulatedBroker.sync(…) as broker`; options as of `joining`."""
        return SyncSimulatedBroker(cls.joining(bootstrap, cluster_id, broker_id, **options))


class SyncSimulatedBroker(InLoopThread):
    """A simulated broker in a thread of its own, as long as the `with` block lasts; made by `SimulatedBroker.sync`.

    With a `thread` it is in that one, which runs already (the controller's, of `SyncController.start_broker`).
    """

    def __init__(self, broker: brokers.SimulatedBroker, thread: LoopThread | None = None) -> None:
        super().__init__(f"mockraft-broker-{broker.config.broker_id}", broker, thread)
        self.broker = broker
        """The broker itself; touch it through `call` only."""

    @property
    def broker_id(self) -> int:
        """Its node id."""
        return self.broker.config.broker_id

    @property
    def state(self) -> BrokerState:
        """Where the broker is in its life."""
        return self.call(lambda: self.broker.state)

    @property
    def epitaph(self) -> str:
        """Why it is over, for people; empty while it is not."""
        return self.call(lambda: self.broker.epitaph)

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find this broker, host:port. RuntimeError for a broker that serves none."""
        return self.call(lambda: self.broker.bootstrap_servers)

    @property
    def log_dirs(self) -> dict[str, LogDirView]:
        """Every configured log directory by path, those that are offline too."""
        return self.call(lambda: self.broker.log_dirs)

    @property
    def moves(self) -> tuple[MoveProgress, ...]:
        """The moves between its directories that are under way."""
        return self.call(lambda: self.broker.moves)

    def move_replica(self, topic: str, partition: int, path: str | os.PathLike[str]) -> None:
        """Move a replica to another of its directories and return when it serves from there.

        Raises MoveRefusedError when the move does not begin, MoveEndedError when it ends early.
        """
        self._thread.run(self.broker.move_replica(topic, partition, path))

    def fail_log_dir(self, log_dir: AnyLogDir) -> None:
        """Break a directory, named by its path or id: all I/O there fails. LookupError for one it has not."""
        self.call(self.broker.fail_log_dir, log_dir)

    def fill_log_dir(self, log_dir: AnyLogDir) -> None:
        """Leave no space: the next write there gets ENOSPC."""
        self.call(self.broker.fill_log_dir, log_dir)

    def slow_log_dir(self, log_dir: AnyLogDir, ms: float) -> None:
        """Let a directory take `ms` longer."""
        self.call(self.broker.slow_log_dir, log_dir, ms)

    def flaky_log_dir(self, log_dir: AnyLogDir, probability: float, seed: int = 0) -> None:
        """Let each operation there fail by chance, the same ones for the same seed. ValueError."""
        self.call(self.broker.flaky_log_dir, log_dir, probability, seed)

    def heal_log_dir(self, log_dir: AnyLogDir) -> None:
        """Let a directory work again. One that is offline stays so until the broker is started again."""
        self.call(self.broker.heal_log_dir, log_dir)

    def corrupt(self, path: str | os.PathLike[str], position: int | None = None, count: int = 1) -> None:
        """Flip the bits of `count` bytes of a file below a directory. LookupError, FileNotFoundError, ValueError."""
        self.call(self.broker.corrupt, path, position, count)

    def fail_file(self, path: str | os.PathLike[str], error: int = errno.EIO) -> None:
        """Let I/O on one file, or in the directory of one replica, fail with this errno. LookupError."""
        self.call(self.broker.fail_file, path, error)

    def wait_until(self, state: BrokerState, timeout_ms: int = 30_000) -> None:
        """Return once the broker is in `state`. Raises TimeoutError, RuntimeError when it stopped before."""
        self._thread.run(self.broker.wait_until(state, timeout_ms))

    def shut_down(self, timeout_ms: int = 300_000) -> None:
        """Controlled shutdown: wait for the controller's leave, at most `timeout_ms`, then stop."""
        self._thread.run(self.broker.shut_down(timeout_ms))

    def kill(self) -> None:
        """Stop at once without a word, as kill -9 does."""
        self._thread.run(self.broker.kill())

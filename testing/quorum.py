"""Several controllers inside the test's own process, and what a test does to them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self, Unpack

from mockraft.kafka_api.clock import Clock
from mockraft.kafka_api.option_types import check_option
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.data_dir import cluster_id_of
from mockraft.server.double import Double
from mockraft.server.running import RunningController
from mockraft.server.running_quorum import PATIENCE_S, RunningQuorum, folder
from mockraft.server.stubs.stub import Stub
from mockraft.testing.blocking import blocking, constant, reads
from mockraft.testing.controller import clock_of, configured
from mockraft.testing.double import BlockingDoubleApi, script_of
from mockraft.testing.in_loop import DoubleInLoop
from mockraft.testing.options import ConfigOptions, ControllerOptions


class Quorum(DoubleInLoop):
    """A quorum of KRaft controllers on ports of the loopback, for as long as the `async with` block lasts.

    Node ids go up from `node_id` (3000), ports from `port` (0: each takes a free one). Other options are those of
    `Controller`. Without a `data_dir` the logs are in a temporary folder, so that a killed node finds its own again.
    With one that was used before, `port` must be the one it was used with, as the log names the ports.

        async with Quorum(3) as quorum:
            properties["controller.quorum.bootstrap.servers"] = quorum.bootstrap
            await quorum.elect(3001)
    """

    def __init__(
        self,
        controllers: int = 3,
        config: ControllerConfig | None = None,
        *,
        clock: Clock | Literal["virtual"] | None = None,
        strict: bool = False,
        stubs: str | Path | Iterable[Stub] = (),
        admin_port: int | None = None,
        **options: Unpack[ConfigOptions],
    ) -> None:
        check_option("controllers", controllers, int, 1)
        self.controllers = controllers
        self._rng = random.Random(options.get("seed"))
        if config is None and (data_dir := options.get("data_dir")):
            found = cluster_id_of(folder(Path(data_dir), options.get("node_id", ControllerConfig().node_id)))
            if found:
                options.setdefault("cluster_id", found)
        self._clock = clock_of(clock)
        self._running: RunningQuorum | None = None
        self._script = script_of(strict, stubs)
        double = Double(lambda: self.running.nodes, self._script, lambda: self.running.journals)
        super().__init__(configured(config, self._rng, **options), double, admin_port)

    @classmethod
    def sync(
        cls,
        controllers: int = 3,
        config: ControllerConfig | None = None,
        **options: Unpack[ControllerOptions],
    ) -> SyncQuorum:
        """The same for a test without asyncio: `with Quorum.sync(3) as quorum`; it runs in a thread of its own."""
        return SyncQuorum(cls(controllers, config, **options))

    def __repr__(self) -> str:
        where = "not running" if self._running is None else f"at {self.bootstrap}, active: {self.active}"
        return f"<{type(self).__name__} of {self.controllers} controllers, {where}>"

    async def __aenter__(self) -> Self:
        self._running = await RunningQuorum.start(self._config, self.controllers, self._clock, self._rng, self._script)
        try:
            await self._running.wait_for_leader()
            self._script.faults.begin(self.double.now_ms)
            await self._start_admin()
        except BaseException:
            await self._stop()
            raise
        return self

    @property
    def running(self) -> RunningQuorum:
        """The running nodes by id. RuntimeError outside the `with` block."""
        if self._running is None:
            raise RuntimeError("the quorum does not run: use it inside its `with` block")
        return self._running

    @property
    def bootstrap(self) -> str:
        """Value of `controller.quorum.bootstrap.servers` for brokers: every node's host:port."""
        return self.running.bootstrap

    @property
    def node_ids(self) -> list[int]:
        """The nodes, running or not."""
        return list(self.running.configs)

    @property
    def active(self) -> int | None:
        """The active controller's node id, None while there is none."""
        return self.running.active

    def node(self, node_id: int) -> RunningController:
        """A running node: its controller, listener and journal. KeyError when it does not run."""
        return self.running.nodes[node_id]

    async def wait_for_leader(self, timeout_s: float = PATIENCE_S) -> int:
        """Return the active controller's id once there is one. TimeoutError."""
        return await self.running.wait_for_leader(timeout_s)

    async def elect(self, node_id: int, timeout_s: float = PATIENCE_S) -> None:
        """Make a node the active controller, by an election in a new epoch.

        QuorumError when it does not run, TimeoutError when no majority votes for it.
        """
        await self.running.elect(node_id, timeout_s)

    async def resign(self, timeout_s: float = PATIENCE_S) -> int:
        """Make the active controller resign; return the id of the next one. QuorumError, TimeoutError."""
        return await self.running.resign(timeout_s)

    async def partition(self, *node_ids: int, brokers: bool = False) -> None:
        """Cut these nodes off from the other nodes, replacing earlier cuts; with `brokers` from all clients too."""
        self.running.partition(*node_ids, brokers=brokers)

    async def heal(self) -> None:
        """Remove every cut."""
        self.running.heal()

    async def kill(self, node_id: int) -> None:
        """End a node as kill -9 ends a process. QuorumError when it does not run."""
        await self.running.kill(node_id)

    async def restart(self, node_id: int) -> None:
        """Start a node again with the port and the log it had."""
        await self.running.restart(node_id)

    async def _stop(self) -> None:
        await self._stop_admin()
        running, self._running = self._running, None
        if running is not None:
            await running.stop()


class SyncQuorum(BlockingDoubleApi[Quorum]):
    """A quorum in a thread of its own, as long as the `with` block lasts; made by `Quorum.sync`."""

    def __init__(self, quorum: Quorum) -> None:
        super().__init__("quorum", quorum)
        self._quorum = quorum
        self.double = quorum.double
        """All that a test may ask of it; touch it through `call` only."""

    admin_url = constant(Quorum.admin_url)
    bootstrap = constant(Quorum.bootstrap)
    cluster_id = constant(Quorum.cluster_id)
    node_ids = constant(Quorum.node_ids)
    active = reads(Quorum.active)
    wait_for_leader = blocking(Quorum.wait_for_leader)
    elect = blocking(Quorum.elect)
    resign = blocking(Quorum.resign)
    partition = blocking(Quorum.partition)
    heal = blocking(Quorum.heal)
    kill = blocking(Quorum.kill)
    restart = blocking(Quorum.restart)

    def node(self, node_id: int) -> RunningController:
        """Return a running node; use it through `call` only. KeyError when it does not run."""
        return self._quorum.node(node_id)

"""Several controllers inside the test's own process, and what a test does to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from mockraft.kafka_api.clock import VirtualClock
from mockraft.kafka_api.journal import Journal
from mockraft.kafka_api.options import check_option
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.data_dir import cluster_id_of
from mockraft.server.running import RunningController
from mockraft.server.running_quorum import PATIENCE_S, RunningQuorum, folder
from mockraft.testing.double import StartedDouble
from mockraft.testing.facades import facade
from mockraft.testing.options import ControllerOptions

if TYPE_CHECKING:
    from mockraft.testing.sync_types import SyncQuorum

__all__ = ["Quorum", "SyncQuorum"]


class Quorum(StartedDouble):
    """A quorum of KRaft controllers on ports of the loopback, for as long as the `async with` block lasts.

    Node ids go up from `node_id` (3000), ports from `port` (0: each takes a free one). The last `observers` nodes have
    no vote until they are added, by `quorum.faults.add_voter` or an AddRaftVoter request. Other options are those of
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
        observers: int = 0,
        **options: Unpack[ControllerOptions],
    ) -> None:
        check_option("controllers", controllers, int, 1)
        check_option("observers", observers, int, 0)
        self.controllers, self.observers = controllers, observers
        if config is None and (data_dir := options.get("data_dir")):
            found = cluster_id_of(folder(Path(data_dir), options.get("node_id", ControllerConfig().node_id)))
            if found:
                options.setdefault("cluster_id", found)
        self._running: RunningQuorum | None = None
        super().__init__(lambda: self.running.nodes, config, options)
        if controllers + observers > 1 and isinstance(self._clock, VirtualClock):
            raise ValueError("the nodes of a quorum need the machine's clock: they talk to each other over sockets")

    @classmethod
    def sync(
        cls,
        controllers: int = 3,
        config: ControllerConfig | None = None,
        *,
        observers: int = 0,
        **options: Unpack[ControllerOptions],
    ) -> SyncQuorum:
        """The same for a test without asyncio: `with Quorum.sync(3) as quorum`; it runs in a thread of its own."""
        return SyncQuorum(cls(controllers, config, observers=observers, **options))

    def __repr__(self) -> str:
        where = "not running" if self._running is None else f"at {self.bootstrap}, active: {self.active}"
        return f"<{type(self).__name__} of {self.controllers} controllers, {where}>"

    async def _start(self) -> None:
        self._running = await RunningQuorum.start(
            self._config, self.controllers, self.observers, self._clock, self._rng, self.script
        )
        try:
            await self._running.wait_for_leader()
        except BaseException:
            await self._stop_controllers()
            raise
        self.script.faults.begin(self.now_ms)

    def _lets_brokers_leave(self) -> bool:
        if self._running is None:
            return False
        self._running.heal()
        voters = self.leading.controller.raft.voters.nodes if self._running.nodes else {}
        return 2 * len(voters.keys() & self._running.nodes) > len(voters)

    async def _stop_controllers(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    def _controllers_journals(self) -> dict[int, Journal]:
        return dict(self.running.journals)

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


if not TYPE_CHECKING:
    SyncQuorum = facade(Quorum, "SyncQuorum", blocks=True)
    facade(Quorum, "AwaitedQuorum", blocks=False)

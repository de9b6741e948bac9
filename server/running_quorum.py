"""Several controllers in one process with one history: nodes of one quorum that use their own listeners.

Test operations act as on processes: a kill is not announced, a cut link drops what is sent on it, an election is one
of raft.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import random
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from mockraft.kafka_api.clock import Clock, RealClock
from mockraft.kafka_api.journal import Journal
from mockraft.kafka_api.listening import bind
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import STANDBY
from mockraft.server.controller.log.data_dir import DataDirError, directory_id_of
from mockraft.server.raft.raft import Raft
from mockraft.server.running import RunningController, advertised_host
from mockraft.server.stubs.script import Script
from mockraft.wire import uuids

PATIENCE_S = 20.0
"""Timeout of a test operation; an election by timeout takes up to two seconds, and several may be needed."""

_LOOK_AGAIN_S = 0.005
_ELECTION_S = 1.0


class QuorumError(RuntimeError):
    """Raised if the quorum cannot do what a test asks in its current state, which the message describes."""


class RunningQuorum:
    """Nodes of one quorum; created by `start`, ended by `stop`.

    `configs`, `nodes` and `journals` are by node id; a killed node is not in `nodes`, and its journal continues when
    it starts again.
    """

    def __init__(
        self, configs: dict[int, ControllerConfig], clock: Clock, rng: random.Random, script: Script | None = None
    ) -> None:
        self.configs = configs
        self.shared_script = script or Script()
        self.nodes: dict[int, RunningController] = {}
        self.journals: dict[int, Journal] = {}
        self._clock = clock
        self._rng = rng
        self._apart: frozenset[int] = frozenset()
        self._shut: set[int] = set()
        self._undo = contextlib.ExitStack()

    @classmethod
    async def start(
        cls,
        config: ControllerConfig,
        controllers: int,
        observers: int = 0,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        script: Script | None = None,
    ) -> RunningQuorum:
        """Start `controllers` nodes with the ids from `config.node_id` on, and hold their first election.

        They are the first voters; `observers` more follow them until they are added. Ports go up from `config.port`;
        with 0 each takes any free one. Each has the folder `controller-ID` of `config.data_dir`; without one, of a
        temporary folder, so that a killed node finds its log again. OSError when a port is taken, DataDirError when a
        folder cannot be used.
        """
        rng = rng or random.Random(config.seed)
        ids = range(config.node_id, config.node_id + controllers + observers)
        with contextlib.ExitStack() as unused:
            data_dir = config.data_dir
            if data_dir is None:
                data_dir = Path(unused.enter_context(tempfile.TemporaryDirectory(prefix="mockraft-quorum-")))
            elif config.port == 0 and folder(data_dir, config.node_id).exists():
                raise DataDirError(f"data dir {data_dir}: its quorum has fixed ports; port 0 is not possible")
            bound: dict[int, socket.socket] = {}
            for index, node_id in enumerate(ids):
                bound[node_id] = bind(config.host, config.port + index if config.port else 0)
                unused.callback(bound[node_id].close)
            ports = {node_id: each.getsockname()[1] for node_id, each in bound.items()}
            configs = quorum_configs(config, data_dir, ports, observers)
            quorum = cls(configs, clock or RealClock(), rng, script)
            try:
                for node_id in ids:
                    await quorum._start_node(node_id, bound[node_id])
            except BaseException:
                await quorum.stop()
                raise
            quorum._undo = unused.pop_all()
        voters = [node_id for node_id, node in quorum.nodes.items() if node.controller.raft.is_voter]
        if len(voters) > 1:
            # Do not wait for an election timeout.
            longest = max(voters, key=lambda node_id: (quorum._log_end(node_id), -node_id))
            quorum.nodes[longest].script(Raft.elect)
        return quorum

    @property
    def bootstrap(self) -> str:
        """Addresses that brokers connect to: every node's `host:port`, running or not."""
        return ",".join(f"{config.voter_host}:{config.voter_port}" for config in self.configs.values())

    @property
    def active(self) -> int | None:
        """Node id of the active controller (that of the newest epoch if two think so), None if there is none."""
        epochs = {node_id: node.controller.epoch for node_id, node in self.nodes.items()}
        best = max(epochs, key=epochs.__getitem__, default=None)
        return None if best is None or epochs[best] == STANDBY else best

    async def stop(self) -> None:
        """End every node at once."""
        for node_id in list(self.nodes):
            await self.nodes.pop(node_id).kill()
        self._undo.close()

    async def wait_for_leader(self, timeout_s: float = PATIENCE_S) -> int:
        """Return the active controller's id once there is one. TimeoutError."""
        await self._until(lambda: self.active is not None, timeout_s, "a leader")
        assert self.active is not None
        return self.active

    async def wait_to_commit(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait until a leader has committed all of its records. TimeoutError."""
        await self._until(self._commits, timeout_s, "a leader that commits")

    def _commits(self) -> bool:
        active = self.active
        return active is not None and not self.nodes[active].controller.pending_offset

    async def elect(self, node_id: int, timeout_s: float = PATIENCE_S) -> None:
        """Make a node the active controller by an election in a new epoch, which it wins when it has the whole log.

        QuorumError when it does not run, TimeoutError when a majority never votes for it.
        """
        self._check_runs(node_id)
        # Records written in between may cost it votes; then it starts another election.
        stand_at = 0.0

        def leads() -> bool:
            nonlocal stand_at
            now = asyncio.get_running_loop().time()
            if self.active != node_id and now >= stand_at and self._has_whole_log(node_id):
                stand_at = now + _ELECTION_S
                self.nodes[node_id].script(Raft.elect)
            return self.active == node_id

        await self._until(leads, timeout_s, f"node {node_id} to lead")

    async def resign(self, timeout_s: float = PATIENCE_S) -> int:
        """Make the active controller resign; return the id of the next one, which may be the same.

        QuorumError without an active controller, TimeoutError if no node succeeds it.
        """
        node_id = self.active
        if node_id is None:
            raise QuorumError(f"no controller is active, so none can resign; {self._state()}")
        epoch = self.nodes[node_id].controller.epoch
        self.nodes[node_id].script(Raft.resign)
        await self._until(lambda: self._active_epoch() > epoch, timeout_s, "another leader")
        return await self.wait_for_leader(timeout_s)

    def partition(self, *node_ids: int, brokers: bool = False) -> None:
        """Partition these nodes from the others, replacing any previous partition; with `brokers` from all clients.

        Nodes that are cut off together still reach each other.
        """
        for node_id in node_ids:
            if node_id not in self.configs:
                raise QuorumError(f"there is no node {node_id}; {self._state()}")
        self._apart = frozenset(node_ids)
        self._shut = set(node_ids) if brokers else set()
        self._cut()

    def heal(self) -> None:
        """Heal all partitions: every node reaches every other, and brokers reach all."""
        self.partition()

    async def kill(self, node_id: int) -> None:
        """Kill a node as kill -9 ends a process; its data directory stays. QuorumError if it does not run."""
        self._check_runs(node_id)
        killed = self.nodes.pop(node_id)
        # One that lost its disk began with another.
        self.configs[node_id] = killed.config
        await killed.kill()

    async def restart(self, node_id: int) -> None:
        """Start a killed node on its old port, or kill and restart a running one. OSError if the port is in use."""
        if node_id not in self.configs:
            raise QuorumError(f"there is no node {node_id}; {self._state()}")
        if node_id in self.nodes:
            self.nodes[node_id].restart()
        else:
            await self._start_node(node_id)

    async def _start_node(self, node_id: int, bound: socket.socket | None = None) -> None:
        rng = random.Random(self._rng.getrandbits(64))
        self.nodes[node_id] = await RunningController.start(
            self.configs[node_id], self._clock, rng, bound, self.shared_script, self.journals.get(node_id)
        )
        self.journals[node_id] = self.nodes[node_id].node.journal
        self._cut()

    def _cut(self) -> None:
        """Apply the cuts to every running node."""
        for node_id, node in self.nodes.items():
            others = [other for other in self.configs if (other in self._apart) != (node_id in self._apart)]
            addresses = frozenset((self.configs[other].voter_host, self.configs[other].voter_port) for other in others)
            node.listener.quorum_connections().cut(addresses)
            node.listener.shut(node_id in self._shut)

    def _active_epoch(self) -> int:
        return max((node.controller.epoch for node in self.nodes.values()), default=STANDBY)

    def _has_whole_log(self, node_id: int) -> bool:
        """Return True if its log is at least as long as that of every node it reaches, so they may vote for it."""
        own = self._log_end(node_id)
        return all(
            own >= self._log_end(other) for other in self.nodes if (other in self._apart) == (node_id in self._apart)
        )

    def _log_end(self, node_id: int) -> tuple[int, int]:
        log = self.nodes[node_id].controller.log
        return log.last_epoch, log.end_offset

    def _check_runs(self, node_id: int) -> None:
        if node_id not in self.nodes:
            raise QuorumError(f"node {node_id} does not run; {self._state()}")

    async def _until(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    await asyncio.sleep(_LOOK_AGAIN_S)
        except TimeoutError:
            raise TimeoutError(f"waited {timeout_s:g} s for {what}; {self._state()}") from None

    def _state(self) -> str:
        states = []
        for node_id in self.configs:
            node = self.nodes.get(node_id)
            if node is None:
                states.append(f"{node_id} is not running")
                continue
            raft, log = node.controller.raft, node.controller.log
            role = "active" if node.controller.epoch != STANDBY else f"follows {raft.leader_id}"
            states.append(f"{node_id} {role} in epoch {raft.epoch}, log end {log.end_offset}")
        cut = f"; cut off: {sorted(self._apart)}" if self._apart else ""
        return "; ".join(states) + cut


def folder(data_dir: Path, node_id: int) -> Path:
    """Return the data directory of one node below the quorum's directory."""
    return data_dir / f"controller-{node_id}"


def directory_id(cluster_id: str, node_id: int) -> bytes:
    """Return a node's directory id: the same in every run, so that a partly created quorum can continue."""
    digest = bytearray(hashlib.sha256(f"{cluster_id}/{node_id}".encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x40
    digest[8] = digest[8] & 0x3F | 0x80
    digest[0] &= 0x7F
    return bytes(digest)


def quorum_configs(
    config: ControllerConfig, data_dir: Path, ports: dict[int, int], observers: int = 0
) -> dict[int, ControllerConfig]:
    """Return each node's options: its own id, port and directory, and all nodes but the last ones as voters."""
    host = advertised_host(config) or config.host
    addresses = {node_id: f"{host}:{port}" for node_id, port in ports.items()}
    ids = {node_id: uuids.text_of(directory_id(config.cluster_id, node_id)) for node_id in ports}
    voters = list(ports)[: len(ports) - observers]
    static = ",".join(f"{node_id}@{addresses[node_id]}" for node_id in voters)
    dynamic = ",".join(f"{node_id}@{addresses[node_id]}:{ids[node_id]}" for node_id in voters)

    def of_node(node_id: int, port: int) -> ControllerConfig:
        """Return a node's options; one that lost its disk before is no first voter."""
        path = folder(data_dir, node_id)
        own = dataclasses.replace(config, node_id=node_id, port=port, data_dir=path)
        if config.initial_kraft_version == 0 and node_id in voters:
            return dataclasses.replace(own, controller_quorum_voters=static)
        if node_id in voters and directory_id_of(path) in (None, ids[node_id]):
            return dataclasses.replace(own, initial_controllers=dynamic)
        return dataclasses.replace(own, controller_quorum_bootstrap_servers=",".join(addresses.values()))

    return {node_id: of_node(node_id, port) for node_id, port in ports.items()}

"""Start, restart and stop a controller with its listener."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from mockraft.kafka_api.clock import Clock, RealClock
from mockraft.kafka_api.journal import Journal
from mockraft.kafka_api.listening import bind
from mockraft.kafka_api.security import uses_tls
from mockraft.kafka_api.tls import server_context
from mockraft.releases import release
from mockraft.server.apis.api import AnyApi
from mockraft.server.apis.overlaid import offered
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.settings.offers import Offer
from mockraft.server.node import Node
from mockraft.server.raft.raft import Raft
from mockraft.server.stubs.script import Script
from mockraft.server.tcp import TcpListener
from mockraft.wire import error_codes

GRACEFUL_SHUTDOWN_S = 1.0
"""Time that a stopping leader waits for the other nodes to receive its EndQuorumEpoch."""

T = TypeVar("T")

WILDCARD_HOSTS = ("", "0.0.0.0", "::")


class NothingRunsError(RuntimeError):
    """Raised when every node of the quorum is killed."""

    def __init__(self) -> None:
        super().__init__("no controller runs: every node of the quorum was killed")


class RunningController:
    """A listening controller; created by `start`, ended by `stop`."""

    def __init__(self, node: Node, listener: TcpListener, clock: Clock, rng: random.Random) -> None:
        self.node = node
        self.listener = listener
        self.clock = clock
        self._rng = rng
        self._initial_state = node.config.initial_state

    @property
    def controller(self) -> Controller:
        """The controller behind the listener."""
        return self.node.controller

    @property
    def config(self) -> ControllerConfig:
        """Options, with the real port."""
        return self.node.config

    @property
    def bootstrap(self) -> str:
        """Address that brokers connect to, as `host:port`."""
        return f"{self.config.voter_host}:{self.config.voter_port}"

    @classmethod
    async def start(
        cls,
        config: ControllerConfig,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        bound: socket.socket | None = None,
        script: Script | None = None,
        journal: Journal | None = None,
    ) -> RunningController:
        """Bind (unless a `bound` socket is given), recover or begin the log, and listen; a given `journal` continues.

        Raises OSError if the address is in use, and what Raft.open raises if the data directory is not usable or
        belongs to another cluster; ValueError for unusable certificates.
        """
        clock = clock or RealClock()
        rng = rng or random.Random(config.seed)
        tls = server_context(config) if uses_tls(config.security_protocol) else None
        with contextlib.ExitStack() as undo:
            # The log's first records contain the port, so bind it first.
            bound = bound or bind(config.host, config.port)
            undo.callback(bound.close)
            config = _advertised(config, bound)
            now_ms = clock.now_ms()
            raft = Raft.open(config, now_ms, rng)
            undo.callback(raft.log.close)
            node = _node(config, raft, rng, now_ms, script, journal)
            listener = TcpListener(node, clock, tls)
            await listener.start(bound)
            undo.pop_all()
        return cls(node, listener, clock, rng)

    def script(self, do: Callable[[Raft, int], T]) -> T:
        """Run an operation of the raft node now (`Raft.elect`, `Raft.resign`), send its requests, return its result."""
        now_ms = self.clock.now_ms()
        done = do(self.controller.raft, now_ms)
        self.listener.perform(self.node.tick(now_ms), now_ms)
        return done

    def offer(self, offer: Offer | None) -> None:
        """Offer another release or other API versions from the next request on; None: as configured."""
        offer = offer or _offer_of(self.config)
        # The node and its SASL exchanges share this table: change it in place.
        self.node.apis.clear()
        self.node.apis.update(_apis(self.config, offer))
        self.controller.release = offer.release

    def restart(self) -> None:
        """Restart the controller as a restarted process would, on the same port and with the same log.

        No graceful shutdown: every connection is closed, in-memory state (sessions, login quotas) is lost, and a
        single controller begins the next epoch. A log in memory is kept as if it were on a disk. The journal continues.
        Raises what Raft.open raises.
        """
        self._restart_with(self.config, keeps_log=True)

    def lose_disk(self) -> None:
        """Restart a node of several with an empty data directory; the old one is kept under another name.

        A new directory has a new id, which is not that of a voter: the node follows as an observer. ValueError for
        the only voter, for a log in memory, and at kraft.version 0.
        """
        others = [node for node_id, node in self.controller.raft.voters.nodes.items() if node_id != self.config.node_id]
        why = "no other voter has it" if not others else "it is in memory" if self.config.data_dir is None else ""
        if not why and self.controller.log.kraft_version == 0:
            why = "at kraft.version 0 it would stay a voter, as voters have no directory ids"
        if why:
            raise ValueError(f"node {self.config.node_id} cannot lose its log: {why}")
        assert self.config.data_dir is not None
        config = self.config
        if config.initial_controllers:
            servers = ",".join(f"{each.host}:{each.port}" for node in others for each in node.endpoints)
            config = dataclasses.replace(config, initial_controllers=None, controller_quorum_bootstrap_servers=servers)
        self.controller.close()
        self.config.data_dir.rename(f"{self.config.data_dir}-lost-{self.clock.now_ms()}")
        self._restart_with(config, keeps_log=False)

    def reset_log(self, initial_state: Path | None = None) -> None:
        """Drop all state on the same port: as `restart`, with a new log or with this state.

        ValueError for a controller with a data directory, whose log would have to be deleted.
        """
        if self.config.data_dir is not None:
            raise ValueError(f"data_dir={self.config.data_dir}: its log is kept; only a log in memory can begin anew")
        begins_with = initial_state or self._initial_state
        self._restart_with(dataclasses.replace(self.config, initial_state=begins_with), keeps_log=False)

    def _restart_with(self, config: ControllerConfig, *, keeps_log: bool) -> None:
        self._abandon_change()
        now_ms = self.clock.now_ms()
        log = self.controller.log
        if keeps_log and config.data_dir is None:
            raft = Raft(config, log, self._rng, now_ms)
        else:
            self.controller.close()
            raft = Raft.open(config, now_ms, self._rng)
        self.node = _node(config, raft, self._rng, now_ms, self.node.script, self.node.journal)
        self.listener.serve_node(self.node)

    async def stop(self) -> None:
        """Close the listener, every connection and the log; the leader of several nodes resigns first."""
        raft = self.controller.raft
        if raft.is_leader and len(raft.voters.nodes) > 1:
            self.script(Raft.resign)
            await self.listener.quorum_connections().until_quiet(GRACEFUL_SHUTDOWN_S)
        await self._end()

    async def kill(self) -> None:
        """End like a killed process: no graceful shutdown, unsent bytes are lost."""
        for connection in self.listener.connections():
            connection.transport.abort()
        await self._end()

    def _abandon_change(self) -> None:
        """End a change of voters that waits, for those in this process who asked for it."""
        raft = self.controller.raft
        if raft.voter_change is not None:
            raft.voter_change.finish(raft, error_codes.NOT_LEADER_OR_FOLLOWER, None)

    async def _end(self) -> None:
        self._abandon_change()
        await self.listener.stop()
        self.controller.close()


def most_advanced(nodes: Mapping[int, RunningController]) -> RunningController:
    """Return the active controller, else the node with the newest log. NothingRunsError."""
    if not nodes:
        raise NothingRunsError

    def knows(running: RunningController) -> tuple[int, int, int]:
        controller = running.controller
        return controller.epoch, controller.log.last_epoch, controller.log.end_offset

    return max(nodes.values(), key=knows)


def running_node(nodes: Mapping[int, RunningController], node_id: int) -> RunningController:
    """Return the node of this id. ValueError if it does not run."""
    if node_id not in nodes:
        raise ValueError(f"node {node_id} is not running; there are {sorted(nodes)}")
    return nodes[node_id]


def node_failures(nodes: Mapping[int, RunningController]) -> list[str]:
    """Return the nodes that cannot continue, each with the reason (`Controller.failure`)."""
    found = ((node_id, each.controller.failure) for node_id, each in nodes.items())
    return [f"node {node_id}: {failure}" for node_id, failure in found if failure is not None]


def quorum_failure(nodes: Mapping[int, RunningController]) -> str | None:
    """Return the reasons of the nodes that cannot continue if the others are no majority, else None."""
    failures = node_failures(nodes)
    return "; ".join(failures) if 2 * len(failures) >= max(len(nodes), 1) else None


def _node(
    config: ControllerConfig,
    raft: Raft,
    rng: random.Random,
    now_ms: int,
    script: Script | None = None,
    journal: Journal | None = None,
) -> Node:
    # Unpredictable nonces, unless the run must be reproducible.
    nonces = random.SystemRandom() if config.seed is None else random.Random(config.seed)
    script = script or Script()
    controller = Controller(config, raft, rng, now_ms, script.events)
    offer = script.offer or _offer_of(config)
    controller.release = offer.release
    node = Node(controller, _apis(config, offer), journal, nonces, script)
    node.journal.address = (config.voter_host, config.voter_port)
    return node


def _offer_of(config: ControllerConfig) -> Offer:
    return Offer(release(config.release), config.api_versions)


def _apis(config: ControllerConfig, offer: Offer) -> dict[int, AnyApi]:
    overlay = config.overlay
    if overlay is None:
        return offered(APIS, offer)
    from mockraft.server.apis.overlaid import apis_over

    proposed = {api_key for api_key, name in overlay.requests.items() if name in overlay.overlaid}
    return offered(apis_over(APIS, overlay), offer, proposed)


def advertised_host(config: ControllerConfig) -> str | None:
    """Host that others connect to, None if it is the one listened on: a wildcard address is not connectable."""
    if config.advertised_host is None and config.host in WILDCARD_HOSTS:
        return socket.gethostname()
    return config.advertised_host


def _advertised(config: ControllerConfig, bound: socket.socket) -> ControllerConfig:
    """Return the options with the real port and a connectable host."""
    return dataclasses.replace(config, port=bound.getsockname()[1], advertised_host=advertised_host(config))

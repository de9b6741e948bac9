"""A controller from its options to its first accepted connection, and back."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
import socket
from collections.abc import Callable
from pathlib import Path

from mockraft.server.apis.api import Api
from mockraft.server.apis.offered import offered
from mockraft.server.apis.registry import APIS
from mockraft.server.clock import Clock, RealClock
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.releases import Offer, release_of
from mockraft.server.journal import Journal
from mockraft.server.node import Node
from mockraft.server.raft.raft import Raft
from mockraft.server.security_options import uses_tls
from mockraft.server.stubs.script import Script
from mockraft.server.tcp import TcpListener, bind
from mockraft.server.tls import server_context

FAREWELL_S = 1.0
"""How long a leader that stops waits for the others to hear of it."""

WILDCARD_HOSTS = ("", "0.0.0.0", "::")


class NothingRunsError(RuntimeError):
    """Nobody can be asked: every node of the quorum is killed."""

    def __init__(self) -> None:
        super().__init__("no controller runs: every node of the quorum was killed")


class RunningController:
    """A controller that listens; made by `start`, ended by `stop`."""

    def __init__(self, node: Node, listener: TcpListener, clock: Clock, chance: random.Random) -> None:
        self.node = node
        self.listener = listener
        self.clock = clock
        self._chance = chance
        self._initial_state = node.config.initial_state

    @property
    def controller(self) -> Controller:
        """The controller behind the listener."""
        return self.node.controller

    @property
    def config(self) -> ControllerConfig:
        """The options, with the port that is really listened on."""
        return self.node.config

    @property
    def bootstrap(self) -> str:
        """Where brokers connect to, as `host:port`."""
        return f"{self.config.voter_host}:{self.config.voter_port}"

    @classmethod
    async def start(
        cls,
        config: ControllerConfig,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        bound: socket.socket | None = None,
        script: Script | None = None,
        journal: Journal | None = None,
    ) -> RunningController:
        """Bind (unless given a socket that is `bound`), recover or begin the log, and listen; a `journal` goes on.

        Raises OSError when the address cannot be had, and what Raft.open raises when the data directory is not
        usable or belongs to another cluster; ValueError for certificates that cannot be used.
        """
        clock = clock or RealClock()
        chance = chance or random.Random(config.seed)
        tls = server_context(config) if uses_tls(config.security_protocol) else None
        with contextlib.ExitStack() as undo:
            # The log's head names the port, so the port comes first.
            bound = bound or bind(config.host, config.port)
            undo.callback(bound.close)
            config = _advertised(config, bound)
            now_ms = clock.now_ms()
            raft = Raft.open(config, now_ms, chance)
            undo.callback(raft.log.close)
            node = _node(config, raft, chance, now_ms, script, journal)
            listener = TcpListener(node, clock, tls)
            await listener.start(bound)
            undo.pop_all()
        return cls(node, listener, clock, chance)

    def script(self, do: Callable[[Raft, int], None]) -> None:
        """Have the raft node do something now (`Raft.elect`, `Raft.resign`); the others are told."""
        now_ms = self.clock.now_ms()
        do(self.controller.raft, now_ms)
        self.listener.perform(self.node.tick(now_ms), now_ms)

    def offer(self, offer: Offer | None) -> None:
        """Pass for another release, or offer other versions, from the next request on; None is what its options say."""
        offer = offer or _offer_of(self.config)
        # The table is the node's and its log-ins' alike: it changes where it is.
        self.node.apis.clear()
        self.node.apis.update(_apis(self.config, offer))
        self.controller.release = offer.release

    def restart(self) -> None:
        """End this process and start it again, as far as anybody can see, on the same port and with the same log.

        Nobody is told: every connection breaks, what only memory held (sessions, quotas of log-ins) is forgotten, and
        the next epoch begins. A log in memory is kept as if it were on a disk. The journal goes on. What Raft.open
        raises, and ValueError for a node of several: `RunningQuorum.restart` does that.
        """
        self._restart_with(self.config, keeps_log=True)

    def begin_anew(self, initial_state: Path | None = None) -> None:
        """Forget all state, on the same port: as `restart`, with a log that begins as at first, or with this state.

        ValueError for a controller with a data directory, whose log this would have to delete.
        """
        if self.config.data_dir is not None:
            raise ValueError(f"data_dir={self.config.data_dir}: its log is kept; only a log in memory can begin anew")
        begins_with = initial_state or self._initial_state
        self._restart_with(dataclasses.replace(self.config, initial_state=begins_with), keeps_log=False)

    def _restart_with(self, config: ControllerConfig, *, keeps_log: bool) -> None:
        if not config.is_alone:
            raise ValueError(f"node {config.node_id} is one of several: restart it with `Quorum.restart`")
        now_ms = self.clock.now_ms()
        log = self.controller.log
        if keeps_log and config.data_dir is None:
            raft = Raft(config, log, self._chance, now_ms)
        else:
            log.close()
            raft = Raft.open(config, now_ms, self._chance)
        self.node = _node(config, raft, self._chance, now_ms, self.node.script, self.node.journal)
        self.listener.serve(self.node)

    async def stop(self) -> None:
        """Close the listener, every connection and the log; the leader of several tells the others first."""
        raft = self.controller.raft
        if raft.is_leader and len(raft.voters.nodes) > 1:
            self.script(Raft.resign)
            await self.listener.quorum_peers().until_quiet(FAREWELL_S)
        await self._end()

    async def kill(self) -> None:
        """End as a killed process does: nobody is told, and what was not sent yet never is."""
        for peer in self.listener.peers():
            peer.transport.abort()
        await self._end()

    async def _end(self) -> None:
        await self.listener.stop()
        self.controller.log.close()


def _node(
    config: ControllerConfig,
    raft: Raft,
    chance: random.Random,
    now_ms: int,
    script: Script | None = None,
    journal: Journal | None = None,
) -> Node:
    # Nonces nobody can foretell, unless the run shall repeat.
    nonces = random.SystemRandom() if config.seed is None else random.Random(config.seed)
    controller = Controller(config, raft, chance, now_ms)
    offer = (script.offer if script is not None else None) or _offer_of(config)
    controller.release = offer.release
    node = Node(controller, _apis(config, offer), journal, nonces, script)
    node.journal.address = (config.voter_host, config.voter_port)
    return node


def _offer_of(config: ControllerConfig) -> Offer:
    return Offer(None if config.as_version is None else release_of(config.as_version), config.api_versions)


def _apis(config: ControllerConfig, offer: Offer) -> dict[int, Api]:
    apis = APIS
    if config.overlay is not None:
        from mockraft.server.apis.overlaid import apis_over

        apis = apis_over(APIS, config.overlay)
    return offered(apis, offer)


def event_loop() -> asyncio.AbstractEventLoop:
    """A new event loop: uvloop's where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def random_cluster_id(chance: random.Random) -> str:
    """A new cluster id: a Kafka uuid, which never begins with a dash (Uuid.randomUuid)."""
    import base64

    while True:
        text = base64.urlsafe_b64encode(chance.randbytes(16)).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def advertised_host(config: ControllerConfig) -> str | None:
    """Host for others to connect to, None where it is the one listened on: nobody can connect to a wildcard."""
    if config.advertised_host is None and config.host in WILDCARD_HOSTS:
        return socket.gethostname()
    return config.advertised_host


def _advertised(config: ControllerConfig, bound: socket.socket) -> ControllerConfig:
    """The options with the real port, and with a host that others can connect to."""
    return dataclasses.replace(config, port=bound.getsockname()[1], advertised_host=advertised_host(config))

"""Processes of a simulated cluster around the sans-IO nodes: controllers, brokers and a client.

A process has a clock of its own, runs and is killed; what outlives a run is the metadata log of a controller and the
disks of a broker.
"""

from __future__ import annotations

import dataclasses
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.effects import (
    ClientConnected,
    ClientGone,
    ClientRead,
    ClientSent,
    Effect,
    Event,
    Link,
    ToClient,
    Versions,
)
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.lifecycle import ShutdownWanted, Stopped
from mockraft.brokers.log_dir_access import LogDirAccess
from mockraft.brokers.node import BrokerNode
from mockraft.kafka_api import effects as accepted
from mockraft.kafka_api.journal import Journal
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.node import Node
from mockraft.server.raft.outgoing import Outgoing, SendToNode
from mockraft.server.raft.raft import Raft
from mockraft.wire import error_codes, messages
from mockraft.wire.connection import version_for
from mockraft.wire.errors import UnsupportedVersionError
from mockraft.wire.message import Message

from .network import Links, Wire
from .storage import CachedDisk, WatchedLog

if TYPE_CHECKING:
    from .world import World

NEVER_MS = 1 << 62


class Process(ABC):
    """One process. `lives` counts its runs: what was scheduled for one run does not happen to the next.

    `is_booted` is True once the node of this run exists.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.lives = 0
        self.is_up = False
        self.is_booted = False
        self.paused_until_ms = 0
        self.held: list[tuple[int, Callable[[], object]]] = []
        self.skew_ms = 0
        self.accepted: dict[int, Wire] = {}
        self._wakes_ms = NEVER_MS

    @property
    def now_ms(self) -> int:
        """The time of its own clock."""
        return self.world.now_ms + self.skew_ms

    def start(self) -> None:
        """Begin a run with what the last one left."""
        if self.is_up:
            return
        self.lives += 1
        self.is_up = True
        self.paused_until_ms = 0
        self._wakes_ms = NEVER_MS
        self.accepted = {}
        self.links = Links(self, self.feed)
        self.boot()
        self.is_booted = True
        self.settle()

    def kill(self) -> None:
        """End at once, without a word to anybody."""
        if self.is_up:
            self.is_up = self.is_booted = False
            self.links.close()
            for wire in list(self.accepted.values()):
                wire.close()
            self.end()

    def pause(self, ms: int) -> None:
        """Do nothing for so long, and then in order all that waited."""
        self.paused_until_ms = max(self.paused_until_ms, self.world.now_ms + ms)
        self.world.at(self.paused_until_ms, self._resume)

    def _resume(self) -> None:
        if self.paused_until_ms <= self.world.now_ms:
            self.paused_until_ms = 0
            held, self.held = self.held, []
            for life, call in held:
                if self.is_up and self.lives == life:
                    call()

    def settle(self) -> None:
        """Schedule the next tick, and verify what may have changed."""
        wakes_ms = max(self.next_tick_ms() - self.skew_ms, self.world.now_ms)
        if self.is_up and wakes_ms != self._wakes_ms and wakes_ms < NEVER_MS:
            self._wakes_ms = wakes_ms
            self.world.at(wakes_ms, partial(self._wake, wakes_ms), self, self.lives)
        self.world.changed(self)

    def _wake(self, planned_ms: int) -> None:
        if planned_ms == self._wakes_ms:
            self._wakes_ms = NEVER_MS
            self.tick()
            self.settle()

    def accept(self, wire: Wire) -> bool:
        """Accept a connection; return False when it is refused."""
        self.accepted[wire.connection_id] = wire
        return True

    def perform_accepted(self, effect: Any, sent: Callable[[], None]) -> None:
        """Carry out an effect on an accepted connection; `sent` is called when an AwaitSent is over."""
        wire = self.accepted.get(effect.connection_id)
        if wire is None:
            return
        if isinstance(effect, accepted.Send):
            wire.send(effect.data, to_server=False)
        elif isinstance(effect, accepted.Close):
            del self.accepted[effect.connection_id]
            wire.close()
        elif isinstance(effect, accepted.AwaitSent):
            self.world.at(self.world.now_ms, sent, self, self.lives)

    @abstractmethod
    def boot(self) -> None:
        """Make the node of a new run."""

    @abstractmethod
    def end(self) -> None:
        """Release what the run held."""

    @abstractmethod
    def feed(self, event: Event) -> None:
        """Process an event of an outgoing connection."""

    @abstractmethod
    def client_sent(self, connection_id: int, data: bytes) -> None:
        """Process bytes of an accepted connection."""

    @abstractmethod
    def client_gone(self, connection_id: int) -> None:
        """Process the end of an accepted connection."""

    @abstractmethod
    def next_tick_ms(self) -> int:
        """Return when `tick` has work, by its own clock."""

    @abstractmethod
    def tick(self) -> None:
        """Do what is due."""


class ControllerProcess(Process):
    """A controller: a node with its quorum connections. Its log outlives a kill."""

    log: WatchedLog

    def __init__(self, world: World, name: str, config: ControllerConfig) -> None:
        super().__init__(world, name)
        self.config = config
        self._rng = random.Random(f"{world.setup.seed} {name}")

    @property
    def controller(self) -> Controller:
        """The controller of this run."""
        return self.node.controller

    @property
    def raft(self) -> Raft:
        """The raft node of this run."""
        return self.node.controller.raft

    @property
    def leads(self) -> bool:
        """True while it is the active controller, or believes so."""
        return self.is_up and self.node.controller.epoch >= 0

    def boot(self) -> None:
        config = self.config
        if self.lives == 1 or config.data_dir is not None:
            log = WatchedLog.open(config, self.now_ms, self._rng)
            assert isinstance(log, WatchedLog)
            self.log = log
        else:
            # As MetadataLog._recover: only what a snapshot covers is known to be committed.
            self.log.high_watermark = self.log.snapshots[-1].id.end_offset if self.log.snapshots else 0
            self.log.commits_alone = False
        self.kernel = Kernel(failed)
        self._in_flight: dict[Link, int] = {}
        raft = Raft(config, self.log, self._rng, self.now_ms)
        journal = Journal(0, 0)
        journal.subscribe(self.world.journaled(self))
        self.node = Node(Controller(config, raft, self._rng, self.now_ms), APIS, journal, self._rng)

    def end(self) -> None:
        with self.world.page_cache.cut():
            self.log.close()

    def next_tick_ms(self) -> int:
        return min(self.node.next_tick_ms(self.now_ms), whole(self.kernel.next_deadline_ms))

    def tick(self) -> None:
        self._perform_links(self.kernel.tick(self.now_ms))
        if self.node.next_tick_ms(self.now_ms) <= self.now_ms:
            self.perform(self.node.tick(self.now_ms))

    def feed(self, event: Event) -> None:
        self._perform_links(self.kernel.step(event, self.now_ms))
        self.settle()

    def accept(self, wire: Wire) -> bool:
        super().accept(wire)
        self.perform(self.node.connected(wire.connection_id, f"127.0.0.1:{wire.connection_id}", self.now_ms))
        return True

    def client_sent(self, connection_id: int, data: bytes) -> None:
        self.world.received(self, data)
        self.perform(self.node.step(connection_id, data, self.now_ms))
        self.settle()

    def client_gone(self, connection_id: int) -> None:
        if self.accepted.pop(connection_id, None) is not None:
            self.node.disconnected(connection_id, "gone", self.now_ms)

    def call(self, change: Callable[[Raft, int], None]) -> None:
        """Let a person elect it or make it resign."""
        change(self.raft, self.now_ms)
        self.perform(self.node.tick(self.now_ms))
        self.settle()

    def perform(self, effects: Iterable[Any]) -> None:
        """Carry out effects of the node."""
        for effect in effects:
            if isinstance(effect, SendToNode):
                self._send(effect.outgoing)
            else:
                self.perform_accepted(effect, partial(self._sent, effect.connection_id))

    def _sent(self, connection_id: int) -> None:
        self.perform(self.node.sent(connection_id, self.now_ms))
        self.settle()

    def _perform_links(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.links.perform(effect)

    def _send(self, outgoing: Outgoing) -> None:
        """Send to another node; a new request replaces one in flight, as in QuorumConnections."""
        purpose = "registration" if outgoing.id < 0 else "quorum"
        link = Link(purpose, self.name, outgoing.host, outgoing.port, outgoing.timeout_ms)
        if link in self._in_flight:
            self.kernel.disconnect(link)
        self._in_flight[link] = outgoing.id

        def make(versions: Versions) -> Any:
            version = version_for(outgoing.message, versions)
            if not outgoing.version_min <= version <= outgoing.version_max:
                raise UnsupportedVersionError(f"version {version}")
            return outgoing.message

        def answered(response: Message | None) -> None:
            if self._in_flight.get(link) == outgoing.id:
                del self._in_flight[link]
                self.perform(self.node.answered(outgoing.id, response, self.now_ms))

        def not_answered(error: Exception) -> None:
            response_class: Any = messages.response(outgoing.message.api_key)
            unsupported = response_class(error_code=error_codes.UNSUPPORTED_VERSION)
            answered(unsupported if isinstance(error, UnsupportedVersionError) else None)

        request = partial(self.kernel.request, link, make, answered, not_answered, timeout_ms=outgoing.timeout_ms)
        self._perform_links(self.kernel.run(self.now_ms, request))


class BrokerProcess(Process, LogDirAccess):
    """A broker that serves clients. Its disks outlive a kill."""

    def __init__(self, world: World, name: str, config: BrokerConfig, disks: dict[str, CachedDisk]) -> None:
        super().__init__(world, name)
        self.config = config
        self.disks = disks
        self.is_shutting_down = False

    def boot(self) -> None:
        incarnation = f"{self.name} {self.lives:03}".rjust(16).encode()
        self.is_shutting_down = False
        self.node = BrokerNode(dataclasses.replace(self.config, incarnation_id=incarnation))
        self._perform(self.node.start(self.now_ms))

    def end(self) -> None:
        if self.node.end is None:
            self.node.happen(Stopped())
        self.node.close()

    @property
    def must_start_again(self) -> bool:
        """True while it shuts down, or a log directory is offline or could fail at the next write."""
        if not self.is_up or self.is_shutting_down:
            return self.is_up
        disks = [self._disk(each.directory_id) for each in self.config.log_dirs]
        return self.node.directories.has_offline or any(disk.is_failing for disk in disks)

    def shut_down(self) -> None:
        """Ask the controller for a controlled shutdown."""
        self.is_shutting_down = True
        self.run(self.node.happen, ShutdownWanted())

    def run(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run a call from outside as a step of the node."""
        self._perform(self.node.kernel.run(self.now_ms, call, *arguments))
        self.settle()

    def feed(self, event: Any) -> None:
        if self.node.end is None:
            self._perform(self.node.step(event, self.now_ms))
            self.settle()

    def accept(self, wire: Wire) -> bool:
        if self.node.clients is None or self.node.end is not None:
            return False
        super().accept(wire)
        self.feed(ClientConnected(wire.connection_id, "PLAINTEXT", "127.0.0.1"))
        return True

    def client_sent(self, connection_id: int, data: bytes) -> None:
        self.feed(ClientSent(connection_id, data))

    def client_gone(self, connection_id: int) -> None:
        if self.accepted.pop(connection_id, None) is not None:
            self.feed(ClientGone(connection_id, "the peer closed"))

    def next_tick_ms(self) -> int:
        return NEVER_MS if self.node.end is not None else whole(self.node.next_deadline_ms)

    def tick(self) -> None:
        self._perform(self.node.tick(self.now_ms))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ToClient):
                sent = partial(self.feed, ClientRead(effect.effect.connection_id))
                self.perform_accepted(effect.effect, sent)
            else:
                self.links.perform(effect)


def whole(when_ms: float) -> int:
    """Return a deadline of a kernel in whole milliseconds."""
    return NEVER_MS if when_ms == math.inf else math.ceil(when_ms)


def failed(error: Exception) -> None:
    """Raise the exception of a callback."""
    raise error

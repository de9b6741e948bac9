"""Connections between simulated processes: in order as TCP's, with delays, cuts and storms.

A cut holds back the bytes of one direction until it ends. During a storm each send may be late, break its connection,
arrive damaged, or arrive a second time over another connection, as the request of a client that retried.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mockraft.brokers.effects import (
    BreakOff,
    Closed,
    Connect,
    Disconnect,
    Effect,
    Event,
    Failed,
    Link,
    NotOpened,
    Opened,
    SendRequest,
)
from mockraft.brokers.framed_link import FramedLink
from mockraft.wire.errors import DisconnectedError, UnsupportedVersionError, WireError

if TYPE_CHECKING:
    from .processes import Process
    from .world import World

JITTER_MS = 8
LATE_MS = 400
RETRY_LATE_MS = 2_500
BROKEN, DAMAGED, REPEATED, LATE = 0.01, 0.02, 0.06, 0.10
"""Shares of the sends during a storm; each adds to the one before."""


class Storm(NamedTuple):
    """A time of faults on all connections, drawn from a generator of its own."""

    until_ms: int
    rng: random.Random


class Network:
    """All connections, and the faults that act on them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cut_until_ms: dict[tuple[str, str], int] = {}
        self.storms: list[Storm] = []
        self.connections = 0
        self._opened: dict[tuple[str, str], int] = {}

    def cut(self, one: str, other: str, ms: int) -> None:
        """Hold back what `one` sends to `other`."""
        self.cut_until_ms[one, other] = max(self.open_at_ms(one, other), self.world.now_ms + ms)

    def heal(self) -> None:
        """End all faults."""
        self.cut_until_ms.clear()
        self.storms.clear()

    def open_at_ms(self, one: str, other: str) -> int:
        """Return when bytes from `one` reach `other` again; now without a cut."""
        return max(self.world.now_ms, self.cut_until_ms.get((one, other), 0))

    def storm(self) -> random.Random | None:
        """Return the generator of a storm that lasts."""
        while self.storms and self.storms[-1].until_ms <= self.world.now_ms:
            self.storms.pop()
        return self.storms[-1].rng if self.storms else None

    def seed_of(self, one: str, other: str) -> int:
        """Return a seed for the next connection; it depends on earlier ones between the same two alone."""
        number = self._opened[one, other] = self._opened.get((one, other), 0) + 1
        return zlib.crc32(f"{self.world.setup.seed} {one} {other} {number}".encode())


class Wire:
    """One connection of two processes. `on_lost` are called when it ends, each at its side."""

    def __init__(self, network: Network, client: Process, server: Process, receive: Callable[[bytes], None]) -> None:
        network.connections += 1
        self.connection_id = network.connections
        self.is_open = True
        self.ends = (client, server)
        self.lives = (client.lives, server.lives)
        self.lost: Callable[[], None] = lambda: None
        """Called at the client's side."""
        self._network = network
        self._receive = receive
        self._jitter = network.seed_of(client.name, server.name)
        self._last_ms = [0, 0]

    def send(self, data: bytes, *, to_server: bool) -> None:
        """Deliver later, after what was sent before, unless a storm does something else with it."""
        network = self._network
        if not self.is_open:
            return
        self._jitter = (self._jitter * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        delay_ms = 1 + (self._jitter >> 16) % JITTER_MS
        rng = network.storm()
        if rng is not None:
            chance = rng.random()
            if chance < BROKEN:
                self.close()
                return
            if chance < DAMAGED:
                data = _damaged(data, rng)
            elif chance < REPEATED:
                if to_server:
                    self._repeat(data, rng.randrange(RETRY_LATE_MS))
            elif chance < LATE:
                delay_ms += rng.randrange(LATE_MS)
        self._deliver_at(network.world.now_ms + delay_ms, data, to_server)

    def close(self) -> None:
        """End it at both sides, at each once the news arrives."""
        if self.is_open:
            self.is_open = False
            client, server = self.ends
            world, network = self._network.world, self._network
            server_ms = network.open_at_ms(client.name, server.name)
            world.at(network.open_at_ms(server.name, client.name), lambda: self.lost(), client, self.lives[0])
            world.at(server_ms, lambda: server.client_gone(self.connection_id), server, self.lives[1])

    def _deliver_at(self, when_ms: int, data: bytes, to_server: bool) -> None:
        side = int(to_server)
        sender, receiver = self.ends[1 - side], self.ends[side]
        open_ms = self._network.cut_until_ms.get((sender.name, receiver.name), 0)
        self._last_ms[side] = when_ms = max(self._last_ms[side], when_ms, open_ms)
        self._network.world.at(when_ms, lambda: self._deliver(data, to_server), receiver, self.lives[side])

    def _deliver(self, data: bytes, to_server: bool) -> None:
        client, server = self.ends
        if not self.is_open:
            return
        sender, receiver = (client, server) if to_server else (server, client)
        if self._network.open_at_ms(sender.name, receiver.name) > self._network.world.now_ms:
            self._deliver_at(self._network.world.now_ms, data, to_server)
        elif to_server:
            server.client_sent(self.connection_id, data)
        else:
            self._receive(data)

    def _repeat(self, data: bytes, late_ms: int) -> None:
        """Let the request arrive once more, over a connection whose client does not wait for the response."""
        client, server = self.ends
        world = self._network.world
        other = Wire(self._network, client, server, lambda _: None)

        def arrive() -> None:
            if server.accept(other):
                other.send(data, to_server=True)
                world.at(world.now_ms + RETRY_LATE_MS, other.close)

        world.at(world.now_ms + late_ms, arrive, server, server.lives)


def _damaged(data: bytes, rng: random.Random) -> bytes:
    """Return a frame that no reader accepts: a negative or a huge length."""
    return bytes([data[0] ^ rng.choice((0x80, 0x40))]) + data[1:]


class Links:
    """The outgoing connections of one run of a process; `feed` gets their events."""

    def __init__(self, process: Process, feed: Callable[[Event], None]) -> None:
        self._process = process
        self._feed = feed
        self._open: dict[Link, tuple[FramedLink, Wire]] = {}
        self._opening: dict[Link, object] = {}

    def perform(self, effect: Effect) -> None:
        """Carry out an effect on a connection; others have none here."""
        match effect:
            case Connect(link):
                self._connect(link)
            case SendRequest(request_id=request_id, link=link):
                self._send(request_id, link, effect)
            case Disconnect(link) | BreakOff(link):
                self._opening.pop(link, None)
                if link in self._open:
                    (self._open[link] if isinstance(effect, BreakOff) else self._open.pop(link))[1].close()

    def close(self) -> None:
        """Close all connections of a process that ends."""
        for _, wire in self._open.values():
            wire.close()

    def _at(self, when_ms: int, call: Callable[[], None]) -> None:
        self._process.world.at(when_ms, call, self._process, self._process.lives)

    def _send(self, request_id: int, link: Link, effect: SendRequest) -> None:
        now_ms = self._process.world.now_ms
        if link not in self._open:
            failure = Failed(request_id, DisconnectedError("the connection is closed"))
            self._at(now_ms, lambda: self._feed(failure))
            return
        framed, wire = self._open[link]
        try:
            wire.send(framed.write(effect), to_server=True)
        except UnsupportedVersionError as error:
            unsupported = Failed(request_id, error)
            self._at(now_ms, lambda: self._feed(unsupported))

    def _connect(self, link: Link) -> None:
        world, name = self._process.world, self._process.name
        attempt = self._opening[link] = object()
        network, late_ms = world.network, world.now_ms + link.timeout_ms
        reached_ms = 1 + max(network.open_at_ms(name, link.host), network.open_at_ms(link.host, name))
        if reached_ms < late_ms:
            self._at(reached_ms, lambda: self._reach(link, attempt))
        self._at(late_ms, lambda: self._fail(link, attempt, "timed out"))

    def _reach(self, link: Link, attempt: object) -> None:
        if self._opening.get(link) is not attempt:
            return
        server = self._process.world.processes[link.host]
        framed = FramedLink(link)
        wire = Wire(self._process.world.network, self._process, server, lambda data: self._receive(framed, wire, data))
        if not server.is_up or not server.accept(wire):
            self._fail(link, attempt, "refused")
            return
        wire.lost = lambda: self._lost(framed)
        self._open[link] = (framed, wire)
        if link.handshake:
            wire.send(framed.open(), to_server=True)
        else:
            del self._opening[link]
            self._feed(Opened(link, {}))

    def _fail(self, link: Link, attempt: object, why: str) -> None:
        if self._opening.get(link) is not attempt:
            return
        del self._opening[link]
        if link in self._open:
            self._open.pop(link)[1].close()
        self._feed(NotOpened(link, DisconnectedError(why)))

    def _receive(self, framed: FramedLink, wire: Wire, data: bytes) -> None:
        if self._open.get(framed.link, (None,))[0] is not framed:
            return
        try:
            events = framed.receive(data)
        except WireError:
            wire.close()
            return
        for event in events:
            if isinstance(event, Opened):
                self._opening.pop(framed.link, None)
            self._feed(event)
        if more := framed.data_to_send():
            wire.send(more, to_server=True)

    def _lost(self, framed: FramedLink) -> None:
        if self._open.get(framed.link, (None,))[0] is framed:
            del self._open[framed.link]
            self._opening.pop(framed.link, None)
            for event in (*framed.lost(), Closed(framed.link)):
                self._feed(event)

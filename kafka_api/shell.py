"""The asyncio side of a listener: sockets, TLS and a timer. It carries out the effects of a sans-IO `Served` in order.

Received bytes go to the server at once, and connections that wait go on in their turns. Responses of one iteration of
the event loop are written together, after what all its ready sockets have sent: a peer that sleeps is woken once for
many, which costs the kernel more than the rest of a write. A client that does not read is not read from either, so its
unread responses stay bounded, and it is closed when it stays stuck.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Protocol, cast

from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.clock import Clock, Timer, VirtualClock
from mockraft.kafka_api.effects import (
    NEW,
    AwaitSent,
    Close,
    Effect,
    PauseReading,
    Reset,
    ResumeReading,
    Send,
    ServerEffect,
    Share,
)
from mockraft.kafka_api.listening import BACKLOG
from mockraft.kafka_api.refusals import Repeats
from mockraft.kafka_api.tls import TlsError, TlsSession
from mockraft.kafka_api.turns import Turns, turns_of

logger = logging.getLogger(__name__)

RESPONSES_WAIT_MS = 1
"""Time after which responses wait no longer for requests that are still to be answered in the same iteration."""
ACCEPTED_AT_ONCE = 64
"""Connections accepted in an iteration of the event loop; libuv accepts one, and the rest wait behind all requests."""
ACCEPT_RETRY_S = 1.0
"""Time without accepting after an error, such as too many open files (asyncio's ACCEPT_RETRY_DELAY)."""
FIRST_FLIGHT_BYTES_MAX = 65_536
"""Bytes of a TLS handshake that may wait for its turn."""
IDLE_SWEEPS = 4
"""Checks for idle connections per `connections_max_idle_ms`."""
UNREAD_BYTES_HIGH = 65_536
CLOSE_LINGER_S = 5.0


def event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: uvloop's if installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Served(Protocol):
    """The sans-IO server of a shell; see `mockraft.kafka_api.listener.Listener`."""

    def connected(self, connection_id: int, peer_address: str, now_ms: int, listener: str) -> Iterable[Effect]:
        """Accept a connection on the listener of this name."""

    def secured(self, connection_id: int, certificate: bytes | None, now_ms: int) -> Iterable[Effect]:
        """Complete the TLS handshake."""

    def step(self, connection_id: int, data: bytes, now_ms: int, is_late: bool = False) -> Sequence[Effect]:
        """Process received bytes; if `is_late` requests wait for the connection's turn."""

    def sent(self, connection_id: int, now_ms: int) -> Iterable[Effect]:
        """Go on with a connection whose bytes are written."""

    def disconnected(self, connection_id: int, reason: str, now_ms: int) -> None:
        """Remove an ended connection."""

    def close(self, connection_id: int, kind: str, reason: str, now_ms: int) -> Iterable[Effect]:
        """Close a connection for a reason that the shell detected."""

    def broke(self, error: BaseException, now_ms: int) -> None:
        """Report a defect of this program that ended a connection."""

    def client_of(self, connection_id: int) -> tuple[str | None, int]:
        """Return the client id and broker id (-1: none) last seen on a connection."""

    def tick(self, now_ms: int) -> Iterable[Effect]:
        """Do what is due."""

    def next_tick_ms(self, now_ms: int) -> int:
        """Return the latest time at which `tick` must be called."""


class ShellLimits(Protocol):
    """The limits of connections that the shell keeps."""

    @property
    def connections_max_idle_ms(self) -> int:
        """Time after which an idle connection is closed; negative: never."""

    @property
    def write_bytes_max(self) -> int:
        """Maximum number of bytes that a client has not read."""

    @property
    def write_stuck_ms(self) -> int:
        """Time after which a client that reads nothing is closed."""


class Links(Protocol):
    """Faults of the bytes of connections; `depends_on_requests` if one depends on who a client is."""

    @property
    def depends_on_requests(self) -> bool:
        """True if a fault depends on a client's requests."""

    @property
    def next_ms(self) -> int:
        """Time at which `tick` must be called."""

    def attach(self) -> None:
        """Begin."""

    def detach(self) -> None:
        """End."""

    def look(self, connection: SocketConnection, now_ms: int) -> None:
        """Apply exactly the faults that match a connection."""

    def tick(self, now_ms: int) -> None:
        """Begin and end faults that are due."""


class LinkTransport(asyncio.Transport):
    """A transport between a connection and its socket's own; `holds` is True while bytes are on their way."""

    holds: bool


def break_off(transport: asyncio.Transport) -> None:
    """End a connection by a TCP RST; unsent bytes are lost."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Shell:
    """Accepts connections on bound sockets for one server.

    Use `begin`, `listen` and `stop` from a running event loop. `clock` provides the server's time and ticks; with `tls`
    every connection begins with a handshake.
    """

    def __init__(self, served: Served, limits: ShellLimits, clock: Clock, tls: ssl.SSLContext | None = None) -> None:
        self.served = served
        self.limits = limits
        self.move(clock)
        self.tls = tls
        self.links: Links | None = None
        self._connections: dict[int, SocketConnection] = {}
        self._connections_made = 0
        self._listening: list[socket.socket] = []
        self._accepting: set[asyncio.Task[object]] = set()
        self._timer: Timer | None = None
        self._timer_ms = NEVER_MS
        self._will_finish = False
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._is_shut = True
        self._warnings = Repeats()
        self._is_busy = False
        self._effects: deque[Effect] = deque()
        """Effects to carry out, in order."""
        self._effects_ms = 0
        """Time since which the first of them waits."""

    @cached_property
    def turns(self) -> Turns:
        """The turns of the running event loop."""
        return turns_of(asyncio.get_running_loop())

    def move(self, clock: Clock) -> None:
        """Run by a clock from now on; not once it has begun."""
        self.clock = clock
        self._is_virtual = isinstance(clock, VirtualClock)

    def begin(self) -> None:
        """Accept connections, and start ticking."""
        self.loop = asyncio.get_running_loop()
        self._is_shut = False
        self._arm(self.clock.now_ms())
        self._sweep_idle()
        if self.links is not None:
            self.links.attach()

    async def listen(self, bound: socket.socket, listener: str = "") -> None:
        """Listen on a bound socket."""
        bound.setblocking(False)
        bound.listen(BACKLOG)
        self._listening.append(bound)
        self.loop.add_reader(bound, self._accept_waiting, bound, listener)

    async def stop(self, reason: str) -> None:
        """Stop listening and close every connection; responses in progress are still written."""
        self.carry_out()
        self._is_shut = True
        if self.links is not None:
            self.links.detach()
        await self._stop_accepting()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Prevent rearming while connections close.
        self._timer_ms = 0
        if self._idle_sweep is not None:
            self._idle_sweep.cancel()
        now_ms = self.clock.now_ms()
        for connection in self.connections():
            self.served.disconnected(connection.connection_id, reason, now_ms)
            connection.close()
        # A transport with an empty buffer closes within one iteration of the event loop; others get a moment.
        deadline = self.loop.time() + 0.25 if self._connections else 0.0
        while self._connections and self.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for connection in self.connections():
            connection.transport.abort()
        await asyncio.sleep(0)

    def _accept_waiting(self, bound: socket.socket, listener: str) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, _ = bound.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.warning("cannot accept connections: %s; trying again in %g s", error, ACCEPT_RETRY_S)
                self.loop.remove_reader(bound)
                self.loop.call_later(ACCEPT_RETRY_S, self._accept_again, bound, listener)
                return
            count = self.turns.connections + len(self._accepting)
            if count >= self.turns.connections_max:
                accepted.close()
                self._warn_of_too_many(count)
                continue
            accepted.setblocking(False)
            connecting = self.loop.connect_accepted_socket(partial(self.accept, listener), accepted)
            task: asyncio.Task[object] = self.loop.create_task(connecting)
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)

    def _warn_of_too_many(self, count: int) -> None:
        """Warn once a minute that the connections of all listeners leave too few descriptors."""
        if self._warnings.due("too many connections", round(1_000 * self.loop.time())):
            logger.warning("refused: %d connections to all listeners are open, and ulimit -n allows no more", count)

    def _accept_again(self, bound: socket.socket, listener: str) -> None:
        if bound in self._listening:
            self.loop.add_reader(bound, self._accept_waiting, bound, listener)

    async def _stop_accepting(self) -> None:
        for bound in self._listening:
            self.loop.remove_reader(bound)
            bound.close()
        self._listening.clear()
        if self._accepting:
            await asyncio.wait(self._accepting)

    def shut(self, is_shut: bool) -> None:
        """Reset all connections and refuse new ones, or accept connections again."""
        self.carry_out()
        self._is_shut = is_shut
        if is_shut:
            for connection in self.connections():
                connection.transport.abort()

    def serve(self, served: Served, reason: str) -> None:
        """Serve another server on the same port; every connection is reset, as when a process ends."""
        self.carry_out()
        now_ms = self.clock.now_ms()
        for connection in self.connections():
            self.served.disconnected(connection.connection_id, reason, now_ms)
            connection.transport.abort()
        self._connections.clear()
        self.served = served
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms = NEVER_MS
        self._arm(now_ms)

    def accept(self, listener: str = "") -> SocketConnection:
        """Return the protocol of a new connection."""
        return SocketConnection(self, listener) if self.tls is None else TlsConnection(self, listener)

    def connections(self) -> list[SocketConnection]:
        """Open connections, oldest first."""
        return list(self._connections.values())

    def received(self, connection: SocketConnection, data: bytes) -> None:
        """Pass received bytes to the server, and carry out its effects: a response by itself waits for others."""
        now_ms = self.clock.now_ms()
        effects = self.served.step(connection.connection_id, data, now_ms, self.is_late())
        if not self._effects:
            self._effects_ms = now_ms
        self._effects += effects
        is_response = len(effects) == 1 and effects[0].__class__ is Send
        if not is_response or self._is_virtual or now_ms > self._effects_ms + RESPONSES_WAIT_MS:
            self.carry_out()

    def perform(self, effects: Iterable[Effect], now_ms: int) -> None:
        """Carry out effects in order, then schedule the server's next tick.

        Effects that arise meanwhile (a toxic delivers bytes, a write ends a connection) are carried out afterwards.
        """
        self._effects += effects
        self.carry_out()
        if not self._is_busy:
            self._arm(now_ms)

    def carry_out(self) -> None:
        """Carry out the effects that wait."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._effects:
                effect = self._effects.popleft()
                connection = self._connections.get(effect.connection_id)
                if connection is None:
                    if isinstance(effect, ServerEffect):
                        self.carry_out_own(effect)
                    continue
                if self.links is not None and self.links.depends_on_requests:
                    self.links.look(connection, self.clock.now_ms())  # its client may be known now
                if effect.__class__ is Send:
                    connection.send(effect.data)
                else:
                    connection.carry_out(effect)
        finally:
            self._is_busy = False

    def carry_out_own(self, effect: ServerEffect) -> None:
        """Carry out an effect that is on no connection; servers with such effects override it."""

    def connection_accepted(self, connection: SocketConnection, address: str) -> None:
        """Register an accepted connection, or reset it while none are accepted."""
        if self._is_shut:
            connection.transport.abort()
            return
        self._connections_made += 1
        connection_id = self._connections_made
        connection.connection_id = connection_id
        self._connections[connection_id] = connection
        now_ms = self.clock.now_ms()
        self.perform(self.served.connected(connection_id, address, now_ms, connection.listener), now_ms)
        if self.links is not None:
            self.links.look(connection, now_ms)

    def ended(self, connection: SocketConnection) -> None:
        """Remove a closed connection at once; the server learns of many in turns."""
        if self._connections.pop(connection.connection_id, None) is None:
            return
        if self.is_late():
            self.turns.add(connection, Share(False, "ended connections", None))
        else:
            connection.report_end()

    def close_connection(self, connection_id: int, kind: str, reason: str) -> None:
        """Close a connection for a reason of its socket; `kind` is the journal's category."""
        now_ms = self.clock.now_ms()
        self.perform(self.served.close(connection_id, kind, reason, now_ms), now_ms)

    def _sweep_idle(self) -> None:
        """Close idle connections (Kafka's Selector), by the event loop's time, as idleness is a matter of sockets."""
        idle_ms = self.limits.connections_max_idle_ms
        if idle_ms < 0:
            return
        idle_since = self.loop.time() - idle_ms / 1000
        for connection in self.connections():
            if connection.active_at < idle_since:
                self.close_connection(connection.connection_id, "connections_max_idle_ms", f"idle for {idle_ms} ms")
        self._idle_sweep = self.loop.call_later(idle_ms / 1000 / IDLE_SWEEPS, self._sweep_idle)

    def is_late(self) -> bool:
        """Return True if what happens waits for its turn. Virtual time may pass before the event loop goes on."""
        if not self._will_finish:  # once in an iteration, however many connections are ready
            self._will_finish = True
            self.turns.begin()
            self.loop.call_soon(self._finish_iteration)
        return self.turns.is_late and not self._is_virtual

    def queue(self, connection: SocketConnection, share: Share) -> None:
        """Let a connection have its turn; in virtual time at once."""
        if self._is_virtual:
            connection.take_turn()
        else:
            self.turns.add(connection, share)

    def _finish_iteration(self) -> None:
        self._will_finish = False
        self.turns.end()
        self.carry_out()
        self._arm(self.clock.now_ms())

    def _arm(self, now_ms: int) -> None:
        """Schedule `tick` for the server's next deadline; a timer that is early enough stays."""
        when_ms = self.served.next_tick_ms(now_ms)
        if self.links is not None:
            when_ms = min(when_ms, self.links.next_ms)
        if when_ms >= self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = when_ms
        self._timer = self.clock.call_at(self.loop, when_ms, self._tick)

    def tick_now(self) -> None:
        """Let the server do what is due."""
        now_ms = self.clock.now_ms()
        self.perform(self.served.tick(now_ms), now_ms)

    def _tick(self) -> None:
        self._timer = None
        self._timer_ms = NEVER_MS
        now_ms = self.clock.now_ms()
        if self.links is not None and now_ms >= self.links.next_ms:
            self.links.tick(now_ms)
        self.perform(self.served.tick(now_ms), now_ms)


class SocketConnection(asyncio.Protocol):
    """One accepted connection."""

    __slots__ = (
        "_awaits_sent",
        "_held_back",
        "_is_queued",
        "_lost",
        "_share",
        "_shell",
        "_unread_before",
        "_watch",
        "active_at",
        "address",
        "connection_id",
        "listener",
        "transport",
        "writing_paused",
    )

    transport: asyncio.Transport

    def __init__(self, shell: Shell, listener: str) -> None:
        self._shell = shell
        self.listener = listener
        self.connection_id = 0
        self.address = "unknown"
        self._held_back = False
        self.writing_paused = False
        self._awaits_sent = self._is_queued = False
        self._share = NEW
        self._lost = ""
        self._unread_before = 0
        self._watch: asyncio.TimerHandle | None = None
        self.active_at = asyncio.get_running_loop().time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        self.transport = cast(asyncio.Transport, transport)
        self._shell.turns.connections += 1
        self.transport.set_write_buffer_limits(high=UNREAD_BYTES_HIGH, low=0)
        # As Kafka's Selector does: TCP keepalive detects a client that vanished.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        name = transport.get_extra_info("peername")
        self.address = str(name[0]) if isinstance(name, tuple) else "unknown"
        self._shell.connection_accepted(self, f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "unknown")

    def data_received(self, data: bytes) -> None:
        """Pass received bytes to the node."""
        shell = self._shell
        self.active_at = shell.loop.time()
        shell.received(self, data)

    def eof_received(self) -> None:
        """Write the answers that wait: the transport closes now."""
        self._shell.carry_out()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the closed socket."""
        if self._watch is not None:
            self._watch.cancel()
        shell = self._shell
        shell.turns.connections -= 1
        shell.turns.keep_unread(self, 0)
        self._awaits_sent = False
        if exc is not None and not isinstance(exc, OSError):
            shell.served.broke(exc, shell.clock.now_ms())
        self._lost = "the peer closed" if exc is None else f"the connection broke: {exc}"
        shell.ended(self)

    def report_end(self) -> None:
        """Tell the server that the connection has ended."""
        shell, reason = self._shell, self._lost
        self._lost = ""
        shell.served.disconnected(self.connection_id, reason, shell.clock.now_ms())

    @property
    def unread_bytes(self) -> int:
        """Number of written bytes that the socket has not taken yet."""
        return self.transport.get_write_buffer_size()

    def send(self, data: bytes) -> None:
        """Write; close the connection if too many bytes are unread."""
        self.active_at = self._shell.loop.time()
        self.transport.write(data)
        if self.writing_paused:
            unread, limit = self.unread_bytes, self._shell.limits.write_bytes_max
            if unread > limit:
                self.give_up("write_bytes_max", f"the peer left {unread} bytes unread, write_bytes_max={limit}")
            else:
                self._shell.turns.keep_unread(self, unread)

    def carry_out(self, effect: Effect) -> None:
        """Carry out an effect other than Send."""
        match effect:
            case Close():
                self.close()
            case Reset():
                self.reset()
            case PauseReading():
                self.set_held_back(True)
            case ResumeReading():
                self.set_held_back(False)
            case AwaitSent(_, share):
                self.await_sent(share)

    def close(self) -> None:
        """Close once everything is written; reset the connection if the client does not read."""
        self.transport.close()
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self._shell.loop.call_later(CLOSE_LINGER_S, self._cut_off)

    def _cut_off(self) -> None:
        transport = self.transport
        if isinstance(transport, LinkTransport) and transport.holds:
            self._watch = self._shell.loop.call_later(CLOSE_LINGER_S, self._cut_off)
        else:
            transport.abort()

    def reset(self) -> None:
        """Abort the connection so that the client receives a TCP RST."""
        break_off(self.transport)

    def set_held_back(self, held_back: bool) -> None:
        """Pause or resume reading at the node's request."""
        self._held_back = held_back
        self._read_or_not()

    def await_sent(self, share: Share) -> None:
        """Notify the node in this connection's turn, when all bytes so far are written."""
        self._awaits_sent, self._share = True, share
        self._queue_turn()

    def pause_writing(self) -> None:
        """Pause: the socket's buffer is full."""
        self.writing_paused = True
        self._read_or_not()
        self._unread_before = 1 << 62
        self._look_whether_stuck()

    def resume_writing(self) -> None:
        """Resume: the socket's buffer has drained."""
        self.writing_paused = False
        self._shell.turns.keep_unread(self, 0)
        if self._watch is not None and not self.transport.is_closing():
            self._watch.cancel()
            self._watch = None
        self._queue_turn()
        self._read_or_not()

    def _queue_turn(self) -> None:
        if self._awaits_sent and not self.writing_paused and not self._is_queued:
            self._is_queued = True
            self._shell.queue(self, self._share)

    def take_turn(self) -> None:
        """Notify the node, unless the socket's buffer is full again."""
        if self._lost:
            self.report_end()
            return
        self._is_queued = False
        if self._awaits_sent and not self.writing_paused:
            self._awaits_sent = False
            shell = self._shell
            now_ms = shell.clock.now_ms()
            shell.perform(shell.served.sent(self.connection_id, now_ms), now_ms)

    @property
    def wants_more(self) -> bool:
        """True if nothing forbids to read from it."""
        return not (self._held_back or self.writing_paused)

    def _read_or_not(self) -> None:
        if self.transport.is_closing():
            return
        if self.wants_more:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def _look_whether_stuck(self) -> None:
        unread = self.unread_bytes
        stuck_ms = self._shell.limits.write_stuck_ms
        if unread >= self._unread_before:
            self._watch = None
            self.give_up("write_stuck_ms", f"the peer read nothing for {stuck_ms} ms, {unread} bytes wait for it")
            return
        self._unread_before = unread
        self._watch = self._shell.loop.call_later(stuck_ms / 1000, self._look_whether_stuck)

    def give_up(self, kind: str, reason: str) -> None:
        """Close for a reason of the socket; what is unread is lost."""
        self._shell.close_connection(self.connection_id, kind, reason)
        self.transport.abort()


class TlsConnection(SocketConnection):
    """One accepted connection with TLS."""

    __slots__ = ("_first_flight", "_has_begun", "_secured", "_tls")

    def __init__(self, shell: Shell, listener: str) -> None:
        super().__init__(shell, listener)
        assert shell.tls is not None
        self._tls = TlsSession(shell.tls)
        self._secured = self._has_begun = False
        self._first_flight = b""

    def data_received(self, data: bytes) -> None:
        """Decrypt received bytes and pass them to the node; a handshake, which takes some milliseconds, may wait."""
        shell = self._shell
        self.active_at = shell.loop.time()
        if self._has_begun or not shell.is_late():
            self._has_begun = True
            self._receive(data)
        elif len(self._first_flight) + len(data) > FIRST_FLIGHT_BYTES_MAX:
            about = f"refused: a TLS handshake that begins with more than {FIRST_FLIGHT_BYTES_MAX} bytes"
            shell.close_connection(self.connection_id, TlsError.kind, about)
        else:
            if not self._first_flight:
                shell.turns.add(self, Share(False, "TLS handshake", self.address))
            self._first_flight += data

    def take_turn(self) -> None:
        """Go on with a handshake, else as every connection."""
        data, self._first_flight = self._first_flight, b""
        if data and not self._lost:
            self._has_begun = True
            self._receive(data)
        else:
            super().take_turn()

    def _receive(self, data: bytes) -> None:
        shell, tls = self._shell, self._tls
        try:
            received = tls.receive(data)
        except TlsError as failure:
            self._write_tls()
            shell.close_connection(self.connection_id, failure.kind, f"refused: {failure}")
            return
        self._write_tls()
        if tls.established and not self._secured:
            self._secured = True
            now_ms = shell.clock.now_ms()
            shell.perform(shell.served.secured(self.connection_id, tls.peer_certificate, now_ms), now_ms)
        if received:
            shell.received(self, received)
        if tls.ended:
            self.eof_received()
            self.close()

    def send(self, data: bytes) -> None:
        """Encrypt and write, unless the client sent close_notify: TLS takes nothing after that."""
        if self.transport.is_closing():
            return
        self._tls.send(data)
        super().send(self._tls.outgoing())

    def close(self) -> None:
        """Send close_notify and close."""
        self._tls.end()
        self._write_tls()
        super().close()

    def _write_tls(self) -> None:
        if (data := self._tls.outgoing()) and not self.transport.is_closing():
            self.transport.write(data)

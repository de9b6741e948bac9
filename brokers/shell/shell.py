"""The asyncio side of a simulated broker: performs effects, feeds events back, and ticks at the next deadline."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from mockraft.brokers.effects import (
    BreakOff,
    ClientEvent,
    Connect,
    Disconnect,
    Effect,
    Event,
    Link,
    SendRequest,
    StateChanged,
    Stopped,
    ToClient,
)
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.lifecycle import BrokerState
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.clock import REAL_CLOCK, Clock, Timer
from mockraft.kafka_api.effects import Effect as ListenerEffect

AnyEvent: TypeAlias = Event | ClientEvent


class Links(Protocol):
    """The outgoing connections of a broker: over sockets, or in memory. Each gives its events to `Shell.feed`."""

    def connect(self, link: Link) -> None:
        """Open a connection; Opened or NotOpened follows."""

    def send(self, effect: SendRequest) -> None:
        """Send a request over an open connection; Answered or Failed follows."""

    def disconnect(self, link: Link) -> None:
        """Close a connection, or stop opening it; nothing follows."""

    def break_off(self, link: Link) -> None:
        """Cut a connection; Failed and Closed follow."""

    async def close(self) -> None:
        """Close every connection."""


class Shell:
    """Runs one kernel on the event loop. `changed` is set after every step, `stopped` at the broker's end.

    `links` makes the outgoing connections for this shell's `feed`.
    `on_state` is called with each new state, `on_client` with each effect on an accepted connection.
    """

    def __init__(self, kernel: Kernel, links: Callable[[Callable[[Event], None]], Links]) -> None:
        self.changed = asyncio.Event()
        self.stopped = asyncio.Event()
        self.on_state: Callable[[BrokerState], None] | None = None
        self.on_client: Callable[[ListenerEffect], None] | None = None
        self._kernel = kernel
        self._clock: Clock = REAL_CLOCK
        self._links = links(self.feed)
        self._events: deque[AnyEvent] = deque()
        self._is_busy = False
        self._timers: list[tuple[float, Timer]] = []
        self._will_flush = self._will_tick = False
        kernel.outside = self

    def now_ms(self) -> float:
        """Return the time of its clock, with microseconds: latencies of heartbeats are measured by it."""
        return self._clock.now_us() / 1_000

    def move(self, clock: Clock, links: Callable[[Callable[[Event], None]], Links]) -> None:
        """Run by another clock and over other connections from now on; not once it has begun."""
        self._clock = clock
        self._links = links(self.feed)

    def feed(self, event: AnyEvent) -> None:
        """Give an event to the kernel, after the effects that are being performed."""
        if self._is_busy:
            self._events.append(event)
        else:
            self.perform(self._kernel.step(event, self.now_ms()))

    def perform(self, effects: Sequence[Effect]) -> None:
        """Carry out effects in order, and what follows from the events that arise meanwhile."""
        if self._is_busy:
            self._perform(effects)
            return
        self._is_busy = True
        try:
            if effects:
                self._perform(effects)
            while self._events:
                self._perform(self._kernel.step(self._events.popleft(), self.now_ms()))
        finally:
            self._is_busy = False
        self._arm()
        self.changed.set()

    def flush(self) -> None:
        """Perform what calls from outside of a step have left."""
        self._will_flush = False
        self.perform(self._kernel.take_effects())

    def _flush_once(self) -> None:
        if self._will_flush:
            self.flush()

    def touched(self) -> None:
        """Flush soon, in the running event loop if there is one."""
        if self._will_flush or self._is_busy:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._will_flush = True
        loop.call_soon(self._flush_once)
        if self._clock is not REAL_CLOCK:
            # Time may pass before the event loop has its turn.
            self._clock.call_at(loop, self.now_ms(), self._flush_once)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def close(self) -> None:
        """Close every connection. The kernel must have been stopped."""
        self.flush()
        for _, timer in self._timers:
            timer.cancel()
        await self._links.close()

    def _perform(self, effects: Iterable[Effect]) -> None:
        links = self._links
        for effect in effects:
            if effect.__class__ is SendRequest:
                links.send(effect)
                continue
            match effect:
                case Connect(link):
                    links.connect(link)
                case Disconnect(link):
                    links.disconnect(link)
                case BreakOff(link):
                    links.break_off(link)
                case ToClient(client_effect) if self.on_client is not None:
                    self.on_client(client_effect)
                case StateChanged(state) if self.on_state is not None:
                    self.on_state(state)
                case Stopped():
                    self.stopped.set()

    def _arm(self) -> None:
        """Schedule the next tick. Later ticks stay scheduled, so that a heartbeat sets one timer and cancels none."""
        when_ms = self._kernel.next_deadline_ms
        if self._clock is not REAL_CLOCK and when_ms <= self.now_ms() and not self._will_tick:
            # Nobody may move the clock now, and its timer of this time may be set already.
            self._will_tick = True
            asyncio.get_running_loop().call_soon(self._tick_soon)
        if when_ms >= (self._timers[-1][0] if self._timers else NEVER_MS):
            return
        loop = asyncio.get_running_loop()
        self._timers.append((when_ms, self._clock.call_at(loop, when_ms, self._tick)))

    def _tick_soon(self) -> None:
        self._will_tick = False
        self._tick_now()

    def _tick(self) -> None:
        self._timers.pop()
        self._tick_now()

    def _tick_now(self) -> None:
        self.perform(self._kernel.tick(self.now_ms()))

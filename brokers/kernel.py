"""The sans-IO core under the components of a broker: requests over links, named timers, and the time.

`Kernel.step` takes an event and `Kernel.tick` the time; both return the effects. Nothing here has a socket or a clock:
the shell (`brokers.shell`) does, and so does a test with a network of its own. A component may also be called from
outside of a step, as by a test that breaks a disk; `Outside` then gives the time and performs the effects soon.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, TypeVarTuple

from mockraft.brokers.effects import (
    Answered,
    ClientEvent,
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
    Versions,
)
from mockraft.kafka_api.api import NEVER_MS
from mockraft.wire import api_keys
from mockraft.wire.errors import DisconnectedError, RequestTimedOutError, UnsupportedVersionError, WireError

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage


Call = Callable[[], None]
_DUE_MS = itemgetter(0)


class Timers:
    """Timers by name. A broker has few, so that a look at all of them costs less than a heap of them.

    `next_ms` is the time to look for due ones: that of the earliest timer, or earlier when that was replaced or
    cancelled, which saves the search for the next. NEVER_MS without any.
    """

    __slots__ = ("_timers", "next_ms")

    def __init__(self) -> None:
        self._timers: dict[object, tuple[float, object, Call]] = {}
        self.next_ms: float = NEVER_MS

    def set(self, name: object, due_ms: float, call: Call) -> None:
        """Set the timer of this name."""
        self._timers[name] = (due_ms, name, call)
        if due_ms < self.next_ms:
            self.next_ms = due_ms

    def cancel(self, name: object) -> None:
        """Cancel the timer of this name, if it is set."""
        self._timers.pop(name, None)

    def clear(self) -> None:
        """Cancel every timer."""
        self._timers.clear()
        self.next_ms = NEVER_MS

    def take_due(self, now_ms: float) -> Iterator[Call]:
        """Remove the due timers one by one, in order, without those that are cancelled or set meanwhile."""
        for timer in sorted([each for each in self._timers.values() if each[0] <= now_ms], key=_DUE_MS):
            _, name, call = timer
            if self._timers.get(name) is timer:
                del self._timers[name]
                yield call
        self.next_ms = min(map(_DUE_MS, self._timers.values()), default=NEVER_MS)


R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")
OnFailure = Callable[[Exception], None]


class Outside(Protocol):
    """The shell, for calls from outside of a step."""

    def now_ms(self) -> float:
        """The time."""

    def touched(self) -> None:
        """Perform the kernel's effects soon, and look at its next deadline."""


class _Request(NamedTuple):
    request_id: int
    link: Link
    make: Callable[[Versions], Any]
    on_answer: Callable[[Any], None]
    on_failure: OnFailure
    version: int | None
    timeout_ms: int | None


class Kernel:
    """Requests, timers and effects of one broker. `failed` is called with the exception of a callback.

    `serve` is called with the events of accepted connections.

    Times are ms of a clock that never goes back. Stopped, it drops requests and timers, but still disconnects.
    """

    def __init__(self, failed: Callable[[Exception], None], serve: Callable[[ClientEvent], None] | None = None) -> None:
        self.outside: Outside | None = None
        self.is_stopped = False
        self._failed = failed
        self._serve = serve
        self._timers = Timers()
        self._effects: list[Effect] = []
        self._open: dict[Link, Versions] = {}
        self._opening: dict[Link, list[_Request]] = {}
        self._sent: dict[int, _Request] = {}
        self._requests_made = 0
        self._is_inside = False
        self._now_ms = 0.0

    # For the shell.

    def step(self, event: Event | ClientEvent, now_ms: float) -> list[Effect]:
        """Process one event; return the effects."""
        # The frequent one first, and without a class pattern: ten thousand brokers send heartbeats.
        if not isinstance(event, Answered):
            return self.run(now_ms, self._take, event)
        request = self._forget(event.request_id)
        return [] if request is None else self.run(now_ms, request.on_answer, event.response)

    def tick(self, now_ms: float) -> list[Effect]:
        """Run the timers that are due; return the effects. Timers set meanwhile run in a later tick."""
        for call in self._timers.take_due(now_ms):
            self._effects = self.run(now_ms, call)  # run took them; they come out together, in order
        return self.take_effects()

    def run(self, now_ms: float, call: Callable[[*Arguments], None], *arguments: *Arguments) -> list[Effect]:
        """Run `call` as a step of its own; return the effects."""
        self._now_ms, self._is_inside = now_ms, True
        try:
            call(*arguments)
        except Exception as error:
            self._failed(error)
        finally:
            self._is_inside = False
        return self.take_effects()

    def enter(self, call: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
        """Run `call` from outside as a step of its own; the effects are performed soon."""
        if self._is_inside:
            call(*arguments)
        else:
            self._effects = self.run(self.now_ms, call, *arguments)
            self._touch()

    def take_effects(self) -> list[Effect]:
        """Return the effects since the last call."""
        effects, self._effects = self._effects, []
        return effects

    @property
    def next_deadline_ms(self) -> float:
        """The time of the next tick."""
        return self._timers.next_ms

    # For components.

    @property
    def now_ms(self) -> float:
        """The time of this step; outside of one, the shell's."""
        return self._now_ms if self._is_inside or self.outside is None else self.outside.now_ms()

    def after(self, name: object, wait_ms: float, call: Callable[[], None]) -> None:
        """Set a timer; it replaces the earlier timer of this name. Nothing happens once the kernel is stopped."""
        if not self.is_stopped:
            self._timers.set(name, (self._now_ms if self._is_inside else self.now_ms) + wait_ms, call)
            if not self._is_inside:
                self._touch()

    def cancel(self, name: str) -> None:
        """Cancel a timer, if it is set."""
        self._timers.cancel(name)

    def emit(self, effect: Effect) -> None:
        """Add an effect."""
        self._effects.append(effect)
        if not self._is_inside:
            self._touch()

    def request(
        self,
        link: Link,
        make: Callable[[Versions], RequestMessage[R]],
        on_answer: Callable[[R], None],
        on_failure: OnFailure,
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Send a request, over a new connection if need be; `timeout_ms` runs from when the connection is open.

        `make` builds it for the versions that the server offers, or raises UnsupportedVersionError.
        `on_failure` gets DisconnectedError, RequestTimedOutError, UnsupportedVersionError or WireError. Neither is
        called before this method returns. A request of a link that is disconnected is forgotten.
        """
        if self.is_stopped:
            return
        self._requests_made += 1
        request = _Request(self._requests_made, link, make, on_answer, on_failure, version, timeout_ms)
        versions = self._open.get(link)
        if versions is not None:
            self._send(request, versions)
        elif link in self._opening:
            self._opening[link].append(request)
        else:
            self._opening[link] = [request]
            self.emit(Connect(link))

    def versions(self, link: Link) -> Versions | None:
        """Return the versions that the server offers; None while the connection is not open."""
        return self._open.get(link)

    def disconnect(self, link: Link) -> None:
        """Close a connection and forget its requests."""
        if self._open.pop(link, None) is not None or self._opening.pop(link, None) is not None:
            for request in [each for each in self._sent.values() if each.link == link]:
                self._forget(request.request_id)
            self.emit(Disconnect(link))

    def stop(self) -> None:
        """Drop every request and timer."""
        self.is_stopped = True
        self._timers.clear()
        self._sent.clear()
        self._opening.clear()

    # Events.

    def _take(self, event: Opened | NotOpened | Failed | Closed | ClientEvent) -> None:
        match event:
            case Failed(request_id, error):
                if (request := self._forget(request_id)) is not None:
                    if isinstance(error, DisconnectedError | WireError):
                        self._open.pop(request.link, None)
                    request.on_failure(error)
            case Opened(link, versions):
                if (waiting := self._opening.pop(link, None)) is not None:
                    self._open[link] = versions
                    for request in waiting:
                        self._send(request, versions)
            case NotOpened(link, error):
                for request in self._opening.pop(link, ()):
                    request.on_failure(error)
            case Closed(link):
                self._open.pop(link, None)
            case _:
                assert self._serve is not None
                self._serve(event)

    def _send(self, request: _Request, versions: Versions) -> None:
        try:
            message = request.make(versions)
        except UnsupportedVersionError as error:
            self.after(request.request_id, 0, functools.partial(request.on_failure, error))
            return
        self._sent[request.request_id] = request
        if request.timeout_ms is not None:
            late = functools.partial(self._late, request, message.api_key)
            self.after(request.request_id, request.timeout_ms, late)
        self.emit(SendRequest(request.request_id, request.link, message, request.version))

    def _late(self, request: _Request, api_key: int) -> None:
        """Give up a request, and its connection, as Kafka's NetworkClient does."""
        self._forget(request.request_id)
        self.disconnect(request.link)
        name, timeout_ms = api_keys.name(api_key), request.timeout_ms
        request.on_failure(RequestTimedOutError(f"no answer to {name} within {timeout_ms} ms"))

    def _forget(self, request_id: int) -> _Request | None:
        request = self._sent.pop(request_id, None)
        if request is not None and request.timeout_ms is not None:
            self._timers.cancel(request_id)
        return request

    def _touch(self) -> None:
        if self.outside is not None:
            self.outside.touched()

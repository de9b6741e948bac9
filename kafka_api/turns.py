"""The turns of connections whose requests wait, shared by all listeners of an event loop.

What sockets have sent is answered in the iteration of the event loop that reads it, for 5 ms. Whatever comes
later, is long or belongs to an API whose answers took long lately waits here. In some iterations short requests have
some milliseconds, in the next one a single dear request is answered, and nothing else. uvloop writes at the end of an
iteration; so an answer waits for no dear request that came after it, and a heartbeat for one at most. A fetch of a
follower in the same process takes several iterations, so it waits for one or two dear requests.

Within both kinds an API has a turn when its answers have taken the least time so far, then each of its clients in
turn, then each connection of that client. So nobody gains by more APIs, clients or connections than others have, but
for the first of each. This is start-time fair queueing: an API that begins to wait starts at the time that the last
one had, as otherwise a long pause would be time saved up.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from time import perf_counter_ns
from typing import Final, Generic, Protocol, TypeVar

from mockraft.kafka_api.effects import Share

T = TypeVar("T")

_ITERATION_NS: Final = 5_000_000
"""Time for answers in an iteration of the event loop, from the first bytes that it reads; the rest waits."""
UNREAD_BYTES_MAX: Final = 256 << 20
"""Bytes that clients whose sockets are full may leave unread together; the one with most of them is closed."""
_SHORT_NS: Final = 5_000_000
"""Time for turns of short requests in an iteration."""
_SHORTS: Final = 3
"""Iterations with short requests from one dear request to the next."""


class Waiting(Protocol):
    """A connection that waits for its turn, or for its client to read."""

    @property
    def unread_bytes(self) -> int:
        """Number of written bytes that the socket has not taken yet."""

    def take_turn(self) -> None:
        """Answer its next requests."""

    def give_up(self, kind: str, reason: str) -> None:
        """Close, whatever is unread."""


class _Line:
    """The connections that wait with requests of one API, by client."""

    def __init__(self, used_ns: int) -> None:
        self.used_ns = used_ns
        self._clients: dict[Hashable, deque[Waiting]] = {}

    def __bool__(self) -> bool:
        return bool(self._clients)

    def add(self, client: Hashable, connection: Waiting) -> None:
        self._clients.setdefault(client, deque()).append(connection)

    def next(self) -> Waiting:
        client, connections = next(iter(self._clients.items()))
        del self._clients[client]
        connection = connections.popleft()
        if connections:
            self._clients[client] = connections  # behind the other clients
        return connection


class _Queue:
    """Waiting connections, in the order of their turns."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, _Line] = {}
        self._used_ns: dict[Hashable, int] = {}
        self._floor_ns = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, connection: Waiting, share: Share) -> None:
        line = self._lines.get(share.api)
        if line is None:
            line = self._lines[share.api] = _Line(max(self._floor_ns, self._used_ns.get(share.api, 0)))
        line.add(share.client, connection)

    def take(self, now_ns: Callable[[], int]) -> int:
        """Let the next connection have its turn; return the time that it took."""
        api, line = min(self._lines.items(), key=lambda each: each[1].used_ns)
        self._floor_ns = line.used_ns
        connection = line.next()
        if not line:
            del self._lines[api]
        began_ns = now_ns()
        try:
            connection.take_turn()
        finally:
            took_ns = now_ns() - began_ns
            line.used_ns += took_ns
            self._used_ns[api] = line.used_ns
        return took_ns


class _Job(Generic[T]):
    """Work that is no connection's, in its turn."""

    def __init__(self, work: Callable[[], T], done: asyncio.Future[T]) -> None:
        self.unread_bytes = 0
        self._work, self._done = work, done

    def take_turn(self) -> None:
        if self._done.done():
            return
        try:
            self._done.set_result(self._work())
        except Exception as error:
            self._done.set_exception(error)
        except BaseException:
            self._done.cancel()
            raise

    def give_up(self, kind: str, reason: str) -> None:
        self._done.cancel()


class Turns:
    """The turns of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now_ns: Callable[[], int] = perf_counter_ns) -> None:
        self._loop = weakref.ref(loop)  # `_TURNS` has it as its key
        self._now_ns = now_ns
        self._short, self._dear = _Queue(), _Queue()
        self._late_ns = 0
        self.connections = 0
        self.connections_max = sys.maxsize
        """Accepted connections of all listeners; those above the maximum are closed at once."""
        self._is_counting = self._will_take = False
        self._unread: dict[Waiting, int] = {}
        self._unread_bytes = 0
        self._is_dears = False
        """True if this iteration is for a dear request."""
        self._shorts = 0
        """Iterations with short requests since the last one."""

    def begin(self) -> None:
        """Count the time of this iteration, in which the first bytes were read."""
        if not self._is_counting:
            self._is_counting = True
            self._late_ns = 0 if self._is_dears else self._now_ns() + _ITERATION_NS

    @property
    def is_late(self) -> bool:
        """True if what is read now waits for its turn."""
        return self._now_ns() > self._late_ns

    def end(self) -> None:
        """End the iteration."""
        self._is_counting = False

    def add(self, connection: Waiting, share: Share) -> None:
        """Let a connection go on after those that wait already."""
        (self._dear if share.is_dear else self._short).add(connection, share)
        self._schedule()

    async def run(self, work: Callable[[], T], share: Share) -> T:
        """Do a slice of work in its turn."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.add(_Job(work, done), share)
        return await done

    def keep_unread(self, connection: Waiting, size: int) -> None:
        """Keep how many bytes the client of a connection has not read, and close one if they are too many in all."""
        self._unread_bytes += size - self._unread.pop(connection, 0)
        if size:
            self._unread[connection] = size
        if self._unread_bytes <= UNREAD_BYTES_MAX:
            return
        self._unread = {each: each.unread_bytes for each in self._unread}  # some have read since
        self._unread_bytes = sum(self._unread.values())
        if self._unread_bytes > UNREAD_BYTES_MAX:
            most = max(self._unread, key=self._unread.__getitem__)
            about = f"all clients left {self._unread_bytes} bytes unread, this one {self._unread[most]}"
            most.give_up("write_bytes_max", about)

    def _schedule(self) -> None:
        if not self._will_take and (loop := self._loop()) is not None:
            self._will_take = True
            # A timer runs after the sockets that are ready in the same iteration; `call_soon` would run before them.
            loop.call_later(0, self._take)

    def _take(self) -> None:
        self._will_take = False
        try:
            if self._is_dears:
                self._is_dears, self._shorts = False, 0
                self._dear.take(self._now_ns)
            else:
                left_ns = _SHORT_NS
                while self._short and left_ns > 0:
                    left_ns -= self._short.take(self._now_ns)
                self._shorts += 1
                self._is_dears = bool(self._dear) and self._shorts >= _SHORTS
        finally:
            if self._short or self._dear:
                self._schedule()


_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = weakref.WeakKeyDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    """Return the turns of an event loop."""
    return _TURNS.setdefault(loop, Turns(loop))

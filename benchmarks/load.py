"""Load on a controller from one thread: prepared frames, and one request in flight on each connection, as brokers have.

It uses sockets and epoll without an event loop: the load shares the cores with the controller, so it must be cheap. Its
own CPU time is measured too.
"""

from __future__ import annotations

import heapq
import itertools
import random
import select
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import psutil
from mockraft.conformance.blocking_connection import BlockingConnection
from mockraft.wire.connection import read_response
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

R = TypeVar("R")

RECEIVE_BYTES = 1 << 20
# Size, correlation id, tags and throttle time come first in a heartbeat, registration or fetch response.
ERROR_CODE = slice(13, 15)


class Load(NamedTuple):
    """A name, the frames of each connection in their order, and a rate (0: as fast as responses arrive)."""

    name: str
    streams: Sequence[Iterable[bytes]]
    per_s: int = 0


class Measured(NamedTuple):
    """The result of one run: responses, errors, seconds, CPU seconds of the controller and of the load, latencies."""

    answers: int
    errors: int
    seconds: float
    cpu_s: float
    load_cpu_s: float
    latencies_ms: list[float]


class _Connection:
    __slots__ = ("due", "frames", "held", "sent_at", "socket")

    def __init__(self, address: tuple[str, int], frames: Iterator[bytes]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.frames = frames
        self.held = bytearray()
        self.due = self.sent_at = 0.0


def repeated(frames: Sequence[bytes], connections: int) -> list[Iterator[bytes]]:
    """Distribute the frames over the connections; each repeats its own."""
    return [itertools.cycle(frames[number::connections] or frames) for number in range(connections)]


def dealt(frames: Sequence[bytes], connections: int) -> list[Iterator[bytes]]:
    """Distribute the frames over the connections, each frame once."""
    return [iter(frames[number::connections]) for number in range(connections)]


def run(address: tuple[str, int], pid: int, load: Load, seconds: float = 3600.0) -> Measured:
    """Send until the time or the frames end; close every connection afterwards."""
    connections = [_Connection(address, iter(frames)) for frames in load.streams]
    process = psutil.Process(pid)
    poll = select.epoll()
    for connection in connections:
        poll.register(connection.socket, select.EPOLLIN)
    latencies: list[float] = []
    cpu_before, own_before = sum(process.cpu_times()[:2]), time.process_time()
    began = time.perf_counter()
    errors = _drive(poll, connections, load.per_s, began + seconds, latencies)
    taken_s = time.perf_counter() - began
    cpu_s, own_s = sum(process.cpu_times()[:2]) - cpu_before, time.process_time() - own_before
    poll.close()
    for connection in connections:
        connection.socket.close()
    return Measured(len(latencies), errors, taken_s, cpu_s, own_s, sorted(1000 * each for each in latencies))


def _drive(poll: select.epoll, connections: list[_Connection], per_s: int, end: float, latencies: list[float]) -> int:
    """Keep one frame in flight on each connection until `end`; return the number of errors."""
    now_s = time.perf_counter
    by_fd = {connection.socket.fileno(): connection for connection in connections}
    pause_s = len(connections) / per_s if per_s else 0.0
    due: list[tuple[float, int]] = []
    errors = under_way = 0
    for fd, connection in by_fd.items():
        # Paced connections do not all start at once.
        connection.due = now_s() + random.random() * pause_s
        heapq.heappush(due, (connection.due, fd))
    while due or under_way:
        while due and (now := now_s()) >= due[0][0]:
            connection = by_fd[heapq.heappop(due)[1]]
            frame = next(connection.frames, None)
            if frame is not None and now < end:
                connection.sent_at = now
                connection.socket.sendall(frame)
                under_way += 1
        for fd, _ in poll.poll(max(0.0, due[0][0] - now_s()) if due else -1) if due or under_way else ():
            connection = by_fd[fd]
            data = connection.socket.recv(RECEIVE_BYTES)
            held = connection.held
            if held or len(data) != 4 + int.from_bytes(data[:4]):
                if not data:
                    raise ConnectionError("the controller closed a connection")
                held += data
                if len(held) < 4 + int.from_bytes(held[:4]):
                    continue
                data, connection.held = bytes(held[:64]), bytearray()
            now = now_s()
            latencies.append(now - connection.sent_at)
            errors += data[ERROR_CODE] != b"\0\0"
            under_way -= 1
            if pause_s:
                connection.due += pause_s
                heapq.heappush(due, (connection.due, fd))
            elif now < end and (frame := next(connection.frames, None)) is not None:
                connection.sent_at = now
                connection.socket.sendall(frame)
                under_way += 1
    return errors


class TimedConnection(BlockingConnection):
    """A blocking connection that measures how long its responses take."""

    def __init__(self, address: tuple[str, int], timeout_s: float | None = None) -> None:
        super().__init__(address, "benchmark", timeout_s)

    def timed(self, message: RequestMessage[R], version: int) -> tuple[R, float]:
        """Send a request; return its response, and the seconds from the first byte sent to the last one received."""
        assert isinstance(message, Message)
        frame = self.encode(message, version)
        began = time.perf_counter()
        self.socket.sendall(frame)
        answer = self.receive_frame()
        taken_s = time.perf_counter() - began
        response: R = read_response(answer, message.api_key, version)
        return response, taken_s

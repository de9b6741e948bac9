"""Load on a controller from one thread: frames encoded beforehand, one under way on each connection, as a broker has.

Sockets and epoll without an event loop: the load shares the cores with what it measures, so it does as little as it
can, and says how much that was.
"""

from __future__ import annotations

import heapq
import itertools
import random
import select
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import psutil
from mockraft.wire.connection import read_response, write_request

RECEIVE_BYTES = 1 << 20
# Size, correlation id, tags and throttle time come first in a heartbeat, registration or fetch response.
ERROR_CODE = slice(13, 15)


class Load(NamedTuple):
    """A name, the frames of each connection in their order, and a pace (0: as fast as answers come)."""

    name: str
    streams: Sequence[Iterable[bytes]]
    per_s: int = 0


class Measured(NamedTuple):
    """The result of one run: answers, errors, seconds, CPU seconds of the controller and of the load, latencies."""

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
    """The frames dealt out to so many connections, each of which goes through its own again and again."""
    return [itertools.cycle(frames[number::connections] or frames) for number in range(connections)]


def dealt(frames: Sequence[bytes], connections: int) -> list[Iterator[bytes]]:
    """The frames dealt out to so many connections, each once."""
    return [iter(frames[number::connections]) for number in range(connections)]


def run(address: tuple[str, int], pid: int, load: Load, seconds: float = 3600.0) -> Measured:
    """Send until the time is over or the frames are; every connection is closed afterwards."""
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
    """One frame under way on each connection until `end`; gives the number of errors."""
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


class Asker:
    """One blocking connection: a message out, its answer in, and how long that took."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = itertools.count(1)

    def timed(self, message: Any, version: int) -> tuple[Any, float]:
        """The answer, and the seconds from the first byte sent to the last one received."""
        frame = write_request(message, version, next(self._correlation_ids), "benchmark")
        began = time.perf_counter()
        self.socket.sendall(frame)
        answer = self._frame()
        taken_s = time.perf_counter() - began
        return read_response(answer, message.api_key, version), taken_s

    def ask(self, message: Any, version: int) -> Any:
        """The answer."""
        return self.timed(message, version)[0]

    def close(self) -> None:
        self.socket.close()

    def _frame(self) -> bytes:
        length = int.from_bytes(self._bytes(4))
        return self._bytes(length)

    def _bytes(self, count: int) -> bytes:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            received = self.socket.recv_into(view)
            if not received:
                raise ConnectionError("the controller closed the connection")
            view = view[received:]
        return bytes(buffer)

"""A broker's heartbeats to a controller while hostile clients keep it busy: how long they wait, and its memory."""

from __future__ import annotations

import contextlib
import itertools
import re
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from mockraft.wire import error_codes
from mockraft.wire.connection import FrameReader
from mockraft.wire.errors import WireError
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest

from ..blocking_connection import BlockingConnection

HEARTBEAT_PAUSE_S = 0.01
TIMEOUT_S = 20.0
_READ_BYTES = 1 << 20
_FRAME_BYTES_MAX = 1 << 30

Address = tuple[str, int]
Client = Callable[[Address, bytes, threading.Event], None]


class Waits(NamedTuple):
    """Heartbeats during an attack: their latencies in milliseconds, ascending; how many left the broker fenced."""

    latencies_ms: Sequence[float]
    fenced: int

    @property
    def p99_ms(self) -> float:
        """The latency that one in a hundred exceeds."""
        return self.latencies_ms[len(self.latencies_ms) * 99 // 100]

    @property
    def max_ms(self) -> float:
        """The longest latency."""
        return self.latencies_ms[-1]


class GoodBroker:
    """A registered broker that sends heartbeats, each when the one before is answered."""

    def __init__(
        self,
        address: Address,
        registration: BrokerRegistrationRequest,
        log_in: Callable[[BlockingConnection], None] = lambda _: None,
    ) -> None:
        """Connect, log in, and register it. Raises AssertionError if the controller refuses it."""
        self._connection = BlockingConnection(address, "good", TIMEOUT_S)
        log_in(self._connection)
        registered = self._connection.exchange(registration, 4)
        assert registered.error_code == 0, registered
        self.broker_epoch = registered.broker_epoch
        self._heartbeat = BrokerHeartbeatRequest(
            broker_id=registration.broker_id,
            broker_epoch=registered.broker_epoch,
            current_metadata_offset=1 << 40,
            want_fence=False,
            cordoned_log_dirs=[],
        )
        assert not self._beat(), "the first heartbeat leaves the broker fenced"

    def beat_until(self, is_over: Callable[[], bool], clock: Callable[[], float] = time.perf_counter) -> Waits:
        """Send heartbeats until `is_over`; `clock`, in seconds, measures their latencies.

        Raises OSError if one is not answered, or the controller has resigned.
        """
        latencies: list[float] = []
        fenced = 0
        while not is_over() or not latencies:
            began = clock()
            fenced += self._beat()
            latencies.append(1000 * (clock() - began))
            time.sleep(HEARTBEAT_PAUSE_S)
        return Waits(sorted(latencies), fenced)

    def close(self) -> None:
        """Close the connection; the broker is fenced after its session."""
        self._connection.close()

    def _beat(self) -> bool:
        answer = self._connection.exchange(self._heartbeat, 2)
        if answer.error_code == error_codes.NOT_CONTROLLER:
            raise ConnectionError("the controller has resigned")
        # Kafka's controller gives up on a request that waited too long; the heartbeat did not count.
        assert answer.error_code in (error_codes.NONE, error_codes.REQUEST_TIMED_OUT), answer
        return bool(answer.is_fenced)


def sends_and_reads(address: Address, frames: bytes, stopped: threading.Event) -> None:
    """Send a frame, wait for its response or the end of the connection, and connect again, once."""
    with contextlib.suppress(OSError), socket.create_connection(address, TIMEOUT_S) as connection:
        connection.sendall(frames)
        left = 4
        is_sized = False
        while left and not stopped.is_set():
            data = connection.recv(min(left, _READ_BYTES) if is_sized else left)
            if not data:
                return
            left -= len(data)
            if not is_sized and left == 0:
                left, is_sized = int.from_bytes(data[-4:], "big"), True


def never_reads(address: Address, frames: bytes, stopped: threading.Event) -> None:
    """Send the frames again and again, and read no response."""
    with contextlib.suppress(OSError), socket.create_connection(address, TIMEOUT_S) as connection:
        connection.settimeout(0.1)
        view = memoryview(frames)
        sent = 0
        while not stopped.is_set():
            with contextlib.suppress(TimeoutError):
                sent = (sent + connection.send(view[sent:])) % len(frames)


def at_once(connections: int) -> Client:
    """Return many clients in one: they connect, send the frame at the same moment, and read the responses."""

    def attack(address: Address, frames: bytes, stopped: threading.Event) -> None:
        with contextlib.ExitStack() as opened, selectors.DefaultSelector() as selector:
            for _ in range(connections):
                connection = opened.enter_context(socket.create_connection(address, TIMEOUT_S))
                selector.register(connection, selectors.EVENT_READ, FrameReader(frame_bytes_max=_FRAME_BYTES_MAX))
            for each in list(selector.get_map().values()):
                with contextlib.suppress(OSError):
                    cast(socket.socket, each.fileobj).sendall(frames)
            while selector.get_map() and not stopped.is_set():
                for each, _ in selector.select(0.1):
                    data, frames_read = b"", []
                    # What is no frame, as of HTTP, ends with its connection.
                    with contextlib.suppress(OSError, WireError):
                        data = cast(socket.socket, each.fileobj).recv(_READ_BYTES)
                        frames_read = each.data.receive_data(data)
                    if not data or frames_read:
                        selector.unregister(each.fileobj)

    return attack


class Attack:
    """Hostile clients, each in a thread, which send again and again while the context is open."""

    def __init__(self, address: Address, frames: Sequence[bytes], client: Client = sends_and_reads) -> None:
        self._stopped = threading.Event()
        self._rounds = itertools.count()
        self.rounds = 0
        """Number of times that a client has finished."""
        self._threads = [threading.Thread(target=self._run, args=(client, address, each)) for each in frames]

    def __enter__(self) -> Attack:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for each in self._threads:
            each.join()

    def _run(self, client: Client, address: Address, frames: bytes) -> None:
        while not self._stopped.is_set():
            client(address, frames, self._stopped)
            self.rounds = next(self._rounds) + 1


def peak_memory(pid: int) -> Callable[[], float]:
    """Return a function that gives the largest resident memory of a process since this call, in MiB (Linux)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")

    def peak_mib() -> float:
        found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024

    return peak_mib

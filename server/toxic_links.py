"""Byte toxics between a connection's socket and its protocol: below TLS, and absent while no fault applies.

A link replaces the transport for its protocol and the protocol for its socket, so neither notices it; when its toxics
are removed and held bytes are delivered, both are joined again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.clock import Timer
from mockraft.kafka_api.shell import LinkTransport, Shell, SocketConnection, break_off

if TYPE_CHECKING:
    from mockraft.server.stubs.faults.fault import ClientEnd, End, Fault, Toxic
    from mockraft.server.stubs.faults.pipe import Pipe
    from mockraft.server.stubs.faults.registry import Faults

HELD_BYTES_MAX = 262_144
"""Bytes held per direction before it pauses, until half are left. Upstream, the socket is not read;
downstream, the connection counts as a client that does not read (`write_bytes_max`, `write_stuck_ms`).
"""

UPSTREAM, DOWNSTREAM = "upstream", "downstream"


class ToxicLinks:
    """Links of one listener's connections, created for those that a fault matches.

    `at_broker`: the listener is a simulated broker's. The plan's steps are the controllers' business.
    """

    def __init__(self, shell: Shell, faults: Faults, node_id: int, *, at_broker: bool = False) -> None:
        self._shell = shell
        self._faults = faults
        self._node_id = node_id
        self._broker = node_id if at_broker else -1

    @property
    def depends_on_requests(self) -> bool:
        """True if a fault depends on a client's requests."""
        return self._faults.depends_on_requests

    @property
    def next_ms(self) -> int:
        """Time of the fault plan's next step."""
        return self._faults.next_ms if self._broker < 0 else NEVER_MS

    def attach(self) -> None:
        """Apply the faults from now on."""
        self._faults.attach(self)

    def detach(self) -> None:
        """Apply no faults any more."""
        self._faults.detach(self)

    def tick(self, now_ms: int) -> None:
        """Take the steps of the fault plan that are due."""
        self._faults.tick(now_ms)

    def now_ms(self) -> int:
        """Current time of the listener's clock."""
        return self._shell.clock.now_ms()

    def faults_changed(self) -> None:
        """Match every connection again, and schedule the next step of the fault plan."""
        now_ms = self.now_ms()
        for connection in self._shell.connections():
            self.look(connection, now_ms)
        self._shell.perform((), now_ms)

    def look(self, connection: SocketConnection, now_ms: int) -> None:
        """Apply exactly the faults that match a connection."""
        link, toxics = connection.transport, self._faults.toxics
        if not toxics and not isinstance(link, ToxicLink):
            return
        client = self._client_end(connection)
        faults = [fault for fault in toxics if fault.meets(client)]
        if isinstance(link, ToxicLink):
            link.apply(faults, client, now_ms)
        elif faults and not link.is_closing():
            ToxicLink(self._shell, connection).apply(faults, client, now_ms)

    def _client_end(self, connection: SocketConnection) -> ClientEnd:
        from mockraft.server.stubs.faults.fault import ClientEnd

        client_id, broker_id = self._shell.served.client_of(connection.connection_id)
        of_connection = connection.connection_id, connection.listener, self._node_id, connection.address
        return ClientEnd(client_id, broker_id, *of_connection, self._broker)


class ToxicLink(LinkTransport, asyncio.Protocol):
    """Toxics of one connection; acts as a transport to its protocol and as a protocol to its socket."""

    def __init__(self, shell: Shell, connection: SocketConnection) -> None:
        # Imported for the first fault, so that a controller without faults starts faster.
        from mockraft.server.stubs.faults.pipe import Pipe

        super().__init__()
        self._shell = shell
        self._connection = connection
        self._socket = connection.transport
        self._up, self._down = Pipe(), Pipe()
        self._toxics: dict[tuple[str, str], Toxic] = {}
        self._timer: Timer | None = None
        self._timer_ms = NEVER_MS
        self._flowing: set[str] = set()
        self._has_left = False
        self._is_closing = False
        self._is_read = self._reads_socket = connection.wants_more
        self._is_socket_full = self._is_connection_paused = connection.writing_paused
        self._socket.set_protocol(self)
        connection.transport = self

    @property
    def holds(self) -> bool:  # type: ignore[override]
        """True if written bytes, or the end, are still on their way to the socket."""
        return self._down.holds and not self._socket.is_closing()

    def apply(self, faults: list[Fault], client: ClientEnd, now_ms: int) -> None:
        """Apply these faults; toxics that are already active keep their state."""
        before, self._toxics = self._toxics, {}
        is_whole = True
        for direction, pipe in ((UPSTREAM, self._up), (DOWNSTREAM, self._down)):
            toxics = []
            for fault in faults:
                if fault.works_on(direction) and fault.kind.toxic is not None:
                    key = (fault.id, direction)
                    toxic = before.get(key) or fault.kind.toxic(fault, fault.rng(client, direction), now_ms)
                    self._toxics[key] = toxic
                    toxics.append(toxic)
            is_whole &= pipe.apply(toxics)
        if not is_whole and not self._is_closing:
            # As toxiproxy does when a timeout toxic is removed: bytes are missing, the connection cannot continue.
            self._end("a fault that swallowed bytes of it is over")
        self._flow()

    def data_received(self, data: bytes) -> None:
        """Receive bytes from the socket."""
        self._up.push(data, self._shell.clock.now_ms())
        self._flow()

    def eof_received(self) -> bool:
        """Receive the client's end; the protocol gets it after the toxics' delay."""
        self._up.close(self._shell.clock.now_ms())
        self._flow()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the closed socket; held bytes are lost."""
        self._is_closing = True
        self._cancel()
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pause: the socket's buffer is full."""
        self._is_socket_full = True
        self._report_buffer_state()

    def resume_writing(self) -> None:
        """Resume: the socket's buffer has drained."""
        self._is_socket_full = False
        self._report_buffer_state()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes of the protocol."""
        if not self._is_closing:
            self._down.push(bytes(data), self._shell.clock.now_ms())
            self._flow()

    def close(self) -> None:
        """Close the connection once the toxics have released all bytes."""
        if not self.is_closing():
            self._is_closing = True
            self._down.close(self._shell.clock.now_ms())
            self._flow()

    def abort(self) -> None:
        """Abort at once; held bytes are lost."""
        self._is_closing = True
        self._socket.abort()

    def is_closing(self) -> bool:
        """True if the protocol has closed it, or the socket is closed."""
        return self._is_closing or self._socket.is_closing()

    def pause_reading(self) -> None:
        """Pause reading at the protocol's request."""
        self._is_read = False
        self._read_or_not()

    def resume_reading(self) -> None:
        """Resume reading at the protocol's request."""
        self._is_read = True
        self._flow()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the protocol wrote and the socket has not sent."""
        return self._socket.get_write_buffer_size() + self._down.held_bytes

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Return the socket transport's extra information."""
        return self._socket.get_extra_info(name, default)

    def _flow(self) -> None:
        """Release due bytes and schedule the next release; may be called again while it runs."""
        if self._has_left:
            return
        if self._is_read:
            self._let_out(UPSTREAM, self._up, self._connection.data_received)
        self._let_out(DOWNSTREAM, self._down, self._socket.write)
        if self._socket.is_closing():
            self._cancel()
            return
        self._read_or_not()
        self._report_buffer_state()
        if self._up.is_idle and self._down.is_idle and not self._flowing:
            self._leave()
        else:
            self._arm()

    def _let_out(self, direction: str, pipe: Pipe, take: Callable[[bytes], object]) -> None:
        if direction in self._flowing:
            return
        self._flowing.add(direction)
        for piece in pipe.due(self._shell.clock.now_ms()):
            if self._socket.is_closing():
                break
            if isinstance(piece, bytes):
                take(piece)
            elif pipe.ended_by is not None:
                self._end(f"fault {pipe.ended_by.id} ({pipe.ended_by.kind.name})", piece)
            elif pipe is self._up:
                self._connection.eof_received()
                self.close()
            else:
                self._socket.close()
        self._flowing.discard(direction)

    def _end(self, reason: str, end: End | None = None) -> None:
        """End the connection as the fault requires, or close it; the journal has the reason."""
        from mockraft.server.stubs.faults.fault import End

        self._is_closing = True
        if end is End.RESET:
            break_off(self._socket)
        else:
            self._socket.close()
        self._shell.close_connection(self._connection.connection_id, "fault", reason)

    def _read_or_not(self) -> None:
        limit = HELD_BYTES_MAX if self._reads_socket else HELD_BYTES_MAX // 2
        reads = self._is_read and self._up.held_bytes < limit
        if reads != self._reads_socket and not self._socket.is_closing():
            self._reads_socket = reads
            (self._socket.resume_reading if reads else self._socket.pause_reading)()

    def _report_buffer_state(self) -> None:
        limit = HELD_BYTES_MAX // 2 if self._is_connection_paused else HELD_BYTES_MAX
        is_full = self._is_socket_full or self._down.held_bytes >= limit
        if is_full != self._is_connection_paused:
            self._is_connection_paused = is_full
            (self._connection.pause_writing if is_full else self._connection.resume_writing)()

    def _arm(self) -> None:
        now_ms = self._shell.clock.now_ms()
        when_ms = min(self._up.next_ms() if self._is_read else NEVER_MS, self._down.next_ms())
        if when_ms == self._timer_ms:
            return
        self._cancel()
        self._timer_ms = when_ms
        loop = self._shell.loop
        if when_ms <= now_ms:
            self._timer = loop.call_soon(self._due)
        elif when_ms < NEVER_MS:
            self._timer = self._shell.clock.call_at(loop, when_ms, self._due)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_ms = None, NEVER_MS

    def _due(self) -> None:
        self._timer, self._timer_ms = None, NEVER_MS
        self._flow()

    def _leave(self) -> None:
        """Join the protocol and its socket again."""
        self._cancel()
        if not self._is_closing:
            self._has_left = True
            self._socket.set_protocol(self._connection)
            self._connection.transport = self._socket

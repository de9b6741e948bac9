"""Byte toxics between a connection's socket and what listens on it: below TLS, and nowhere while no fault applies.

A link takes the place of the transport for its peer and of the protocol for its socket, so neither knows of it; when
its toxics are gone and what they held is out, both are joined again.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mockraft.server.clock import Timer
from mockraft.server.controller.periodic import NEVER_MS
from mockraft.server.effects import Effect

if TYPE_CHECKING:
    from mockraft.server.stubs.faults.fault import Fault, Speaker
    from mockraft.server.stubs.faults.pipe import Pipe
    from mockraft.server.stubs.faults.registry import Faults
    from mockraft.server.stubs.faults.toxics import End, Toxic
    from mockraft.server.tcp import TcpListener
    from mockraft.server.tcp_peers import Peer

HELD_BYTES_MAX = 262_144
"""A direction that holds so many bytes takes no more until it holds half: upstream, the socket is not read;
downstream, the connection is one whose client does not read (`write_bytes_max`, `write_stuck_ms`)."""

UPSTREAM, DOWNSTREAM = "upstream", "downstream"


def break_off(transport: asyncio.Transport) -> None:
    """End a connection by a TCP RST: what was not sent never is."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class ToxicLinks:
    """The links of one listener's connections, made for those that a fault meets."""

    def __init__(self, listener: TcpListener, faults: Faults) -> None:
        self._listener = listener
        self._faults = faults

    def now_ms(self) -> int:
        """The time by the listener's clock."""
        return self._listener.clock.now_ms()

    def faults_changed(self) -> None:
        """Look at every connection again, and when the plan goes on."""
        now_ms = self.now_ms()
        for peer in self._listener.peers():
            self.look(peer, now_ms)
        self._listener.perform((), now_ms)

    def look_at_speakers(self, effects: Iterable[Effect], now_ms: int) -> None:
        """Look at the connections that are about to be answered: they may have said who they are."""
        for connection_id in {effect.connection_id for effect in effects}:
            peer = self._listener.peer(connection_id)
            if peer is not None:
                self.look(peer, now_ms)

    def look(self, peer: Peer, now_ms: int) -> None:
        """Have the faults that meet a connection work on it, and no others."""
        speaker = self._speaker(peer)
        faults = [fault for fault in self._faults.toxics if fault.meets(speaker)]
        link = peer.transport
        if isinstance(link, ToxicLink):
            link.apply(faults, speaker, now_ms)
        elif faults and not link.is_closing():
            ToxicLink(self._listener, peer).apply(faults, speaker, now_ms)

    def _speaker(self, peer: Peer) -> Speaker:
        from mockraft.server.stubs.faults.fault import Speaker

        config = self._listener.node.config
        client_id, broker_id = self._listener.node.said_on(peer.connection_id)
        listener, node = config.controller_listener_name, config.node_id
        return Speaker(client_id, broker_id, peer.connection_id, listener, node, peer.address)


class ToxicLink(asyncio.Transport, asyncio.Protocol):
    """The toxics of one connection; a transport to its peer and a protocol to its socket."""

    def __init__(self, listener: TcpListener, peer: Peer) -> None:
        # Imported for the first fault: a controller without any starts sooner.
        from mockraft.server.stubs.faults.pipe import Pipe

        super().__init__()
        self._listener = listener
        self._peer = peer
        self._socket = peer.transport
        self._up, self._down = Pipe(), Pipe()
        self._toxics: dict[tuple[str, str], Toxic] = {}
        self._timer: Timer | None = None
        self._timer_ms = NEVER_MS
        self._flowing: set[str] = set()
        self._has_left = False
        self._is_closing = False
        self._is_read = self._reads_socket = peer.wants_more
        self._is_socket_full = self._is_peer_paused = peer.writing_paused
        self._socket.set_protocol(self)
        peer.transport = self

    @property
    def holds(self) -> bool:
        """Whether what was written, or the end, is still on its way to the socket."""
        return self._down.holds and not self._socket.is_closing()

    def apply(self, faults: list[Fault], speaker: Speaker, now_ms: int) -> None:
        """From now on these faults work; the toxics of those that did already go on as they are."""
        before, self._toxics = self._toxics, {}
        is_whole = True
        for direction, pipe in ((UPSTREAM, self._up), (DOWNSTREAM, self._down)):
            toxics = []
            for fault in faults:
                if fault.works_on(direction) and fault.kind.toxic is not None:
                    key = (fault.id, direction)
                    toxic = before.get(key) or fault.kind.toxic(fault, fault.chance(speaker, direction), now_ms)
                    self._toxics[key] = toxic
                    toxics.append(toxic)
            is_whole &= pipe.apply(toxics)
        if not is_whole and not self._is_closing:
            from mockraft.server.stubs.faults.toxics import End

            # As toxiproxy does when a timeout is taken away: bytes are missing, the connection cannot go on.
            self._end(End.CLOSE, "a fault that swallowed bytes of it is over")
        self._flow()

    def data_received(self, data: bytes) -> None:
        """The socket has bytes for the peer."""
        self._up.push(data, self._listener.clock.now_ms())
        self._flow()

    def eof_received(self) -> bool:
        """The client has closed; the peer learns it when the toxics let it."""
        self._up.close(self._listener.clock.now_ms())
        self._flow()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone, and with it what was held."""
        self._is_closing = True
        self._cancel()
        self._peer.connection_lost(exc)

    def pause_writing(self) -> None:
        """The socket has enough."""
        self._is_socket_full = True
        self._tell_whether_full()

    def resume_writing(self) -> None:
        """The socket takes more."""
        self._is_socket_full = False
        self._tell_whether_full()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """The peer has bytes for the socket."""
        if not self._is_closing:
            self._down.push(bytes(data), self._listener.clock.now_ms())
            self._flow()

    def close(self) -> None:
        """The peer has said all; the socket closes when the toxics have let it out."""
        if not self.is_closing():
            self._is_closing = True
            self._down.close(self._listener.clock.now_ms())
            self._flow()

    def abort(self) -> None:
        """End at once; what is held is lost."""
        self._is_closing = True
        self._socket.abort()

    def is_closing(self) -> bool:
        """Whether the peer has closed it, or the socket is gone."""
        return self._is_closing or self._socket.is_closing()

    def pause_reading(self) -> None:
        """The peer has enough."""
        self._is_read = False
        self._read_or_not()

    def resume_reading(self) -> None:
        """The peer takes more."""
        self._is_read = True
        self._flow()

    def get_write_buffer_size(self) -> int:
        """Bytes that the peer wrote and the socket has not sent."""
        return self._socket.get_write_buffer_size() + self._down.held_bytes

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the socket's transport says."""
        return self._socket.get_extra_info(name, default)

    def _flow(self) -> None:
        """Let out what is due, and come again when more is; what this sets off may call it again."""
        if self._has_left:
            return
        if self._is_read:
            self._let_out(UPSTREAM, self._up, self._peer.data_received)
        self._let_out(DOWNSTREAM, self._down, self._socket.write)
        if self._socket.is_closing():
            self._cancel()
            return
        self._read_or_not()
        self._tell_whether_full()
        if self._up.is_idle and self._down.is_idle and not self._flowing:
            self._leave()
        else:
            self._arm()

    def _let_out(self, direction: str, pipe: Pipe, take: Callable[[bytes], object]) -> None:
        if direction in self._flowing:
            return
        self._flowing.add(direction)
        for said in pipe.due(self._listener.clock.now_ms()):
            if self._socket.is_closing():
                break
            if isinstance(said, bytes):
                take(said)
            elif pipe.ended_by is not None:
                self._end(said, f"fault {pipe.ended_by.id} ({pipe.ended_by.kind.name})")
            elif pipe is self._up:
                self.close()
            else:
                self._socket.close()
        self._flowing.discard(direction)

    def _end(self, end: End, reason: str) -> None:
        """End the connection as a fault wants it; the journal has the reason."""
        from mockraft.server.stubs.faults.toxics import End

        self._is_closing = True
        if end is End.RESET:
            break_off(self._socket)
        else:
            self._socket.close()
        self._listener.close_peer(self._peer.connection_id, "fault", reason)

    def _read_or_not(self) -> None:
        limit = HELD_BYTES_MAX if self._reads_socket else HELD_BYTES_MAX // 2
        reads = self._is_read and self._up.held_bytes < limit
        if reads != self._reads_socket and not self._socket.is_closing():
            self._reads_socket = reads
            (self._socket.resume_reading if reads else self._socket.pause_reading)()

    def _tell_whether_full(self) -> None:
        limit = HELD_BYTES_MAX // 2 if self._is_peer_paused else HELD_BYTES_MAX
        is_full = self._is_socket_full or self._down.held_bytes >= limit
        if is_full != self._is_peer_paused:
            self._is_peer_paused = is_full
            (self._peer.pause_writing if is_full else self._peer.resume_writing)()

    def _arm(self) -> None:
        now_ms = self._listener.clock.now_ms()
        when_ms = min(self._up.next_ms() if self._is_read else NEVER_MS, self._down.next_ms())
        if when_ms == self._timer_ms:
            return
        self._cancel()
        self._timer_ms = when_ms
        loop = self._listener.loop
        if when_ms <= now_ms:
            self._timer = loop.call_soon(self._due)
        elif when_ms < NEVER_MS:
            self._timer = self._listener.clock.call_at(loop, when_ms, self._due)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_ms = None, NEVER_MS

    def _due(self) -> None:
        self._timer, self._timer_ms = None, NEVER_MS
        self._flow()

    def _leave(self) -> None:
        """Join the peer and its socket again."""
        self._cancel()
        if not self._is_closing:
            self._has_left = True
            self._socket.set_protocol(self._peer)
            self._peer.transport = self._socket

"""A proxy between brokers and controllers that records both directions and that brokers cannot bypass.

Every controller has a listener of its own here: the configured ones, and each further one as soon as a response names
it. Addresses in responses are translated to these listeners (`endpoints`); the capture has the bytes that each side
really sent, so the controllers' own addresses. Requests are forwarded unchanged, except for positions in a snapshot
that was translated. Encrypted connections and bytes that are not Kafka's are forwarded and recorded as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Self, cast

from mockraft.spark_replay.endpoints import WITH_CONTROLLER_ADDRESSES, Endpoint, translate_message, translate_response
from mockraft.spark_replay.recording import RecorderConnection, TrafficRecorder
from mockraft.spark_replay.snapshot_positions import SnapshotPositions
from mockraft.wire import api_keys
from mockraft.wire.connection import FrameReader, Request, parse_request, read_response, write_request, write_response
from mockraft.wire.errors import WireError
from mockraft.wire.messages.fetch_snapshot_request import FetchSnapshotRequest

LISTENERS_MAX = 64
"""Maximum number of controllers discovered in responses; further ones are not translated."""

CLOSE_TIMEOUT_S = 2.0
_TLS_HANDSHAKE = b"\x16\x03"


class RecordingProxy:
    """Listeners for `upstreams`, one each.

    Args:
        recording: receives the traffic.
        upstreams: the controllers' addresses; controllers named in responses are added automatically.
        host: the address to listen on.
        port: the port for the first upstream, the following ports for the others; 0 for any.
        advertised_host: the host sent to brokers instead of the controllers' hosts; `host` unless given.
        on_event: called with one line of text for events that a user should see.
    """

    def __init__(
        self,
        recording: TrafficRecorder,
        upstreams: Sequence[Endpoint],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertised_host: str | None = None,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.recording = recording
        self.upstreams = list(upstreams)
        self.host = host
        self.advertised_host = advertised_host or host
        self.on_event = on_event
        self.listeners: dict[Endpoint, Endpoint] = {}
        self._port = port
        self._servers: list[asyncio.Server] = []
        self._starting: set[asyncio.Task[None]] = set()
        self.open_connections: set[_FromClient] = set()

    async def start(self) -> None:
        """Listen for all `upstreams`. Raises OSError if a port is not available."""
        for index, upstream in enumerate(self.upstreams):
            await self._serve(upstream, self._bind(self._port + index if self._port else 0, upstream))

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except OSError:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop listening, close all connections and end the recording."""
        starting = list(self._starting)
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        for server in self._servers:
            server.close()
        for connection in list(self.open_connections):
            connection.end()
        # Do not wait for clients that no longer read.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                for server in self._servers:
                    await server.wait_closed()
        self.recording.close()

    @property
    def bootstrap(self) -> str:
        """The value for brokers' `controller.quorum.bootstrap.servers`."""
        return ",".join(str(self.listeners[upstream]) for upstream in self.upstreams)

    def translate(self, host: str, port: int) -> tuple[str, int]:
        """Return the replacement for a controller's address; opens a listener for a new controller."""
        upstream = Endpoint(host, port)
        listener = self.listeners.get(upstream)
        if listener is None:
            if upstream in self.listeners.values() or len(self.listeners) >= LISTENERS_MAX:
                return host, port
            try:
                listening = self._bind(0, upstream)
            except OSError as error:
                self.on_event(f"no listener for {upstream}, brokers will connect to it directly: {error}")
                return host, port
            listener = self.listeners[upstream]
            self.on_event(f"a response names {upstream}: brokers get {listener} instead")
            task = asyncio.get_running_loop().create_task(self._serve(upstream, listening))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
            # A task cancelled before its first step has not taken over the socket.
            task.add_done_callback(lambda ended: listening.close() if ended.cancelled() else None)
        return listener

    def _bind(self, port: int, upstream: Endpoint) -> socket.socket:
        # Bind and listen immediately: a broker that gets the address may connect before asyncio serves it.
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.create_server((self.host, port), family=family, backlog=128)
        self.listeners[upstream] = Endpoint(self.advertised_host, listening.getsockname()[1])
        return listening

    async def _serve(self, upstream: Endpoint, listening: socket.socket) -> None:
        positions = SnapshotPositions(self.translate)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _FromClient(self, upstream, positions), sock=listening)
        self._servers.append(server)


class _Side(asyncio.Protocol):
    """One of the two connections of a proxied one; `other` receives its bytes."""

    other: _Side

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.frames = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def write(self, data: bytes) -> None:
        """Write to this side's peer."""
        assert self.transport is not None
        self.transport.write(data)

    def pause_writing(self) -> None:
        """Pause reading from the other side: the reader of this side is slow."""
        if self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other.transport is not None:
            self.other.transport.resume_reading()


class _FromClient(_Side):
    """A broker's connection, which opens the one to its controller."""

    def __init__(self, proxy: RecordingProxy, upstream: Endpoint, positions: SnapshotPositions) -> None:
        super().__init__()
        self.proxy = proxy
        self.upstream = upstream
        self.positions = positions
        self.other = _FromUpstream(self)
        self.pending: dict[int, Request] = {}
        self.snapshot_positions: dict[int, dict[int, int]] = {}
        self.recorded: RecorderConnection | None = None
        self.early = bytearray()
        self.has_begun = self.is_opaque = self.sends_raw_sasl_tokens = self.got_client_eof = False
        self._dialling: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.proxy.open_connections.add(self)
        cast(asyncio.Transport, transport).pause_reading()
        self._dialling = asyncio.get_running_loop().create_task(self._dial())

    async def _dial(self) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: self.other, *self.upstream)
        except (OSError, ValueError) as error:  # ValueError: invalid host name
            why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
            self.proxy.on_event(f"cannot connect to {self.upstream}: {why}")
            self.end()

    def connected(self) -> None:
        """Handle the established connection to the controller, which may send immediately."""
        assert self.transport is not None
        assert self.other.transport is not None
        if self not in self.proxy.open_connections:
            self.other.transport.abort()
            return
        client, server = (each.get_extra_info("peername")[:2] for each in (self.transport, self.other.transport))
        self.recorded = self.proxy.recording.connection(Endpoint(*client), Endpoint(*server), time.time_ns())
        self.transport.resume_reading()
        if self.early:
            self.data_received(bytes(self.early))
        if self.got_client_eof:
            self.eof_received()

    def data_received(self, data: bytes) -> None:
        if self.recorded is None:
            # uvloop reads once more after a pause requested in connection_made.
            self.early += data
            return
        if not self.has_begun:
            self.has_begun = True
            self.is_opaque = data.startswith(_TLS_HANDSHAKE)
        if self.is_opaque:
            self.recorded.raw(True, data, time.time_ns())
            self.other.write(data)
            return
        try:
            for frame in self.frames.receive_data(data):
                self.other.write(self._request(frame))
        except WireError as error:
            self.recorded.raw(True, data, time.time_ns())
            self.proxy.on_event(
                f"{self.recorded.client} sent bytes that are not a Kafka frame; connection closed: {error}"
            )
            self.end()

    def _request(self, frame: bytes) -> bytes:
        """Return the bytes to forward to the controller for this frame, length included."""
        assert self.recorded is not None
        try:
            request = parse_request(frame)
        except WireError:
            # After SaslHandshake v0, tokens follow as raw frames: with PLAIN, a password.
            loggable = b"" if self.sends_raw_sasl_tokens else frame
            self.recorded.raw(True, len(loggable).to_bytes(4) + loggable, time.time_ns())
            return len(frame).to_bytes(4) + frame
        self.sends_raw_sasl_tokens |= request.api_key == api_keys.SASL_HANDSHAKE and request.api_version == 0
        self.recorded.request(request, time.time_ns())
        self.pending[request.correlation_id] = request._replace(frame=b"")
        if request.api_key == api_keys.FETCH_SNAPSHOT:
            return self._snapshot_request(request)
        return len(frame).to_bytes(4) + frame

    def _snapshot_request(self, request: Request) -> bytes:
        try:
            message = FetchSnapshotRequest.read(request.frame[request.body_offset :], request.api_version)
        except WireError:
            return len(request.frame).to_bytes(4) + request.frame
        partitions = [partition for topic in message.topics for partition in topic.partitions]
        self.snapshot_positions[request.correlation_id] = {each.partition: each.position for each in partitions}
        if not self.positions.translate_request(message):
            return len(request.frame).to_bytes(4) + request.frame
        return write_request(message, request.api_version, request.correlation_id, request.client_id)

    def eof_received(self) -> bool:
        """Handle the client's half-close: it may still wait for responses. The controller gets the EOF and closes."""
        self.got_client_eof = True
        upstream = self.other.transport
        if self.recorded is not None and upstream is not None and not upstream.is_closing():
            upstream.write_eof()
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        self.end()

    def end(self) -> None:
        """Close both connections; bytes already written still arrive."""
        if self not in self.proxy.open_connections:
            return
        self.proxy.open_connections.discard(self)
        if self._dialling is not None:
            self._dialling.cancel()
        if self.recorded is not None:
            self.recorded.closed(time.time_ns())
        for side in (self, self.other):
            if side.transport is not None:
                side.transport.close()


class _FromUpstream(_Side):
    """The connection to a controller on behalf of a broker's connection."""

    def __init__(self, client: _FromClient) -> None:
        super().__init__()
        self.other = self.client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.client.connected()

    def data_received(self, data: bytes) -> None:
        client = self.client
        assert client.recorded is not None
        if client.is_opaque:
            client.recorded.raw(False, data, time.time_ns())
            client.write(data)
            return
        try:
            for frame in self.frames.receive_data(data):
                client.write(self._response(frame) or len(frame).to_bytes(4) + frame)
        except WireError as error:
            client.proxy.on_event(
                f"{client.upstream} sent bytes that are not a Kafka frame; connection closed: {error}"
            )
            client.end()

    def _response(self, frame: bytes) -> bytes | None:
        """Return the translated response, length included; None if it is forwarded unchanged."""
        client = self.client
        assert client.recorded is not None
        request = client.pending.pop(int.from_bytes(frame[:4], signed=True), None)
        if request is None:
            client.recorded.raw(False, len(frame).to_bytes(4) + frame, time.time_ns())
            return None
        client.recorded.response(request.api_key, frame, time.time_ns())
        if request.api_key not in WITH_CONTROLLER_ADDRESSES:
            return None
        positions = client.snapshot_positions.pop(request.correlation_id, None)
        try:
            if positions is None:
                return translate_response(frame, request.api_key, request.api_version, client.proxy.translate)
            return self._snapshot_response(frame, request, positions)
        except WireError as error:
            client.proxy.on_event(
                f"a response of {client.upstream} cannot be decoded and is forwarded unchanged: {error}"
            )
            return None

    def _snapshot_response(self, frame: bytes, request: Request, positions: dict[int, int]) -> bytes:
        response = read_response(frame, api_keys.FETCH_SNAPSHOT, request.api_version)
        translate_message(response, self.client.proxy.translate)
        self.client.positions.translate_response(response, positions)
        return write_response(response.write(request.api_version), request.correlation_id, 1)

    def eof_received(self) -> None:
        self.client.end()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.client.end()

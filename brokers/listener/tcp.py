"""One client's connection over asyncio: one request at a time, in order, with bounded read-ahead.

As in Kafka's SocketServer, later requests wait while one is processed, a client that does not read its responses is not
read from, and a connection that is idle for too long is closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from typing import TYPE_CHECKING, cast

from mockraft.brokers.apis.api import ANONYMOUS, ConnectionClosedError, RequestContext
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.listener import requests
from mockraft.brokers.listener.limits import PENDING_REQUESTS_MAX, UNREAD_BYTES_HIGH
from mockraft.wire.connection import FrameReader
from mockraft.wire.errors import WireError

if TYPE_CHECKING:
    from mockraft.brokers.listener.client_listener import ClientListener

_log = logging.getLogger(__name__)


class ClientConnection(asyncio.Protocol):
    """One accepted connection on the listener of this name; `active_at` is the loop's time of its last activity."""

    transport: asyncio.Transport

    def __init__(self, listener: ClientListener, listener_name: str) -> None:
        self._listener = listener
        self._listener_name = listener_name
        self._reader = FrameReader(listener.limits.socket_request_max_bytes)
        self._pending: deque[bytes] = deque()
        self._work: asyncio.Task[None] | None = None
        self._is_paused = False
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._gone = listener.loop.create_future()
        self.client_address = ""
        self.active_at = listener.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection (called by asyncio)."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=UNREAD_BYTES_HIGH)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.client_address = (transport.get_extra_info("peername") or ("",))[0]
        self._listener.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the connection (called by asyncio)."""
        self._can_write.set()
        if self._work is not None:
            self._work.cancel()
        self._listener.disconnected(self)
        self._gone.set_result(None)

    async def wait_gone(self) -> None:
        """Wait until the socket is closed and no task of the connection runs any more."""
        work = self._work
        await self._gone
        if work is not None:
            await asyncio.wait([work])

    def pause_writing(self) -> None:
        """Stop answering: the client has too much unread data (called by asyncio)."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """Resume answering: the client has read (called by asyncio)."""
        self.active_at = self._listener.loop.time()
        self._can_write.set()

    def data_received(self, data: bytes) -> None:
        """Split the data into frames and process them (called by asyncio)."""
        self.active_at = self._listener.loop.time()
        try:
            self._pending.extend(self._reader.receive_data(data))
        except WireError as wrong:
            self.close(str(wrong))
            return
        if self._reader.failure is not None:
            # Requests before the invalid frame are answered first.
            self._pause()
        if self._pending and self._work is None:
            self._work = self._listener.loop.create_task(self._answer_all())
        if len(self._pending) >= PENDING_REQUESTS_MAX:
            self._pause()

    def close(self, reason: str) -> None:
        """Close with a reason for the log."""
        if not self.transport.is_closing():
            self._listener.closed(self, reason)
            self.transport.close()

    async def _answer_all(self) -> None:
        try:
            while self._pending and not self.transport.is_closing():
                await self._answer(self._pending.popleft())
                if self._is_paused and self._reader.failure is None and len(self._pending) < PENDING_REQUESTS_MAX:
                    self._is_paused = False
                    self.transport.resume_reading()
        except ConnectionClosedError as reason:
            self.close(str(reason))
        finally:
            self._work = None
        if self._reader.failure is not None:
            self.close(str(self._reader.failure))

    async def _answer(self, frame: bytes) -> None:
        listener = self._listener
        request = requests.read(frame, APIS)
        header = request.header
        ctx = RequestContext(
            broker=listener.broker,
            api_key=header.api_key,
            api_version=header.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            principal=ANONYMOUS,
            listener_name=self._listener_name,
            client_address=self.client_address,
            frame=frame,
            chance=listener.chance,
        )
        data = await requests.answer(request, ctx)
        self.active_at = listener.loop.time()
        if data is not None and not self.transport.is_closing():
            self.transport.write(data)
            await self._can_write.wait()

    def _pause(self) -> None:
        if not self._is_paused and not self.transport.is_closing():
            self._is_paused = True
            self.transport.pause_reading()

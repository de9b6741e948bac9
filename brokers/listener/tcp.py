"""One client's socket over asyncio: passes bytes to the broker and carries out the effects."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, cast

from mockraft.brokers.listener.limits import UNREAD_BYTES_HIGH
from mockraft.kafka_api.effects import AwaitSent, Close, ConnectionEffect, PauseReading, Send

if TYPE_CHECKING:
    from mockraft.brokers.listener.client_listener import ClientListener


class ClientSocket(asyncio.Protocol):
    """One accepted socket on the listener of this name."""

    transport: asyncio.Transport

    def __init__(self, listener: ClientListener, listener_name: str, connection_id: int) -> None:
        self.listener_name = listener_name
        self.connection_id = connection_id
        self.client_address = ""
        self._listener = listener
        self._can_write = True
        self._awaits_sent = False
        self._gone = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection (called by asyncio)."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=UNREAD_BYTES_HIGH)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.client_address = (transport.get_extra_info("peername") or ("",))[0]
        self._listener.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the connection (called by asyncio)."""
        self._listener.disconnected(self)
        self._gone.set_result(None)

    async def wait_gone(self) -> None:
        """Wait until the socket is closed."""
        await self._gone

    def pause_writing(self) -> None:
        """Note that the client has too much unread data (called by asyncio)."""
        self._can_write = False

    def resume_writing(self) -> None:
        """Resume answering: the client has read (called by asyncio)."""
        self._can_write = True
        if self._awaits_sent:
            self._sent()

    def data_received(self, data: bytes) -> None:
        """Process the data (called by asyncio)."""
        self._listener.received(self, data)

    def carry_out(self, effect: ConnectionEffect) -> None:
        """Carry out one effect on this connection."""
        if self.transport.is_closing():
            return
        if isinstance(effect, Send):
            self.transport.write(effect.data)
        elif isinstance(effect, Close):
            self.transport.close()
        elif isinstance(effect, AwaitSent):
            self._awaits_sent = True
            if self._can_write:
                asyncio.get_running_loop().call_soon(self._sent)
        elif isinstance(effect, PauseReading):
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _sent(self) -> None:
        if self._awaits_sent and self._can_write and not self.transport.is_closing():
            self._awaits_sent = False
            self._listener.sent(self)

"""The admin API on a socket, in the event loop of its controller."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import cast

import h11
import uvicorn
from mockraft.kafka_api.listening import bind
from mockraft.kafka_api.turns import turns_of
from mockraft.server.admin.app import create_app
from mockraft.server.admin.json_bodies import HTTP
from mockraft.server.admin.recorder import Recorder
from mockraft.server.admin.settings import AdminSettings
from mockraft.server.double import Double
from uvicorn.protocols.http.h11_impl import H11Protocol

TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def protocol_of(settings: AdminSettings) -> type[H11Protocol]:
    """Return the class of connections with these limits, for `uvicorn.Config(http=…)`."""

    class Limited(AdminConnection):
        request_timeout_s = settings.request_timeout_s

    return Limited


class AdminConnection(H11Protocol):
    """A connection that is closed when its request's headers do not arrive in time (the Guard limits the body).

    uvicorn refuses every request while `limit_concurrency` connections are open, even if their clients send nothing.
    Here a new connection takes the place of the oldest one without a complete request, from the address that has most
    of those; without any, of one whose client does not read its answer, else of any. So neither half-sent requests nor
    slow readers nor streams lock out others.
    """

    request_timeout_s: float
    unread_bytes = 0
    _headers_timer: asyncio.TimerHandle | None = None
    _is_queued = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection, in place of another one if there are too many."""
        super().connection_made(transport)
        self._opened_s = self.loop.time()
        self._time_headers()
        if len(self.connections) >= cast(int, self.limit_concurrency):
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Pass received bytes to the parser, and do not read more until it had its turn."""
        super().data_received(data)
        self.transport.pause_reading()
        self._time_headers()

    def handle_events(self) -> None:
        """Parse what was received, and begin its request, in this connection's turn."""
        if not self._is_queued:
            self._is_queued = True
            turns_of(self.loop).add(self, HTTP._replace(client=self._peer))

    def take_turn(self) -> None:
        """Parse what was received, and begin its request."""
        self._is_queued = False
        if not self.transport.is_closing():
            if not self.flow.read_paused:
                self.transport.resume_reading()
            super().handle_events()
            self._time_headers()

    def give_up(self, kind: str, reason: str) -> None:
        """Close the connection."""
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _time_headers(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._headers_timer is None:
            self._headers_timer = self.loop.call_later(self.request_timeout_s, self._time_out)

    def _time_out(self) -> None:
        self.transport.write(TIMED_OUT)
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _make_room(self) -> None:
        others = [each for each in self.connections if isinstance(each, AdminConnection) and each is not self]
        incomplete = [each for each in others if each.conn.their_state in (h11.IDLE, h11.SEND_BODY)]
        unread = [each for each in others if each.flow.write_paused]
        if candidates := incomplete or unread or others:
            counts = Counter(each._peer for each in candidates)
            closed = max(candidates, key=lambda each: (counts[each._peer], -each._opened_s))
            self.connections.discard(closed)
            closed.transport.abort()


GRACE_S = 1
"""Time for answers in progress once the API stops."""


class AdminServer:
    """A listening admin API; made by `start`, ended by `stop`."""

    def __init__(
        self,
        server: uvicorn.Server,
        stopping: asyncio.Event,
        settings: AdminSettings,
        port: int,
        recorder: Recorder | None = None,
    ) -> None:
        self._server = server
        self._stopping = stopping
        self.settings = settings
        self.port = port
        self._recorder = recorder

    @property
    def url(self) -> str:
        """Its URL without a trailing slash; the loopback address for a wildcard."""
        return self.settings.url(self.port)

    @classmethod
    async def start(
        cls,
        double: Double,
        settings: AdminSettings,
        recorder: Recorder | None = None,
        bound: socket.socket | None = None,
    ) -> AdminServer:
        """Listen in the running event loop, at the socket `bound` if there is one already.

        `recorder` is closed with the server. Raises OSError if the address is taken.
        """
        stopping = asyncio.Event()
        bound = bound or bind(settings.host, settings.port)
        try:
            config = uvicorn.Config(
                create_app(double, settings, stopping, recorder),
                http=protocol_of(settings),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=settings.connections_max,
                timeout_graceful_shutdown=2 * GRACE_S,
            )
            config.load()
            server = uvicorn.Server(config)
            # Not `serve`: that one takes the process's signals, which are the controller's.
            server.lifespan = config.lifespan_class(config)
            await server.startup([_listening(bound)])
        except BaseException:
            bound.close()
            raise
        return cls(server, stopping, settings, bound.getsockname()[1], recorder)

    async def stop(self) -> None:
        """Close the listener; answers in progress get some time, streams end."""
        self._stopping.set()
        ending = asyncio.ensure_future(self._server.shutdown())
        await asyncio.wait([ending], timeout=GRACE_S)
        if not ending.done():
            # Who reads nothing is not waited for.
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
        await ending
        if self._recorder is not None:
            await self._recorder.close()


def _listening(bound: socket.socket) -> socket.socket:
    bound.setblocking(False)
    return bound

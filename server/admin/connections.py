"""Connections of the admin API: uvicorn's HTTP/1.1 with a time limit for requests and a fair limit of connections."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import cast

import h11
from mockraft.server.admin.settings import AdminSettings
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
    of those. So half-sent requests do not lock out others.
    """

    request_timeout_s: float
    _headers_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection, in place of another one if there are too many."""
        super().connection_made(transport)
        self._opened_s = self.loop.time()
        self._time_headers()
        if len(self.connections) >= cast(int, self.limit_concurrency):
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Pass received bytes to the parser."""
        super().data_received(data)
        self._time_headers()

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
        if incomplete:
            counts = Counter(each._peer for each in incomplete)
            closed = max(incomplete, key=lambda each: (counts[each._peer], -each._opened_s))
            self.connections.discard(closed)
            closed.transport.abort()

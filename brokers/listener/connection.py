"""One client's connection without a socket: frames in, response frames out, one request at a time and in order.

As in Kafka's SocketServer, later requests wait while one is processed or parked, and no request is taken up while a
client has not read its responses.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from mockraft.brokers.apis.api import BrokerView, ConnectionClosedError, Parked, RequestContext
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.listener import requests
from mockraft.brokers.listener.limits import UNREAD_BYTES_HIGH
from mockraft.brokers.listener.requests import Reply
from mockraft.kafka_api.api import Client
from mockraft.kafka_api.effects import AwaitSent, Close, ConnectionEffect, PauseReading, ResumeReading, Send
from mockraft.wire.connection import FrameReader
from mockraft.wire.errors import WireError


class Connection:
    """One connection on the listener of this name; `active_ms` is the time of its last activity.

    `parked` is the request in progress that waits. No method may be called after a `Close`.
    """

    def __init__(
        self,
        connection_id: int,
        broker: BrokerView,
        listener_name: str,
        client_address: str,
        request_bytes_max: int,
        now_ms: int,
    ) -> None:
        self.connection_id = connection_id
        self.client_address = client_address
        self.active_ms = now_ms
        self.parked: Parked[Reply] | None = None
        self._broker = broker
        self._client = Client(connection_id, client_address, listener_name)
        self._reader = FrameReader(request_bytes_max)
        self._pending: deque[bytes] = deque()
        self._is_paused = False
        self._awaits_sent = False
        self._unsent_bytes = 0

    def receive(self, data: bytes, now_ms: int) -> list[ConnectionEffect]:
        """Process received bytes."""
        self.active_ms = now_ms
        with suppress(WireError):
            self._pending.extend(self._reader.receive_data(data))
        return self._proceed([], now_ms)

    def sent(self, now_ms: int) -> list[ConnectionEffect]:
        """Process the next requests after the bytes that an AwaitSent waited for were written."""
        self.active_ms = now_ms
        self._awaits_sent = False
        self._unsent_bytes = 0
        return self._proceed([], now_ms)

    def retry(self, now_ms: int) -> list[ConnectionEffect]:
        """Retry the parked request, after a change or at its deadline."""
        parked = self.parked
        assert parked is not None
        effects: list[ConnectionEffect] = []
        try:
            reply = parked.retry(now_ms, now_ms >= parked.deadline_ms)
        except ConnectionClosedError as reason:
            return self.close(str(reason))
        if reply is None:
            return effects
        self.parked = None
        self._take(reply, effects, now_ms)
        return self._proceed(effects, now_ms)

    def close(self, reason: str) -> list[ConnectionEffect]:
        """Return the effect that closes the connection."""
        self.parked = None
        return [Close(self.connection_id, reason)]

    def _proceed(self, effects: list[ConnectionEffect], now_ms: int) -> list[ConnectionEffect]:
        """Answer the waiting requests until one parks or the client has to read first."""
        while self._pending and self.parked is None and not self._awaits_sent:
            try:
                reply = self._answer(self._pending.popleft(), now_ms)
            except ConnectionClosedError as reason:
                return effects + self.close(str(reason))
            self._take(reply, effects, now_ms)
        # Requests before an invalid frame are answered first.
        if self._reader.failure is not None and not self._pending and self.parked is None:
            return effects + self.close(str(self._reader.failure))
        if bool(self._pending) is not self._is_paused:
            self._is_paused = bool(self._pending)
            effects.append((PauseReading if self._is_paused else ResumeReading)(self.connection_id))
        return effects

    def _answer(self, frame: bytes, now_ms: int) -> Reply:
        request = requests.read(frame, APIS)
        header = request.header
        ctx = RequestContext(header, self._client, now_ms, self._broker)
        return requests.answer(request, ctx)

    def _take(self, reply: Reply, effects: list[ConnectionEffect], now_ms: int) -> None:
        """Park the request, or send its response."""
        if isinstance(reply, Parked):
            self.parked = reply
            return
        self.active_ms = now_ms
        if reply:
            effects.append(Send(self.connection_id, reply))
            self._unsent_bytes += len(reply)
        if self._unsent_bytes >= UNREAD_BYTES_HIGH and not self._awaits_sent:
            self._awaits_sent = True
            effects.append(AwaitSent(self.connection_id))

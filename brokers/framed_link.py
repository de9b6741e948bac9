"""The frames of one outgoing connection without a socket: handshake, correlation ids, requests and responses.

For networks in memory, which have no `KafkaConnection`: the simulation, and controllers with a virtual clock.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import NamedTuple

from mockraft.brokers.effects import Answered, Event, Failed, Link, NotOpened, Opened, SendRequest
from mockraft.wire import api_keys, error_codes
from mockraft.wire.connection import (
    API_VERSIONS_MAX,
    SOFTWARE_NAME,
    SOFTWARE_VERSION,
    FrameReader,
    read_response,
    version_for,
    write_request,
)
from mockraft.wire.errors import DisconnectedError
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersionsResponse


class _Pending(NamedTuple):
    api_key: int
    version: int
    request_id: int | None
    """None for the handshake."""


class FramedLink:
    """One connection: bytes to write are returned, received bytes become events.

    After `receive`, `data_to_send` has the bytes of a handshake in an older version, if the newest was refused.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._correlation_ids = itertools.count()
        self._reader = FrameReader()
        self._versions: dict[int, tuple[int, int]] = {}
        self._pending: deque[_Pending] = deque()
        self._to_send = b""

    def open(self) -> bytes:
        """Return the bytes of the handshake; empty without one, and the link is open then."""
        if not self.link.handshake:
            return b""
        return self._handshake(API_VERSIONS_MAX)

    def _handshake(self, version: int) -> bytes:
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        self._pending.append(_Pending(request.api_key, version, None))
        return write_request(request, version, next(self._correlation_ids), self.link.client_id)

    def write(self, send: SendRequest) -> bytes:
        """Return the bytes of a request. Raises UnsupportedVersionError."""
        version = version_for(send.request, self._versions) if send.version is None else send.version
        self._pending.append(_Pending(send.request.api_key, version, send.request_id))
        return write_request(send.request, version, next(self._correlation_ids), self.link.client_id)

    def receive(self, data: bytes) -> list[Event]:
        """Return the events of received bytes."""
        events: list[Event] = []
        for frame in self._reader.receive_data(data):
            pending = self._pending.popleft()
            response = read_response(frame, pending.api_key, pending.version)
            if pending.request_id is not None:
                events.append(Answered(pending.request_id, response))
            elif isinstance(response, ApiVersionsResponse):
                self._versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
                if response.error_code == error_codes.UNSUPPORTED_VERSION and pending.version == API_VERSIONS_MAX:
                    # Kafka's response has the range of ApiVersions; version 0 exists everywhere (NetworkClient).
                    _, newest = self._versions.get(api_keys.API_VERSIONS, (0, 0))
                    self._to_send += self._handshake(max(0, min(newest, API_VERSIONS_MAX - 1)))
                else:
                    events.append(Opened(self.link, self._versions))
        return events

    def data_to_send(self) -> bytes:
        """Return the bytes to write after `receive`, once."""
        data, self._to_send = self._to_send, b""
        return data

    def lost(self) -> list[Event]:
        """Return the events of a connection that ends: every request without a response fails."""
        error = DisconnectedError("connection lost")
        pending, self._pending = self._pending, deque()
        return [
            NotOpened(self.link, error) if each.request_id is None else Failed(each.request_id, error)
            for each in pending
        ]

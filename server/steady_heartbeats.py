"""A short way for heartbeats that change nothing, which are most of what brokers send.

The node remembers each broker's last heartbeat that wrote no record, and the response. The next one takes the short way
if it differs in nothing but correlation id and metadata offset, and meets the broker in the same state: the same
registration object (they are replaced, never changed), the same fencing, no controlled shutdown, and an offset on the
same side of the registration's. Then the handler would again write nothing and respond the same; its other effects,
which record the contact and the offset, and the journal's entry are made here too.

Everything else goes the long way, `Node.step`: a request that a stub or an authorizer has to see, one that comes with
others or behind them, one that comes while records are uncommitted. Tests compare both ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

from mockraft.server.apis import broker_heartbeat
from mockraft.server.controller.brokers.broker_state import BrokerState
from mockraft.server.controller.brokers.log_dirs import directories_cordoned
from mockraft.server.effects import Send
from mockraft.wire import api_keys
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

if TYPE_CHECKING:
    from mockraft.server.apis.api import AnyApi, RequestContext
    from mockraft.server.connection_state import Connection
    from mockraft.server.controller.controller import Controller
    from mockraft.server.controller.image import BrokerRegistration
    from mockraft.server.effects import Effect
    from mockraft.server.responses import Responses
    from mockraft.server.stubs.stub_list import StubList
    from mockraft.wire.connection import Request
    from mockraft.wire.message import Message

HEARTBEAT = api_keys.BROKER_HEARTBEAT.to_bytes(2)
HEAD, API_KEY, CORRELATION_ID, CLIENT_ID_SIZE = slice(0, 8), slice(4, 6), slice(8, 12), 13
"""Where a request, with its length, has them; `HEAD` is the length, API key and version.

Of the client id's size only the low byte: longer ids are not remembered.
"""
BEFORE_OFFSET_BYTES = 27
"""Bytes before the metadata offset, in every version, without those of the client id: length, header (API key, version,
correlation id, length of the client id, no tagged fields), broker id and epoch.
"""
KEPT_FOR_EACH_BROKER, KEPT_AT_LEAST = 2, 64
"""Number of heartbeats that are remembered, as a client may send those of a broker under many client ids."""

KEPT_BYTES_MAX = 1024
"""Maximum size of a heartbeat that is remembered: a broker's is far smaller, but a client sends what it likes."""

_ID = Struct(">i")
_OFFSET = Struct(">q")


@dataclass(slots=True)
class SteadyHeartbeat:
    """A heartbeat that wrote nothing, and what its response depends on.

    The request is, with its length, `head` (length, API key, version), the correlation id, its sender (client id,
    broker id and epoch), the metadata offset, and `tail`; the response is `response_head` (its length), the correlation
    id, and `response_tail`. `epoch` is the controller's.
    """

    head: bytes
    tail: bytes
    response_head: bytes
    response_tail: bytes
    header: tuple[int, int, str | None]
    api: AnyApi
    registration: BrokerRegistration
    is_fenced: bool
    is_caught_up: bool
    epoch: int


class SteadyHeartbeats:
    """The short way of one node; `connections` and `apis` are the node's own tables."""

    def __init__(
        self,
        controller: Controller,
        connections: Mapping[int, Connection],
        apis: Mapping[int, AnyApi],
        stubs: StubList,
        responses: Responses,
    ) -> None:
        self._controller = controller
        self._connections = connections
        self._apis = apis
        self._stubs = stubs
        self._responses = responses
        self._known: dict[bytes, SteadyHeartbeat] = {}
        """Last heartbeats by the bytes of their sender."""
        config = controller.config
        self._is_possible = not config.rules and config.overlay is None and not config.has_authorizer

    def remember(
        self,
        request: Request,
        body: Message,
        ctx: RequestContext,
        effects: Sequence[Effect],
        *,
        wrote: bool,
    ) -> None:
        """Remember a heartbeat whose response is the last effect, if the next one like it cannot write a record."""
        controller = self._controller
        if wrote or not self._is_possible or not effects or ctx.failure is not None or ctx.refused_with:
            return
        if len(request.frame) > KEPT_BYTES_MAX:
            return
        answered = effects[-1]
        if not isinstance(answered, Send) or not isinstance(body, BrokerHeartbeatRequest):
            return
        api, response = self._apis[request.api_key], answered.data
        if api.handle is not broker_heartbeat.handle:
            return
        registration = controller.image.cluster.brokers[body.broker_id]
        state = controller.heartbeats.brokers[body.broker_id]
        if (
            body.want_shut_down
            or state.current is BrokerState.CONTROLLED_SHUTDOWN
            or body.offline_log_dirs  # what these two write depends on metadata.version too
            or directories_cordoned(controller, registration, body.cordoned_log_dirs)
        ):
            return
        data = len(request.frame).to_bytes(4) + request.frame
        offset_at = BEFORE_OFFSET_BYTES + data[CLIENT_ID_SIZE]
        if request.body_offset + 16 != offset_at:  # another header than nearly all requests have
            return
        known = self._known
        if len(known) >= KEPT_FOR_EACH_BROKER * len(controller.heartbeats.brokers) + KEPT_AT_LEAST:
            known.clear()
        known[data[12:offset_at]] = SteadyHeartbeat(
            head=data[HEAD],
            tail=data[offset_at + 8 :],
            response_head=response[:4],
            response_tail=response[8:],
            header=(request.api_key, request.api_version, request.client_id),
            api=api,
            registration=registration,
            is_fenced=state.fenced,
            is_caught_up=body.current_metadata_offset >= registration.registration_offset,
            epoch=controller.epoch,
        )

    def answer(self, connection_id: int, data: bytes, now_us: int) -> bytes | None:
        """Return the response to received bytes that are the remembered heartbeat again; None for the long way."""
        if data[API_KEY] != HEARTBEAT or len(data) < BEFORE_OFFSET_BYTES:
            return None
        offset_at = BEFORE_OFFSET_BYTES + data[CLIENT_ID_SIZE]
        steady = self._known.get(data[12:offset_at])
        if steady is None or data[HEAD] != steady.head or data[offset_at + 8 :] != steady.tail:
            return None
        connection = self._connections.get(connection_id)
        if (
            connection is None
            or connection.broker_id < 0  # the long way notes the sender
            or connection.waiting
            or connection.parked is not None
            or connection.authentication is not None
            or not connection.reader.is_between_frames
            or self._stubs.is_armed
            or self._apis.get(api_keys.BROKER_HEARTBEAT) is not steady.api
        ):
            return None
        controller, registration = self._controller, steady.registration
        broker_id = registration.broker_id
        offset: int = _OFFSET.unpack_from(data, offset_at)[0]
        state = controller.heartbeats.brokers.get(broker_id)
        if (
            controller.image.cluster.brokers.get(broker_id) is not registration
            or state is None
            or state.fenced is not steady.is_fenced
            or state.shutdown_offset >= 0
            or (offset >= registration.registration_offset) is not steady.is_caught_up
            or controller.epoch != steady.epoch
            or controller.pending_offset
        ):
            return None
        controller.sessions.touch(broker_id, registration.broker_epoch, now_us // 1_000)
        controller.heartbeats.touch(broker_id, steady.is_fenced, offset)
        response = steady.response_head + data[CORRELATION_ID] + steady.response_tail
        api_key, api_version, client_id = steady.header
        header = (api_key, api_version, _ID.unpack_from(data, CORRELATION_ID.start)[0], client_id)
        self._responses.note_at_once(connection, steady.api, header, data[4:], response, now_us)
        return response

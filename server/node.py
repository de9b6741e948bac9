"""The sans-IO node: a controller and its listener. Bytes of connections come in, effects go out, time is an argument.

The asyncio server calls the methods of `Listener`, `tick` by `next_tick_ms`, and carries out the effects in order.
"""

from __future__ import annotations

import struct
import traceback
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.authentication.listener_logins import logins_of
from mockraft.kafka_api.connections import PendingRequest, Result, sender_by_client_id
from mockraft.kafka_api.effects import Effect
from mockraft.kafka_api.journal import Failure, Journal
from mockraft.kafka_api.listener import Listener, Parts
from mockraft.server.api_modules import MODULES
from mockraft.server.apis.api import AnyApi, RequestContext, answer, broken
from mockraft.server.controller.brokers.registration import registration_of
from mockraft.server.controller.controller import STANDBY, Controller
from mockraft.server.controller.log.data_dir import StorageError
from mockraft.server.credentials import ImageCredentials
from mockraft.server.raft.outgoing import Outgoing, SendToNode
from mockraft.server.stubs.script import Script
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.connection import parse_request
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest
from mockraft.wire.messages.controller_registration_response import ControllerRegistrationResponse
from mockraft.wire.topic_names import CLUSTER_METADATA, CLUSTER_METADATA_ID

if TYPE_CHECKING:
    import random

    from mockraft.kafka_api.api import Client
    from mockraft.server.scripted import ScriptedRequests
    from mockraft.wire.connection import Request


REGISTRATION_ID: Final = -1
"""Id of a registration among the log's requests, which count from 0."""

BROKERS_NAMED_MAX: Final = 3
"""Brokers whose addresses a misdirected client's refusal names."""

_BETWEEN_NODES: Final = {
    api_keys.API_VERSIONS,
    api_keys.BEGIN_QUORUM_EPOCH,
    api_keys.BROKER_HEARTBEAT,
    api_keys.END_QUORUM_EPOCH,
    api_keys.FETCH,
    api_keys.FETCH_SNAPSHOT,
    api_keys.VOTE,
}
"""APIs without which a node loses its session or its leader."""
_SENDER: Final = struct.Struct(">iq")
"""Broker id and epoch, with which each BrokerHeartbeat begins."""
_BACKOFF_MS = 100
_BACKOFF_MAX_MS = 120_000
_TIMEOUT_MS = 30_000
_NOTHING: Final = object()


class QuorumRequests:
    """Requests of one node; at most one registration is in flight."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._raft = controller.raft
        self._registering = False
        self._answered: object = _NOTHING
        self._failures = 0
        self._due_ms = 0

    def poll(self, now_ms: int) -> list[Outgoing]:
        """Do what is due and return the requests to send."""
        outgoing = self._raft.poll(now_ms)
        if now_ms >= self._registration_due_ms():
            leader = self._raft.leader_endpoint
            assert leader is not None
            self._registering = True
            request = registration_of(self._controller)
            version = ControllerRegistrationRequest.max_version
            endpoint = (leader.id, leader.host, leader.port)
            outgoing.append(Outgoing(REGISTRATION_ID, *endpoint, request, 0, version, _TIMEOUT_MS))
        return outgoing

    def received(self, outgoing_id: int, response: Message | None, now_ms: int) -> None:
        """Process the response to one of them, or None."""
        if outgoing_id != REGISTRATION_ID:
            self._raft.received(outgoing_id, response, now_ms)
            return
        self._registering = False
        if isinstance(response, ControllerRegistrationResponse) and response.error_code == error_codes.NONE:
            # The record is on its way; only another registration is a reason to send again.
            self._answered = self._known_registration()
            return
        self._due_ms = now_ms + min(_BACKOFF_MS << min(self._failures, 11), _BACKOFF_MAX_MS)
        self._failures += 1

    def next_poll_ms(self) -> int:
        """Return the earliest time at which `poll` has work, in milliseconds since the epoch."""
        next_ms = self._raft.next_ms
        return next_ms if self._controller.epoch != STANDBY else min(next_ms, self._registration_due_ms())

    def _registration_due_ms(self) -> int:
        controller = self._controller
        if controller.epoch != STANDBY or self._registering or self._raft.leader_endpoint is None:
            return NEVER_MS
        if not controller.has_to_register:
            # What was answered has come: without it (UnregisterController) there is a reason to send again.
            self._answered, self._failures = _NOTHING, 0
            return NEVER_MS
        if self._answered is self._known_registration():
            return NEVER_MS
        return self._due_ms

    def _known_registration(self) -> object:
        return self._controller.image.cluster.controllers.get(self._controller.config.node_id)


BROKEN_TICK_PAUSE_MS = 100


class Node(Listener[AnyApi, RequestContext]):
    """A controller and its listener, without sockets."""

    def __init__(
        self,
        controller: Controller,
        apis: dict[int, AnyApi],
        journal: Journal | None = None,
        rng: random.Random | None = None,
        script: Script | None = None,
    ) -> None:
        self.controller = controller
        self.config = config = controller.config
        self.script = script or Script()
        api_name = api_keys.name if config.overlay is None else config.overlay.api_name
        limits, ids = (config.journal_entries_max, config.journal_bytes_max), self.script.entry_ids
        shown = config.show_secrets
        super().__init__(
            Parts(
                name=config.controller_listener_name,
                apis=apis,
                limits=config,
                is_bounded=config.is_bounded,
                journal=journal or Journal(*limits, api_name, config.node_id, ids, show_secrets=shown),
                logins=logins_of(config.listener_security, config, apis, ImageCredentials(controller), rng),
                security=config.listener_security,
                scripts=lambda: self._scripted_requests if self.script.stubs.is_armed else None,
                messages=config.overlay or messages,
            )
        )
        self.journal.topic_name = self._topic_name
        self._next_controller_tick_ms = 0
        self._quorum = QuorumRequests(controller)
        self._next_quorum_poll_ms = 0

    @cached_property
    def _scripted_requests(self) -> ScriptedRequests:
        # Imported with the first stub: most controllers of `mockraft serve` start without any.
        from mockraft.server.scripted import ScriptedRequests

        return ScriptedRequests(self.script.stubs, self, self.config.node_id)

    def elsewhere(self, api_key: int) -> str:
        """Return where clients find the brokers, for an API that only brokers serve."""
        if api_key not in api_keys.NAMES or api_key in MODULES:
            return ""
        brokers = self.controller.image.cluster.brokers.values()
        endpoints = [each.endpoints[0] for each in islice(brokers, BROKERS_NAMED_MAX) if each.endpoints]
        if not endpoints:
            return "; this is the controller; clients use brokers, and none is registered"
        addresses = ",".join(f"{each.host}:{each.port}" for each in endpoints)
        return f"; this is the controller; clients use {addresses} of the brokers"

    def context(self, header: Request, client: Client, now_ms: int) -> RequestContext:
        """Return the context of a request."""
        return RequestContext(header, client, now_ms, self.apis)

    def node_of(self, api_key: int, frame: bytes) -> Hashable:
        """Return the sender: a broker whose heartbeat has its epoch, or a voter or broker that the client id names."""
        if api_key not in _BETWEEN_NODES:
            return None
        brokers = self.controller.image.cluster.brokers
        with suppress(WireError, struct.error):
            header = parse_request(frame, self.messages)
            if api_key == api_keys.BROKER_HEARTBEAT:
                named = _SENDER.unpack_from(frame, header.body_offset)
                broker = brokers.get(named[0])
                return named if broker is not None and broker.broker_epoch == named[1] else None
            sender = sender_by_client_id(header.client_id)
            return sender if sender in self.controller.raft.voters.nodes or sender in brokers else None
        return None

    def _topic_name(self, topic_id: bytes) -> str | None:
        if topic_id == CLUSTER_METADATA_ID:
            return CLUSTER_METADATA
        topic = self.controller.image.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def answer(self, request: PendingRequest[AnyApi, RequestContext]) -> Result:
        """Call the request's handler."""
        return answer(request.api, request.body, request.ctx, self.controller)

    def broken(self, request: PendingRequest[AnyApi, RequestContext]) -> Message:
        """Return the answer to a request whose handler raised."""
        response: Message = broken(request.api, request.body, request.ctx)
        return response

    def position(self) -> tuple[int, ...]:
        """Return a value that changes with the log, the leadership, and released clients."""
        controller, log, stubs = self.controller, self.controller.log, self.script.stubs
        return (log.end_offset, log.high_watermark, controller.epoch, controller.raft.changes, stubs.releases)

    def tick(self, now_ms: int) -> list[Effect]:
        """Run the controller's periodic work and answer parked requests that are due."""
        effects: list[Effect] = []
        if now_ms >= self._next_controller_tick_ms:
            self.controller.tick_failure = error = self._work(lambda: self.controller.tick(now_ms), now_ms)
            self._next_controller_tick_ms = now_ms if error is None else now_ms + BROKEN_TICK_PAUSE_MS
        if now_ms >= self._next_quorum_poll_ms:
            self._poll_quorum(now_ms, effects)
        effects += super().tick(now_ms)
        return effects

    def answered(self, outgoing_id: int, response: Message | None, now_ms: int) -> list[Effect]:
        """Process a response to an SendToNode from another node of the quorum; None: no response in time."""
        effects: list[Effect] = []
        self._work(lambda: self._quorum.received(outgoing_id, response, now_ms), now_ms)
        self._poll_quorum(now_ms, effects)
        self._retry_parked(now_ms, effects)
        return effects

    def next_tick_ms(self, now_ms: int) -> int:
        """Latest time at which `tick` must be called, in milliseconds of the controller's clock."""
        next_ms = max(self.controller.next_tick_ms(now_ms), self._next_controller_tick_ms)
        poll_ms = max(self._quorum.next_poll_ms(), self._next_quorum_poll_ms)
        return min(next_ms, poll_ms, super().next_tick_ms(now_ms))

    def _poll_quorum(self, now_ms: int, effects: list[Effect]) -> None:
        error = self._work(lambda: effects.extend(map(SendToNode, self._quorum.poll(now_ms))), now_ms)
        self._next_quorum_poll_ms = now_ms if error is None else now_ms + BROKEN_TICK_PAUSE_MS
        self.controller.raft_failure = error

    def _work(self, do: Callable[[], None], now_ms: int) -> str | None:
        """Do periodic work; return in one line what it raised. The journal has it if it is the controller's first."""
        try:
            do()
        except StorageError as refusal:
            return refusal.message  # reported by the log
        except Exception as error:
            if self.controller.failure is None:
                self.journal.add_failure(Failure(now_ms, traceback.format_exc()))
            return f"{type(error).__name__}: {error}"
        return None

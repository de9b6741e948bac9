"""Requests to other nodes of the quorum: those of the log, and a standby's registration.

A standby sends the active controller its endpoints and features (ControllerRegistrationManager; KIP-919); the active
one writes its own record. Sent when the log does not contain this incarnation and metadata.version allows it, and
again after a failure, with growing delays, when another incarnation has taken its place, or it was unregistered.
"""

from typing import Final

from mockraft.kafka_api.parked import NEVER_MS
from mockraft.server.controller.brokers.registration import registration_of
from mockraft.server.controller.controller import STANDBY, Controller
from mockraft.server.raft.outgoing import Outgoing
from mockraft.wire import error_codes
from mockraft.wire.message import Message
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest
from mockraft.wire.messages.controller_registration_response import ControllerRegistrationResponse

REGISTRATION_ID: Final = -1
"""Id of a registration among the log's requests, which count from 0."""

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

"""The sans-IO node: bytes of connections come in, effects go out, time is an argument.

Requests of a connection are answered in order, as Kafka mutes a channel while one of its requests is processed: a
parked request (a Fetch that waits for records) delays later requests of its connection only. The same inputs give the
same effects.

A short request is answered in the step that completes it. Longer ones, and all beyond a burst, wait for `sent` (the
effect AwaitSent), which the asyncio server calls for one connection in each iteration of its event loop.

There are three kinds of errors: undecodable bytes close the connection, a refusal is sent in the API's error form, and
a handler that raises is answered with UNKNOWN_SERVER_ERROR. Each is recorded in the journal.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from mockraft.kafka_api.journal import BrokenTick, Journal
from mockraft.kafka_api.parked import Parked
from mockraft.server.apis.api import AnyApi, RequestContext, Result, answer, broken
from mockraft.server.apis.offered import body_without_api
from mockraft.server.authentication.unauthenticated import UnauthenticatedConnections
from mockraft.server.connection_state import Connection, Deadlines, ParkedRequest
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log.data_dir import StorageError
from mockraft.server.effects import AwaitSent, Close, Effect, PauseReading, ResumeReading, Send, SendToNode
from mockraft.server.quorum_requests import QuorumRequests
from mockraft.server.responses import Responses
from mockraft.server.stubs.script import Script
from mockraft.wire import api_keys, messages
from mockraft.wire.connection import Request, parse_request, read_request_body
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message

if TYPE_CHECKING:
    import random

    from mockraft.server.scripted import ScriptedRequest, ScriptedRequests
    from mockraft.wire.message import MessageLookup

BURST_REQUESTS_MAX = 16
BURST_BYTES_MAX = 4_096
"""Maximum requests, and bytes with their responses, in one step; a larger request is answered alone, in its turn."""

REFUSED_FRAME_BYTES_KEPT = 1024
BROKEN_TICK_PAUSE_MS = 100


class Node:
    """A controller listener without sockets.

    The asyncio server calls these methods, `tick` by `next_tick_ms`, and carries out their effects in order.
    """

    def __init__(
        self,
        controller: Controller,
        apis: dict[int, AnyApi],
        journal: Journal | None = None,
        rng: random.Random | None = None,
        script: Script | None = None,
    ) -> None:
        self.controller, self.apis = controller, apis
        self.config = config = controller.config
        self.messages: MessageLookup = config.overlay or messages
        self._api_name = api_keys.name if config.overlay is None else config.overlay.api_name
        self.script = script or Script()
        limits, ids = (config.journal_entries_max, config.journal_bytes_max), self.script.entry_ids
        shown = config.show_secrets
        self.journal = journal or Journal(*limits, self._api_name, config.node_id, ids, show_secrets=shown)
        self.received_bytes = 0
        self._stubs = self.script.stubs
        self.responses = Responses(self.journal, self.messages)
        self._unauthenticated = UnauthenticatedConnections(controller, apis, rng)
        self._connections: dict[int, Connection] = {}
        self._parked: dict[int, Connection] = {}
        self._deadlines = Deadlines(self._parked)
        self._next_controller_tick_ms = 0
        self._quorum = QuorumRequests(controller)
        self._next_quorum_poll_ms = 0
        self._log_seen = self._log_position()

    @cached_property
    def _scripts(self) -> ScriptedRequests:
        # Imported for the first stub, so that a controller without stubs starts faster.
        from mockraft.server.scripted import ScriptedRequests

        return ScriptedRequests(self._stubs, self.controller, self.responses, self.config.node_id)

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    @property
    def parked(self) -> int:
        """Number of parked requests."""
        return len(self._parked)

    def client_of(self, connection_id: int) -> tuple[str | None, int]:
        """Return the client id and broker id (-1: none) last seen on a connection."""
        connection = self._connections.get(connection_id)
        return (None, -1) if connection is None else (connection.client_id, connection.broker_id)

    def connected(self, connection_id: int, peer_address: str, now_ms: int) -> list[Effect]:
        """Accept a connection, or close it at once when there are too many.

        Over TLS its bytes come after `secured`.
        """
        connection = Connection(connection_id, peer_address, now_ms, self.config.frame_bytes_max)
        if (refused := self._unauthenticated.refusal(len(self._connections))) is not None:
            kind, reason = refused
            self.journal.add_closed(connection.closed(now_ms, reason, refused=True), kind)
            return [Close(connection_id, reason)]
        self._connections[connection_id] = connection
        self._unauthenticated.arrived(connection, now_ms)
        return []

    def secured(self, connection_id: int, certificate: bytes | None, now_ms: int) -> list[Effect]:
        """Complete the TLS handshake; `certificate` is the peer's verified certificate in DER, if any."""
        connection = self._connections.get(connection_id)
        effects: list[Effect] = []
        if connection is not None and (refused := self._unauthenticated.secured(connection, certificate)):
            self._close(connection, "tls", refused, now_ms, effects)
        return effects

    def step(self, connection_id: int, data: bytes, now_ms: int) -> list[Effect]:
        """Process bytes received on a connection."""
        connection = self._connections.get(connection_id)
        if connection is None or connection.reader.failure is not None:
            return []  # what follows a frame of a wrong length has no meaning
        effects: list[Effect] = []
        held_before = connection.held_bytes
        connection.held_bytes += len(data)
        self.received_bytes += len(data)
        try:  # noqa: SIM105 - `suppress` is slower, and each request passes here
            connection.waiting += connection.reader.receive_data(data)
        except WireError:
            pass  # the reader keeps it as `failure`
        self._proceed(connection, now_ms, effects)
        is_held = connection.held_bytes > held_before and connection_id in self._connections
        if is_held and self.received_bytes > (limit := self._unauthenticated.received_bytes_max(connection_id)):
            if limit == self.config.received_bytes_max:  # else the share of clients without login is exceeded
                connection = max(self._connections.values(), key=lambda each: each.held_bytes)
            reason = f"unanswered requests of all connections hold {self.received_bytes} bytes"
            self._close(connection, "received_bytes_max", reason, now_ms, effects)
        self._after(now_ms, effects)
        return effects

    def sent(self, connection_id: int, now_ms: int) -> list[Effect]:
        """Process the connection's next requests: its bytes so far are written, and it is its turn."""
        connection = self._connections.get(connection_id)
        if connection is None or not connection.awaits_sent:
            return []
        connection.awaits_sent = False
        effects: list[Effect] = []
        self._proceed(connection, now_ms, effects, is_turn=True)
        self._after(now_ms, effects)
        return effects

    def disconnected(self, connection_id: int, reason: str, now_ms: int) -> None:
        """Remove an ended connection; no effect if the node closed it itself."""
        self._unauthenticated.left(connection_id)
        connection = self._connections.get(connection_id)
        if connection is None:
            return
        held, awaited = connection.reader.partial_bytes, connection.reader.awaited_bytes
        full_reason = f"{reason}, in a frame ({held} of {awaited} bytes)" if held else reason
        self._forget(connection, full_reason, reason, now_ms, refused=False)

    def close(self, connection_id: int, kind: str, reason: str, now_ms: int) -> list[Effect]:
        """Close a connection for a reason that the asyncio server detected (a client that never reads)."""
        connection = self._connections.get(connection_id)
        effects: list[Effect] = []
        if connection is not None:
            self._close(connection, kind, reason, now_ms, effects)
        return effects

    def tick(self, now_ms: int) -> list[Effect]:
        """Run the controller's periodic work and answer parked requests that are due."""
        effects: list[Effect] = []
        if now_ms >= self._next_controller_tick_ms:
            self.controller.tick_failure = error = self._work(lambda: self.controller.tick(now_ms), now_ms)
            self._next_controller_tick_ms = now_ms if error is None else now_ms + BROKEN_TICK_PAUSE_MS
        if now_ms >= self._next_quorum_poll_ms:
            self._poll_quorum(now_ms, effects)
        for connection, parked in self._deadlines.due(now_ms):
            self._retry(connection, parked, now_ms, True, effects)
        for connection_id, reason in self._unauthenticated.overdue(now_ms):
            self._close(self._connections[connection_id], "authentication_timeout_ms", reason, now_ms, effects)
        effects += self._unauthenticated.due(now_ms)
        self._after(now_ms, effects)
        return effects

    def answered(self, outgoing_id: int, response: Message | None, now_ms: int) -> list[Effect]:
        """Process a response to an SendToNode from another node of the quorum; None: no response in time."""
        effects: list[Effect] = []
        self._work(lambda: self._quorum.received(outgoing_id, response, now_ms), now_ms)
        self._poll_quorum(now_ms, effects)
        self._after(now_ms, effects)
        return effects

    def next_tick_ms(self, now_ms: int) -> int:
        """Latest time at which `tick` must be called, in milliseconds of the controller's clock."""
        next_ms = max(self.controller.next_tick_ms(now_ms), self._next_controller_tick_ms)
        poll_ms = max(self._quorum.next_poll_ms(), self._next_quorum_poll_ms)
        return min(next_ms, poll_ms, self._deadlines.next_ms(), self._unauthenticated.next_due_ms())

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
                self.journal.add_broken_tick(BrokenTick(now_ms, traceback.format_exc()))
            return f"{type(error).__name__}: {error}"
        return None

    def _proceed(self, connection: Connection, now_ms: int, effects: list[Effect], is_turn: bool = False) -> None:
        """Answer a connection's requests in order until one parks or the burst ends; in its turn, at least one."""
        waiting = connection.waiting
        requests = used_bytes = taken_bytes = 0
        while waiting and connection.parked is None and not connection.awaits_sent:
            frame = waiting[0]
            used_bytes += len(frame)
            is_over = used_bytes > BURST_BYTES_MAX or requests >= BURST_REQUESTS_MAX
            if is_over and (requests or not is_turn):
                connection.awaits_sent = True
                effects.append(AwaitSent(connection.connection_id))
                break
            requests += 1
            taken_bytes += 4 + len(frame)
            used_bytes += self._receive(connection, waiting.popleft(), now_ms, effects)
        if connection.connection_id not in self._connections:
            return
        self.received_bytes -= taken_bytes
        connection.held_bytes -= taken_bytes
        if (failure := connection.reader.failure) is not None and not waiting and connection.parked is None:
            self._close(connection, "frame", f"refused: {failure}", now_ms, effects)
            return
        held_back = bool(waiting)
        if held_back != connection.paused:
            connection.paused = held_back
            effects.append((PauseReading if held_back else ResumeReading)(connection.connection_id))

    def _receive(self, connection: Connection, frame: bytes, now_ms: int, effects: list[Effect]) -> int:
        """Answer or park one request; return the number of bytes sent."""
        if connection.authentication is not None and self._log_in(connection, frame, now_ms, effects):
            return 0
        received_us = None if self.responses.now_us is None else self.responses.now_us()
        try:
            request = parse_request(frame, self.messages)
            api = self.apis.get(request.api_key)
            if api is None or not api.min_version <= request.api_version <= api.max_version:
                body = body_without_api(request, self.apis, self.messages, self._api_name)
                api = self.apis[api_keys.API_VERSIONS]
            else:
                body = read_request_body(request, api.request, api.elements_max(self.config))
                if api.validate is not None:
                    api.validate(body)
        except WireError as wrong:
            self._close(connection, wrong.kind, f"refused: {wrong}", now_ms, effects, frame)
            return 0
        ctx = connection.context(request, self.config.controller_listener_name, self.apis, now_ms, received_us)
        if connection.broker_id < 0:
            connection.record_sender(request, body)
        scripted = self._scripts.consider(connection, api, body, ctx) if self._stubs.is_armed else None
        response = answer(api, body, ctx, self.controller) if scripted is None else scripted.begin(now_ms)
        if self._parked:  # KafkaRaftClient completes fetches before QuorumController answers the change
            self._after(now_ms, effects)
        return self._deliver(connection, api, request, body, ctx, response, scripted, now_ms, effects)

    def _log_in(self, connection: Connection, frame: bytes, now_ms: int, effects: list[Effect]) -> bool:
        """Let the connection's SASL exchange judge a frame; return False if the APIs answer it."""
        exchange = connection.authentication
        assert exchange is not None
        verdict = exchange.receive(frame, now_ms)
        if verdict.passes:
            return False
        answers: list[Effect] = []
        if verdict.answer is not None:
            api, request, body, response = verdict.answer
            ctx = connection.context(request, self.config.controller_listener_name, self.apis, now_ms)
            scripted = None
            if self._stubs.is_armed and verdict.failure is None:
                scripted = self._scripts.consider(connection, api, body, ctx, lambda: response)
            result = response if scripted is None else scripted.begin(now_ms)
            self._deliver(connection, api, request, body, ctx, result, scripted, now_ms, answers)
        elif verdict.token is not None:
            answers.append(Send(connection.connection_id, len(verdict.token).to_bytes(4, "big") + verdict.token))
        if verdict.failure is None:
            effects += answers
            if verdict.is_complete and connection.connection_id in self._connections:
                self._unauthenticated.admit(connection, exchange)
        elif verdict.expired:
            self._close(connection, "session", verdict.failure, now_ms, effects)
        else:
            self._forget(connection, verdict.failure, "authentication", now_ms, refused=verdict.refused)
            effects += self._unauthenticated.refuse(connection.connection_id, answers, verdict.failure, now_ms)
        return True

    def _deliver(
        self,
        connection: Connection,
        api: AnyApi,
        request: Request,
        body: Message,
        ctx: RequestContext,
        response: Result,
        scripted: ScriptedRequest | None,
        now_ms: int,
        effects: list[Effect],
    ) -> int:
        """Park a request, or send and journal its response; return the number of bytes sent."""
        if isinstance(response, Parked):
            if scripted is not None:
                self._scripts.wait(connection, request, scripted, now_ms)
            connection.parked = parked = ParkedRequest(api, request, body, ctx, response, scripted)
            self._parked[connection.connection_id] = connection
            self._deadlines.add(parked)
            return 0
        if scripted is None:
            return self.responses.send(connection, api, request, body, ctx, response, now_ms, effects)
        sent_bytes, end = self._scripts.finish(connection, request, scripted, response, now_ms, effects)
        if end is not None:
            self._forget(connection, end.reason, "stub", now_ms, refused=True)
            effects.append(end)
        return sent_bytes

    def _after(self, now_ms: int, effects: list[Effect]) -> None:
        """Retry parked requests after the log moved; answering them may append again."""
        while self._parked:
            position = self._log_position()
            if position == self._log_seen:
                return
            self._log_seen = position
            for connection in list(self._parked.values()):
                if connection.parked is not None:
                    self._retry(connection, connection.parked, now_ms, False, effects)
        self._log_seen = self._log_position()

    def _retry(
        self, connection: Connection, parked: ParkedRequest, now_ms: int, expired: bool, effects: list[Effect]
    ) -> None:
        try:
            response = parked.parked.retry(now_ms, expired)
            if response is None and not expired:
                return
            if response is None:
                raise AssertionError("a parked request was not answered at its deadline")
        except Exception:
            response = broken(parked.api, parked.body, parked.ctx)
        connection.parked = None
        del self._parked[connection.connection_id]
        self._deliver(
            connection, parked.api, parked.request, parked.body, parked.ctx, response, parked.scripted, now_ms, effects
        )
        if connection.waiting or connection.reader.failure is not None:
            self._proceed(connection, now_ms, effects)

    def _log_position(self) -> tuple[int, ...]:
        controller, log = self.controller, self.controller.log
        return (log.end_offset, log.high_watermark, controller.epoch, controller.raft.changes, self._stubs.releases)

    def _close(
        self, connection: Connection, kind: str, reason: str, now_ms: int, effects: list[Effect], frame: bytes = b""
    ) -> None:
        self._forget(connection, reason, kind, now_ms, True, frame)
        effects.append(Close(connection.connection_id, reason))

    def _forget(
        self, connection: Connection, reason: str, kind: str, now_ms: int, refused: bool, frame: bytes = b""
    ) -> None:
        del self._connections[connection.connection_id]
        self._unauthenticated.forget(connection.connection_id)
        self._parked.pop(connection.connection_id, None)
        self.received_bytes -= connection.held_bytes
        if self._stubs.is_armed or (connection.parked is not None and connection.parked.scripted is not None):
            self._scripts.ended(connection, now_ms)
        connection.parked = None
        connection.waiting.clear()
        self.journal.add_closed(connection.closed(now_ms, reason, refused, frame[:REFUSED_FRAME_BYTES_KEPT]), kind)

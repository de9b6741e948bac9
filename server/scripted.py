"""Requests that stubs handle: from the match to the bytes that are sent, if any.

A delay, a blackhole and a Fetch that waits are all parked requests: the connection's next ones wait, as Kafka mutes a
channel. A stub that raises is answered with UNKNOWN_SERVER_ERROR, as a handler is, and the journal has the traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NoReturn

from mockraft.kafka_api.parked import NEVER_MS, Parked
from mockraft.server.apis.api import AnyApi, RequestContext, Result, answer, broken
from mockraft.server.connection_state import Connection
from mockraft.server.controller.controller import Controller
from mockraft.server.effects import Close, Effect, Reset, Send
from mockraft.server.responses import Responses, answered_version
from mockraft.server.stubs.action import AnswerPlan
from mockraft.server.stubs.actions import Blackhole
from mockraft.server.stubs.match import StubRequest
from mockraft.server.stubs.stub import Stub
from mockraft.server.stubs.stub_list import StubList
from mockraft.wire import api_keys
from mockraft.wire.connection import Request
from mockraft.wire.message import Message

NOTHING: Final = Message()
"""Sentinel: send no response message (raw bytes may still be sent)."""

_PASS = AnswerPlan(())
_HELD = AnswerPlan((Blackhole(),))
_RELEASED = AnswerPlan(())
_RELEASED.reason.append("blackholed until released")


@dataclass(slots=True, eq=False)
class ScriptedRequest:
    """One request with its stub (None: strict mode without a match, or an Envelope that carries a stubbed
    request) and its result. `carried` is the request inside an Envelope that a stub serves.
    """

    stubs: StubList
    stub: Stub | None
    received: StubRequest
    api: AnyApi
    body: Message
    ctx: RequestContext
    ask_controller: Callable[[], Result]
    unmatched: bool = False
    is_noted: bool = False
    carried: ScriptedRequest | None = None
    plan: AnswerPlan = field(init=False)
    received_ms: int = field(init=False)
    _call: int = field(init=False)

    def __post_init__(self) -> None:
        self.plan = _PASS if self.stub is None else self.stub.plan
        self.received_ms = self.ctx.now_ms
        self._call = 0 if self.stub is None else self.stub.call_count

    def begin(self, now_ms: int) -> Result:
        """Return the response, NOTHING, or `Parked`."""
        try:
            stub = self.stub
            if self.stubs.holder(self.received) is not None:
                self.plan = _HELD
                return self._until_released()
            if stub is not None and self.plan.varies:
                self.plan = self.plan.resolved(self._call, self.received)
            if stub is not None and self.plan.held_by:
                self.stubs.hold(stub, self.received, self.plan.held_by)
                return self._until_released()
            return self._wait(self.plan.delays_before, now_ms, self._respond)
        except Exception:
            failed: Message = broken(self.api, self.body, self.ctx)
            return failed

    def _until_released(self) -> Parked[Result]:
        def retry(now_ms: int, expired: bool) -> Result | None:
            if self.stubs.holder(self.received) is not None:
                return None
            self.plan = _RELEASED
            return self._respond(now_ms)

        # Releasing a client retries the parked requests: `StubList.on_release`.
        return Parked(NEVER_MS, retry)

    def _wait(self, delays: Sequence[Callable[[int], int]], now_ms: int, then: Callable[[int], Result]) -> Result:
        ms = sum(delay(self._call) for delay in delays) if delays else 0
        if ms <= 0:
            return then(now_ms)
        due_ms = now_ms + ms
        return Parked(due_ms, lambda now_ms, expired: then(now_ms) if expired or now_ms >= due_ms else None)

    def _respond(self, now_ms: int) -> Result:
        plan = self.plan
        for change in plan.request_changes:
            change(self.body)
        if plan.respond is not None:
            self.ctx.refused_with = plan.refused_with
            return self._delayed(plan.respond(self.api, self.received), now_ms)
        if not plan.passes:
            return self._delayed(NOTHING, now_ms)
        self.ctx.now_ms = now_ms
        return self._follow(self.ask_controller(), now_ms)

    def _follow(self, response: Result, now_ms: int) -> Result:
        """Return the controller's own answer, now or once it is ready."""
        if not isinstance(response, Parked):
            return self._delayed(response, now_ms)
        return response.then(self._follow)

    def _delayed(self, response: Message, now_ms: int) -> Result:
        if self.plan.response_changes and response is not NOTHING:
            version = answered_version(self.api, self.received.api_version)
            # A copy: a handler's response may be shared with other requests.
            response = self.api.response.read(response.write(version), version)
            for change in self.plan.response_changes:
                given = change(response)
                response = response if given is None else given
        return self._wait(self.plan.delays, now_ms, lambda _: response)

    def edited(self, frame: bytes) -> bytes:
        """Return the bytes sent in place of the response's frame."""
        plan = self.plan
        if plan.is_untouched or (self.ctx.failure is not None and not plan.passes):
            return frame
        frame = frame if plan.raw is None else plan.raw
        for edit in plan.frame_edits:
            frame = edit(frame, self._call)
        return frame if plan.is_sent else b""


class ScriptedRequests:
    """The stubs of a node, applied to its requests. `consider` is called only while stubs are armed."""

    def __init__(self, stubs: StubList, controller: Controller, responses: Responses, node_id: int) -> None:
        self._stubs = stubs
        self._controller = controller
        self._responses = responses
        self._node_id = node_id

    def consider(
        self,
        connection: Connection,
        api: AnyApi,
        body: Message,
        ctx: RequestContext,
        ask: Callable[[], Result] | None = None,
    ) -> ScriptedRequest | None:
        """Return the request with its stub; None if no stub applies.

        `ask` returns the controller's own answer.
        """
        is_envelope = ctx.api_key == api_keys.ENVELOPE
        if self._stubs.is_idle_for(ctx.api_key) and not is_envelope:
            return None
        received = self._stub_request(connection, body, ctx)
        stub, failure = self._match(received)
        unmatched = stub is None and self._stubs.expects_stub_of(ctx.api_key)
        if stub is None and failure is None and not unmatched and not is_envelope:
            return None
        if failure is not None:
            ask = partial(_raise, failure)
        elif ask is None:
            ask = partial(answer, api, body, ctx, self._controller)
        found = ScriptedRequest(self._stubs, stub, received, api, body, ctx, ask, unmatched)
        if is_envelope:
            ctx.carried = partial(self._carried, connection, found)
        return found

    def _carried(
        self,
        connection: Connection,
        outer: ScriptedRequest,
        api: AnyApi,
        body: Message,
        ctx: RequestContext,
        controller: Controller,
    ) -> Result:
        """Answer the request in an Envelope, by its own stub if it has one."""
        received = self._stub_request(connection, body, ctx)
        stub, failure = self._match(received)
        if failure is not None:
            raise failure
        if stub is None:
            return answer(api, body, ctx, controller)
        ask = partial(answer, api, body, ctx, controller)
        outer.carried = ScriptedRequest(self._stubs, stub, received, api, body, ctx, ask)
        outer.unmatched = False
        return _for_envelope(outer.carried.begin(ctx.now_ms), api)

    def wait(self, connection: Connection, request: Request, scripted: ScriptedRequest, now_ms: int) -> None:
        """Register a parked request; a blackholed one is journaled at once, as its end is unknown."""
        held = next((part for part in (scripted, scripted.carried) if part is not None and part.plan.held_by), scripted)
        holder = held.stub
        if holder is not None and held.plan.held_by and not scripted.is_noted:
            scripted.is_noted = True
            version = answered_version(scripted.api, request.api_version)
            by, reason = f"stub {holder.id}", _because(["blackholed"], holder)
            exchange = self._responses.note(
                connection, request, scripted.ctx, now_ms, b"", version, by, None, holder.id, False, reason
            )
            holder.calls.append(exchange)
            holder.last_served_ms = now_ms

    def finish(
        self,
        connection: Connection,
        request: Request,
        scripted: ScriptedRequest,
        response: Message,
        now_ms: int,
        effects: list[Effect],
    ) -> tuple[int, Close | Reset | None]:
        """Send and journal the result; return the number of bytes sent and the reason to end the connection, if any."""
        api, body, ctx = scripted.api, scripted.body, scripted.ctx
        data, version = b"", answered_version(api, request.api_version)
        if response is not NOTHING:
            data, version = self._responses.written(api, request, body, ctx, response)
        stub, is_own, end = None, False, ""
        words: list[str] = []
        parts = (scripted,) if scripted.carried is None else (scripted.carried, scripted)
        for part in parts:
            plan = part.plan
            data = part.edited(data)
            stub = stub or part.stub
            is_own = is_own or not plan.is_untouched
            end = end or plan.end
            words += plan.reason
        if data:
            effects.append(Send(connection.connection_id, data))
        reason = None if stub is None or not words else _because(words, stub)
        exchange = self._responses.note(
            connection,
            request,
            ctx,
            now_ms,
            data,
            version,
            f"stub {stub.id}" if stub is not None and is_own else api.served_by,
            scripted.received_ms,
            stub.id if stub is not None else None,
            scripted.unmatched,
            reason,
        )
        for part in parts:
            if part.stub is not None:
                part.stub.calls.append(exchange)
                part.stub.last_served_ms = now_ms
        if not end or reason is None:
            return len(data), None
        return len(data), (Reset if end == "reset" else Close)(connection.connection_id, reason)

    def ended(self, connection: Connection, now_ms: int) -> None:
        """Journal the parked requests of a connection that ended."""
        self._stubs.forget_connection(self._node_id, connection.connection_id)
        parked = connection.parked
        if parked is None or parked.scripted is None or parked.scripted.is_noted:
            return
        scripted: ScriptedRequest = parked.scripted
        request = parked.request
        served = scripted if scripted.carried is None else scripted.carried
        stub = served.stub or scripted.stub
        reason = "the connection ended before the answer"
        exchange = self._responses.note(
            connection,
            request,
            scripted.ctx,
            now_ms,
            b"",
            answered_version(scripted.api, request.api_version),
            scripted.api.served_by if stub is None or served.plan.passes else f"stub {stub.id}",
            scripted.received_ms,
            None if stub is None else stub.id,
            scripted.unmatched,
            reason if stub is None else _because([reason], stub),
        )
        for part in (scripted, scripted.carried):
            if part is not None and part.stub is not None:
                part.stub.calls.append(exchange)
                part.stub.last_served_ms = now_ms

    def _stub_request(self, connection: Connection, body: Message, ctx: RequestContext) -> StubRequest:
        return StubRequest(
            ctx.api_key,
            ctx.api_version,
            ctx.client_id,
            connection.connection_id,
            ctx.listener,
            self._node_id,
            ctx.principal,
            connection.sender_of(body),
            body,
        )

    def _match(self, received: StubRequest) -> tuple[Stub | None, Exception | None]:
        """Return the stub that serves a request, and the error if a test's own matcher raised."""
        try:
            return self._stubs.holder(received) or self._stubs.match(received), None
        except Exception as failure:
            return None, failure


def _for_envelope(response: Result, api: AnyApi) -> Result:
    """Convert a response into one that an Envelope can carry; without one, the Envelope gets none either."""
    if response is NOTHING:
        empty: Message = api.response()
        return empty
    if not isinstance(response, Parked):
        return response
    return response.then(lambda later, _now_ms: _for_envelope(later, api))


def _because(words: list[str], stub: Stub) -> str:
    return f"{', '.join(words)} (stub {stub.id})"


def _raise(broken_match: Exception) -> NoReturn:
    raise broken_match

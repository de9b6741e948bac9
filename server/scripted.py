"""Requests that stubs handle: from the match to the bytes that are sent, if any.

A delay, a blackhole and a Fetch that waits are all parked requests: the connection's next ones wait, as Kafka mutes a
channel. A stub that raises is answered with UNKNOWN_SERVER_ERROR, as a handler is, and the journal has the traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NoReturn

from mockraft.kafka_api import api as serving_api
from mockraft.kafka_api.api import NEVER_MS, AnyApi, Parked, call_of_test
from mockraft.kafka_api.connections import AnyRequest, Connection, Result
from mockraft.kafka_api.effects import Close, Reset
from mockraft.kafka_api.journal import Answer, Exchange
from mockraft.kafka_api.listener import AnyListener
from mockraft.server.apis.api import RequestContext
from mockraft.server.stubs.action import AnswerPlan
from mockraft.server.stubs.actions import Blackhole, as_message
from mockraft.server.stubs.entities import Refusal, Taken
from mockraft.server.stubs.match import StubRequest
from mockraft.server.stubs.stub import Stub
from mockraft.server.stubs.stub_list import StubList
from mockraft.wire import api_keys, error_codes
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
    request) and its result. `carried` is the request inside an Envelope that a stub serves, `own` asks the server.
    """

    scripts: ScriptedRequests
    stub: Stub | None
    received: StubRequest
    request: AnyRequest
    own: Callable[[], Result]
    unmatched: bool = False
    is_noted: bool = False
    carried: ScriptedRequest | None = None
    plan: AnswerPlan = field(init=False)
    _call: int = field(init=False)
    _refused: Taken | None = field(default=None, init=False)
    _is_emptied: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.plan = _PASS if self.stub is None else self.stub.plan
        self._call = 0 if self.stub is None else self.stub.call_count

    def begin(self, now_ms: int) -> Result:
        """Return the response, NOTHING, or `Parked`."""
        try:
            stub, stubs = self.stub, self.scripts.stubs
            if stubs.holder(self.received) is not None:
                self.plan = _HELD
                self._note(now_ms)
                return self._until_released()
            if stub is not None and self.plan.varies:
                self.plan = self.plan.resolved(self._call, self.received)
            if stub is not None and self.plan.held_by:
                stubs.hold(stub, self.received, self.plan.held_by)
                self._note(now_ms)
                return self._until_released()
            self._note(now_ms)
            return self._wait(self.plan.delays_before, now_ms, self._respond)
        except Exception:
            return self.scripts.listener.broken(self.request)

    def _note(self, now_ms: int) -> None:
        """Record the stub's effect on a heartbeat, without which a broker is fenced, and who changed a request."""
        stub, received = self.stub, self.received
        if stub is None:
            return
        title = self.scripts.stubs.title(stub)
        if self.plan.request_changes:
            self.request.ctx.changed_by = title
        if received.api_key == api_keys.BROKER_HEARTBEAT and (done := _done(self.plan)):
            self.scripts.stubs.note_heartbeat(received.broker_id, now_ms, f"{done} by {title}")

    def _until_released(self) -> Parked[Result]:
        def retry(now_ms: int, expired: bool) -> Result | None:
            if self.scripts.stubs.holder(self.received) is not None:
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
        plan, request = self.plan, self.request
        for change in plan.request_changes:
            change(request.body)
        if plan.refusal is not None and (whole := self._refuse(plan.refusal)) is not None:
            return self._delayed(whole, now_ms)
        if plan.respond is not None:
            request.ctx.refused_with = plan.refused_with
            return self._delayed(plan.respond(request.api, self.received), now_ms)
        if not plan.passes:
            return self._delayed(NOTHING, now_ms)
        request.ctx.now_ms = now_ms
        return self._follow(self.own(), now_ms)

    def _refuse(self, refusal: Refusal) -> Message | None:
        """Take the selected entities out of the request; return the response if all of it is refused."""
        entities, request, version = self.plan.entities, self.request, self.received.api_version
        assert entities is not None, "a refusal is for entities"
        whole, topic_name = self.received.in_session or request.body, self.received.topic_name
        taken = entities.of(whole, version, topic_name)
        if taken is None:
            return None
        if not taken.lists or not entities.is_refused_alone(request.body.api_key, version):
            request.ctx.refused_with = refusal.error_code
            error: Message = request.api.error(request.body, *refusal)
            return error
        if hasattr(whole, "max_wait_ms") and entities.of(request.body, version, topic_name) is not None:
            whole.max_wait_ms = 0  # with an error Kafka answers a fetch at once
        self._refused, self._is_emptied = taken, taken.remove()
        request.ctx.asked, request.body = request.body, whole
        return None

    def _follow(self, response: Result, now_ms: int) -> Result:
        """Return the controller's own answer, now or once it is ready."""
        if not isinstance(response, Parked):
            return self._delayed(response, now_ms)
        return response.then(self._follow)

    def _delayed(self, response: Message | bytes, now_ms: int) -> Result:
        refused, refusal = self._refused, self.plan.refusal
        if (self.plan.response_changes or refused is not None) and response is not NOTHING and response != b"":
            api, version = self.request.api, self._version
            # A copy: a handler's response may be shared with other requests.
            written = response.write(version) if isinstance(response, Message) else response
            changed: Message = api.response.read(written, version)
            if refused is not None and refusal is not None:
                if self._is_emptied:
                    refused.clear(changed)
                refused.refuse(changed, refusal)
            for change in self.plan.response_changes:
                given = change(changed)
                changed = changed if given is None else as_message(given, api)
            response = changed
        return self._wait(self.plan.delays, now_ms, lambda _: response)

    def parked(self) -> Answer | None:
        """Return what the journal has of a blackholed request, at once, as its end is unknown."""
        held = next((part for part in self.parts if part.plan.held_by), None)
        if held is None or held.stub is None or self.is_noted:
            return None
        self.is_noted = True
        stub_id = held.stub.id
        reason = _because(["blackholed"], held.stub)
        return Answer(b"", self._version, f"stub {stub_id}", None, stub_id, False, reason)

    def finish(self, response: Message | bytes) -> tuple[Answer, Close | Reset | None]:
        """Return what is sent, and the effect that ends the connection, if any."""
        request = self.request
        answer = Answer(b"", self._version, request.api.served_by)
        if response is not NOTHING:
            answer = self.scripts.listener.written(request, response)
        stub, is_own, end = None, False, ""
        words: list[str] = []
        frame = answer.frame
        for part in reversed(self.parts):
            plan = part.plan
            frame = part.edited(frame)
            stub = stub or part.stub
            is_own = is_own or not plan.is_untouched
            end = end or plan.end
            words += plan.reason
        reason = None if stub is None or not words else _because(words, stub)
        answer = answer._replace(
            frame=frame,
            served_by=f"stub {stub.id}" if stub is not None and is_own else answer.served_by,
            failure=request.ctx.failure,
            matched=None if stub is None else stub.id,
            unmatched=self.unmatched,
            reason=reason,
        )
        if not end or reason is None:
            return answer, None
        return answer, (Reset if end == "reset" else Close)(request.connection.connection_id, reason)

    def ended(self) -> Answer | None:
        """Return what the journal has of a request whose connection ended while it waited, unless it has it."""
        if self.is_noted:
            return None
        served = self if self.carried is None else self.carried
        stub = served.stub or self.stub
        reason = "the connection ended before the answer"
        return Answer(
            b"",
            self._version,
            self.request.api.served_by if stub is None or served.plan.passes else f"stub {stub.id}",
            self.request.ctx.failure,
            None if stub is None else stub.id,
            self.unmatched,
            reason if stub is None else _because([reason], stub),
        )

    def served(self, exchange: Exchange, now_ms: int) -> None:
        """Add the journal's entry to the calls of the stubs, its Envelope to those of a stub of that."""
        for part in self.parts:
            if part.stub is not None:
                part.stub.calls.append(exchange.envelope or exchange if part is self else exchange)
                part.stub.last_served_ms = now_ms

    @property
    def parts(self) -> tuple[ScriptedRequest, ...]:
        """The request, and the one inside its Envelope, if a stub serves that."""
        return (self,) if self.carried is None else (self, self.carried)

    @property
    def _version(self) -> int:
        version: int = self.request.api.answered_version(self.request.ctx.api_version)
        return version

    def edited(self, frame: bytes) -> bytes:
        """Return the bytes sent in place of the response's frame."""
        plan = self.plan
        if plan.is_untouched or (self.request.ctx.failure is not None and not plan.passes):
            return frame
        frame = frame if plan.raw is None else plan.raw
        for edit in plan.frame_edits:
            frame = edit(frame, self._call)
        return frame if plan.is_sent else b""


class ScriptedRequests:
    """The stubs of a listener, applied to its requests. Listeners ask for it only while stubs are armed.

    `at_broker`: the listener is a simulated broker's. Strict stubs do not expect requests of controllers only.
    """

    def __init__(self, stubs: StubList, listener: AnyListener, node_id: int, *, at_broker: bool = False) -> None:
        self.stubs = stubs
        self.listener = listener
        self._node_id = node_id
        self._broker = node_id if at_broker else -1

    def consider(self, request: AnyRequest, own: Callable[[], Result]) -> ScriptedRequest | None:
        """Return the request with its stub; None if no stub applies. `own` returns the server's own answer."""
        ctx = request.ctx
        api_key = ctx.api_key
        is_envelope = api_key == api_keys.ENVELOPE
        if self.stubs.is_idle_for(api_key) and not is_envelope:
            return None
        received = self._stub_request(request.connection, request.api, request.body, ctx)
        stub, failure = self._match(received)
        unmatched = stub is None and self._broker < 0 and self.stubs.expects_stub_of(api_key)
        if stub is None and failure is None and not unmatched and not is_envelope:
            return None
        found = ScriptedRequest(self, stub, received, request, own if failure is None else partial(_raise, failure))
        found.unmatched = unmatched
        if is_envelope:
            ctx.carried = partial(self._carried, found)
        return found

    def forget_connection(self, connection_id: int) -> None:
        """Forget that a connection that ended is blackholed."""
        self.stubs.forget_connection(self._node_id, connection_id)

    def _carried(
        self, outer: ScriptedRequest, api: AnyApi, body: Message, ctx: RequestContext, own: Callable[[], Result]
    ) -> Result:
        """Answer the request in an Envelope, by its own stub if it has one."""
        received = self._stub_request(outer.request.connection, api, body, ctx)
        stub, failure = self._match(received)
        if failure is not None:
            raise failure
        if stub is None:
            return own()
        request = replace(outer.request, api=api, body=body, ctx=ctx, scripted=None)
        outer.carried = ScriptedRequest(self, stub, received, request, own)
        outer.unmatched = False
        return _for_envelope(outer.carried.begin(ctx.now_ms), api)

    def _stub_request(
        self, connection: Connection, api: AnyApi, body: Message, ctx: serving_api.RequestContext
    ) -> StubRequest:
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
            self._broker,
            self.listener.journal.topic_name,
            None if api.in_session is None else api.in_session(body, ctx),
        )

    def _match(self, received: StubRequest) -> tuple[Stub | None, Exception | None]:
        """Return the stub that serves a request, and the error if a test's own matcher raised."""
        try:
            return self.stubs.holder(received) or call_of_test(self.stubs.match, received), None
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


def _done(plan: AnswerPlan) -> str:
    """Return what a plan does to a request, in words; nothing if it passes as if there were no stub."""
    if plan.reason:
        return ", ".join(plan.reason)
    if plan.refused_with:
        return f"answered with {error_codes.name(plan.refused_with)}"
    if plan.delays or plan.delays_before:
        return "delayed"
    return "" if plan.is_untouched else "changed"


def _because(words: list[str], stub: Stub) -> str:
    return f"{', '.join(words)} (stub {stub.id})"


def _raise(broken_match: Exception) -> NoReturn:
    raise broken_match

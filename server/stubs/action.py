"""The form of every action of a stub, and the plan that a stub's actions make of an answer, once for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mockraft.server.stubs.errors import StubError, write_parameters
from mockraft.server.stubs.fields import shown
from mockraft.wire.message import Message
from mockraft.wire.names import camel

if TYPE_CHECKING:
    from mockraft.kafka_api.api import Api
    from mockraft.server.stubs.entities import Refusal, Selection
    from mockraft.server.stubs.match import Match, StubRequest
    from mockraft.wire.json_form import Json, Tree

Resolver = Callable[[int, "StubRequest"], Sequence["Action"]]
"""Return the actions for a call, given its number (from 1) and the request."""


@dataclass(frozen=True)
class Action:
    """Base of all actions: `name` in JSON, and `main`, the parameter that may be given alone."""

    name: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[Json] = True
    main: ClassVar[str | None] = None
    takes_whole: ClassVar[bool] = False

    def extend(self, plan: AnswerPlan) -> None:
        """Add the action to a plan. Raise StubError if it cannot follow what the plan has."""
        raise AssertionError(f"{self.name} does nothing")

    def resolver(self) -> Resolver:
        """Return a per-stub resolver that keeps state between calls."""
        return lambda number, received: (self,)

    def check(self, match: Match) -> None:
        """Check that the action fits the requests of the stub. Raise StubError that names the field that does not."""

    def to_json(self) -> Tree:
        """Return the action's shortest JSON."""
        parameters = {name: shown(value) for name, value in write_parameters(self).items()}
        main = self.main and camel(self.main)
        if not parameters:
            return {self.name: True}
        if main in parameters and (self.takes_whole or len(parameters) == 1):
            return {self.name: parameters.pop(main), **parameters}
        return {self.name: parameters}


Respond = Callable[["Api[Message, Message]", "StubRequest"], Message]
"""Return the response message from the API (its `request`, `response` and `error`) and the request."""


class AnswerPlan:
    """The steps of one answer, in order.

    1. `held_by`: nothing is answered to this connection or client until it is released.
    2. `delays_before` pass, `request_changes` are made.
    3. `respond` makes the response (`refused_with` is its error code, if any); without it the controller does, if it
    `passes`. With `refusal` it does so for what the match's `entities` do not select: these are refused.
    4. `response_changes` are made, `delays` pass, the response is written, `frame_edits` are made on its bytes.
    5. They are sent if `is_sent`, and the connection ends as `end` says: "" for not at all, "close" or "reset".

    Delays and frame edits get the number of the stub's call, which is the seed of what they draw.

    `is_untouched`: the controller's answer to the unchanged request is sent as it is, possibly later. A plan that
    `varies` has to be `resolved` for each request first.
    """

    def __init__(self, actions: Sequence[Action], entities: Selection | None = None) -> None:
        self.actions = tuple(actions)
        self.entities = entities
        self._resolvers: list[Resolver] | None = None
        self.varies = False
        self.held_by = ""
        self.delays_before: list[Callable[[int], int]] = []
        self.request_changes: list[Callable[[Message], object]] = []
        self.passes = False
        self.respond: Respond | None = None
        self.refused_with = 0
        self.refusal: Refusal | None = None
        self.raw: bytes | None = None
        self.response_changes: list[Callable[[Message], Message | None]] = []
        self.delays: list[Callable[[int], int]] = []
        self.frame_edits: list[Callable[[bytes, int], bytes]] = []
        self.is_sent = True
        self.end = ""
        self.reason: list[str] = []
        for index, action in enumerate(actions):
            try:
                if self.end or self.held_by:
                    raise StubError(f"no action can follow {actions[index - 1].name}")
                action.extend(self)
            except StubError as wrong:
                raise wrong.within(f"[{index}]") from None
        if not self.has_answer:
            if self.end:
                self.is_sent = False
            elif self.is_sent and not self.held_by:
                self.passes = True
        is_edited = bool(self.request_changes or self.refusal or self.response_changes or self.frame_edits or self.end)
        self.is_untouched = self.passes and self.is_sent and not is_edited

    @property
    def has_answer(self) -> bool:
        """True if it is decided what answers."""
        return self.passes or self.respond is not None or self.raw is not None or self.varies

    def resolved(self, number: int, received: StubRequest) -> AnswerPlan:
        """Return the plan for the call of this number, from 1."""
        if self._resolvers is None:
            self._resolvers = [action.resolver() for action in self.actions]
        actions = [each for resolve in self._resolvers for each in resolve(number, received)]
        plan = AnswerPlan(actions, self.entities)
        if plan.varies:
            raise StubError("the action of an answer cannot be `answers` itself")
        return plan

    def take_answer(self) -> None:
        """Claim the answer for an action. Raise StubError if another action answers already."""
        if self.has_answer:
            raise StubError("an earlier action answers already")

    def let_pass(self) -> None:
        """Let the controller answer if no action does, so that there is an answer to work on."""
        if not self.has_answer:
            self.passes = True

"""Actions that leave the client without an answer or end the connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mockraft.server.stubs.actions import Action
from mockraft.server.stubs.errors import StubError

if TYPE_CHECKING:
    from mockraft.server.stubs.plan import Plan
    from mockraft.wire.json_form import Json


@dataclass(frozen=True)
class Drop(Action):
    """Send no answer; the connection stays open."""

    name = "drop"
    summary = (
        "No answer; the connection goes on. Alone, the controller does not see the request; after `passThrough` it "
        "does, and its answer is lost."
    )

    def extend(self, plan: Plan) -> None:
        """Send nothing."""
        plan.is_sent = False
        plan.reason.append("dropped")


@dataclass(frozen=True)
class DisconnectOn(Action):
    """Close the connection after the answer of an earlier action."""

    name = "disconnectOn"
    summary = "The connection is closed, after the answer of an earlier action is sent."

    def extend(self, plan: Plan) -> None:
        """Close the connection."""
        plan.end = "close"
        plan.reason.append("disconnected")


@dataclass(frozen=True)
class Reset(Action):
    """Break the connection with a TCP reset after the answer of an earlier action."""

    name = "reset"
    summary = "The connection is reset (TCP RST), after the answer of an earlier action is sent."

    def extend(self, plan: Plan) -> None:
        """Reset the connection."""
        plan.end = "reset"
        plan.reason.append("reset")


@dataclass(frozen=True)
class Blackhole(Action):
    """Stop answering the client, or only the connection, until it is released."""

    by: str = "clientId"
    name = "blackhole"
    summary = (
        "This client (`by`: clientId), or only this connection (`by`: connection), gets no more answers, whatever "
        "it requests, until it is released or the stub is removed; then the controller answers what waits."
    )
    example: ClassVar[Json] = {"by": "connection"}
    main = "by"

    def __post_init__(self) -> None:
        if self.by not in ("clientId", "connection"):
            raise StubError(f"expected clientId or connection, got {self.by!r}", "by")

    def extend(self, plan: Plan) -> None:
        """Hold the client or connection."""
        plan.take_answer()
        plan.held_by = self.by
        plan.reason.append("blackholed")


ACTIONS: Sequence[type[Action]] = (Drop, DisconnectOn, Reset, Blackhole)

"""Actions after which there is no answer, or no connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mockraft.server.stubs.actions import Action
from mockraft.server.stubs.errors import StubError

if TYPE_CHECKING:
    from mockraft.server.stubs.plan import Plan


@dataclass(frozen=True)
class Drop(Action):
    """No answer, and the connection goes on."""

    name: ClassVar[str] = "drop"
    summary: ClassVar[str] = (
        "No answer; the connection goes on. Alone, the controller does not see the request; after `passThrough` it "
        "does, and its answer is lost."
    )

    def extend(self, plan: Plan) -> None:
        """Nothing is sent."""
        plan.is_sent = False
        plan.reason.append("dropped")


@dataclass(frozen=True)
class DisconnectOn(Action):
    """The connection is closed, after what was answered so far."""

    name: ClassVar[str] = "disconnectOn"
    summary: ClassVar[str] = "The connection is closed; an answer of an action before it is sent first."

    def extend(self, plan: Plan) -> None:
        """The connection ends."""
        plan.end = "close"
        plan.reason.append("disconnected")


@dataclass(frozen=True)
class Reset(Action):
    """The connection is broken off with a TCP reset, after what was answered so far."""

    name: ClassVar[str] = "reset"
    summary: ClassVar[str] = "The connection is broken off (TCP RST); an answer of an action before it is sent first."

    def extend(self, plan: Plan) -> None:
        """The connection ends."""
        plan.end = "reset"
        plan.reason.append("reset")


@dataclass(frozen=True)
class Blackhole(Action):
    """The client, or only the connection, is not answered any more until the rack releases it."""

    by: str = "clientId"
    name: ClassVar[str] = "blackhole"
    summary: ClassVar[str] = (
        "This client (`by`: clientId), or only this connection (`by`: connection), is not answered any more, whatever "
        "it asks, until it is released or the stub is gone; then the controller answers what waits."
    )
    example: ClassVar[Any] = {"by": "connection"}
    main: ClassVar[str | None] = "by"

    def __post_init__(self) -> None:
        if self.by not in ("clientId", "connection"):
            raise StubError(f"expected clientId or connection, got {self.by!r}", "by")

    def extend(self, plan: Plan) -> None:
        """The plan holds."""
        plan.take_answer()
        plan.held_by = self.by
        plan.reason.append("blackholed")


ACTIONS: Sequence[type[Action]] = (Drop, DisconnectOn, Reset, Blackhole)

"""What records another controller's answers as stubs; the admin API is given one by whoever starts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mockraft.server.journal import Exchange


@dataclass(frozen=True, slots=True)
class StubChoice:
    """Which exchanges become stubs, and what the stubs match; as the options of `mockraft record`.

    `filters` are names of APIs, with ! in front of those to leave out; `only` and `ignore` names of request fields.
    """

    filters: Sequence[str] = ()
    only: Sequence[str] = ()
    ignore: Sequence[str] = ()
    any_version: bool = False
    any_client: bool = False
    repeats_as_scenarios: bool = True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Exchanges of which no stub was made."""

    api: str
    why: str
    count: int


@dataclass(frozen=True, slots=True)
class RecordedStubs:
    """The stubs as JSON, and what none was made of."""

    stubs: list[dict[str, Any]]
    left_out: list[LeftOut]


@dataclass(slots=True)
class RecordingView:
    """A recording as it stands: where it listens for whom, and what it has heard."""

    id: str
    upstream: str
    bootstrap: str
    running: bool
    connections: int
    requests: int
    answers: int
    by_api: dict[str, int]
    bytes: int
    ended: str | None
    events: list[str] = field(default_factory=list)


class Recorder(Protocol):
    """Runs recordings in the event loop of the admin API. KeyError for an id that there is not."""

    async def start(self, upstream: str, listen: str, choice: StubChoice) -> RecordingView:
        """Begin one. ValueError whose text begins with the field; RuntimeError, OSError when it cannot be had."""

    def recordings(self) -> list[RecordingView]:
        """All of them, the oldest first."""

    def recording(self, recording_id: str) -> RecordingView:
        """One of them."""

    async def stubs(self, recording_id: str) -> RecordedStubs:
        """The stubs of what was heard so far."""

    async def stop(self, recording_id: str) -> None:
        """Close its listeners and connections; what it heard stays. Nothing when it was stopped already."""

    async def remove(self, recording_id: str) -> None:
        """Stop it, and forget it."""

    async def stubs_of(self, exchanges: Sequence[Exchange], choice: StubChoice) -> RecordedStubs:
        """The stubs of exchanges of a journal. ValueError as for `start`."""

    async def close(self) -> None:
        """Remove all recordings."""

"""Interface of the recorder of another controller's answers; the admin API gets one from its starter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from mockraft.kafka_api.journal import Exchange

if TYPE_CHECKING:
    from mockraft.wire.json_form import Tree


@dataclass(frozen=True, slots=True)
class StubChoice:
    """Selection of exchanges that become stubs, and of the fields they match; the options of `mockraft record`.

    `filters` are names of APIs, with a leading ! to exclude one; `only` and `ignore` are names of request fields.
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
    """The stubs as JSON, and the exchanges that were skipped."""

    stubs: list[Tree]
    left_out: list[LeftOut]


@dataclass(slots=True)
class RecordingView:
    """A recording: its listener, its upstream, and the recorded exchanges."""

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
    """Runs recordings in the event loop of the admin API. Raises KeyError for an unknown id."""

    async def start(self, upstream: str, listen: str, choice: StubChoice) -> RecordingView:
        """Start a recording. Raise ValueError that begins with the field, RuntimeError or OSError."""

    def recordings(self) -> list[RecordingView]:
        """Return all recordings, the oldest first."""

    def recording(self, recording_id: str) -> RecordingView:
        """Return the recording with this id, running or stopped."""

    async def stubs(self, recording_id: str) -> RecordedStubs:
        """Return the stubs of the exchanges recorded so far."""

    async def stop(self, recording_id: str) -> None:
        """Close its listeners and connections; recorded exchanges stay. No effect if it is stopped."""

    async def remove(self, recording_id: str) -> None:
        """Stop and remove a recording."""

    async def stubs_of(self, exchanges: Sequence[Exchange], choice: StubChoice) -> RecordedStubs:
        """Return the stubs of a journal's exchanges. Raise ValueError as `start` does."""

    async def close(self) -> None:
        """Remove all recordings."""

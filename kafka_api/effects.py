"""Effects on accepted connections that a sans-IO server returns for its asyncio side to carry out."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias


class Share(NamedTuple):
    """The API and the client of a request that waits for a turn; `is_dear` if its answer may take long."""

    is_dear: bool
    api: Hashable
    client: Hashable


NEW: Final = Share(True, None, None)
"""The share of a connection about which nothing is known."""


@dataclass(slots=True)
class Send:
    """Write these bytes to the connection, after everything sent to it before."""

    connection_id: int
    data: bytes


@dataclass(slots=True)
class Close:
    """Close the connection after all sent bytes are written; the reason is recorded already."""

    connection_id: int
    reason: str


@dataclass(slots=True)
class Reset:
    """Reset the connection (TCP RST) once sent bytes are handed to the operating system."""

    connection_id: int
    reason: str


@dataclass(slots=True)
class PauseReading:
    """Stop reading from this connection while one of its requests is parked (Kafka mutes the channel)."""

    connection_id: int


@dataclass(slots=True)
class ResumeReading:
    """Resume reading from this connection."""

    connection_id: int


@dataclass(slots=True)
class AwaitSent:
    """Call `sent` in this connection's turn, once everything sent to it so far is written to its socket."""

    connection_id: int
    share: Share = field(default=NEW, compare=False)


class ServerEffect:
    """An effect of the server behind the listener, which a part of its shell carries out. It is on no connection."""

    __slots__ = ()

    connection_id: int


ConnectionEffect: TypeAlias = Send | Close | Reset | PauseReading | ResumeReading | AwaitSent
Effect: TypeAlias = ConnectionEffect | ServerEffect

"""Effects on accepted connections that a sans-IO server returns for its asyncio side to carry out."""

from dataclasses import dataclass
from typing import TypeAlias


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
    """Call `sent` once everything sent to this connection so far is written to its socket."""

    connection_id: int


class ServerEffect:
    """An effect of the server behind the listener, which a part of its shell carries out. It is on no connection."""

    __slots__ = ()

    connection_id: int


ConnectionEffect: TypeAlias = Send | Close | Reset | PauseReading | ResumeReading | AwaitSent
Effect: TypeAlias = ConnectionEffect | ServerEffect

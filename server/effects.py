"""Effects that the node returns for the asyncio server to carry out."""

from dataclasses import dataclass

from mockraft.server.raft.outgoing import Outgoing


@dataclass(slots=True)
class Send:
    """Write these bytes to the connection, after everything sent to it before."""

    connection_id: int
    data: bytes


@dataclass(slots=True)
class Close:
    """Close the connection after all sent bytes are written; the journal already has the reason."""

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
    """Call `node.sent` once everything sent to this connection so far is written to its socket."""

    connection_id: int


@dataclass(slots=True)
class SendToNode:
    """Send a request to another node of the quorum; `node.answered` receives its response, or None.

    It belongs to no accepted connection: `connection_id` never occurs as one.
    """

    outgoing: Outgoing
    connection_id: int = 0


Effect = Send | Close | Reset | PauseReading | ResumeReading | AwaitSent | SendToNode

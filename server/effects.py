"""What the node asks of the shell that owns the sockets."""

from dataclasses import dataclass


@dataclass(slots=True)
class Send:
    """Write these bytes to the connection, after all that was sent to it before."""

    connection_id: int
    data: bytes


@dataclass(slots=True)
class Close:
    """Close the connection once what was sent to it is written; the journal has the reason already."""

    connection_id: int
    reason: str


@dataclass(slots=True)
class PauseReading:
    """Take nothing more from this connection: a request of it is parked (Kafka mutes the channel)."""

    connection_id: int


@dataclass(slots=True)
class ResumeReading:
    """Read from this connection again."""

    connection_id: int


@dataclass(slots=True)
class AwaitSent:
    """Call `node.sent` once all that was sent to this connection so far is written to its socket."""

    connection_id: int


Effect = Send | Close | PauseReading | ResumeReading | AwaitSent

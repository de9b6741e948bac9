"""What the node asks of the shell that owns the sockets."""

from typing import NamedTuple


class Send(NamedTuple):
    """Write these bytes to the connection, after all that was sent to it before."""

    connection_id: int
    data: bytes


class Close(NamedTuple):
    """Close the connection once what was sent to it is written; the journal has the reason already."""

    connection_id: int
    reason: str


class PauseReading(NamedTuple):
    """Take nothing more from this connection: a request of it is parked (Kafka mutes the channel)."""

    connection_id: int


class ResumeReading(NamedTuple):
    """Read from this connection again."""

    connection_id: int


class AwaitSent(NamedTuple):
    """Call `node.sent` once all that was sent to this connection so far is written to its socket."""

    connection_id: int


Effect = Send | Close | PauseReading | ResumeReading | AwaitSent

"""What the node asks of the shell that owns the sockets."""

from dataclasses import dataclass

from mockraft.server.raft.outgoing import Outgoing


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
class Reset:
    """Break the connection off with a TCP reset once what was sent to it is handed to the system."""

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


@dataclass(slots=True)
class Ask:
    """Send a request to another node of the quorum; `node.answered` gets its response, None where there is none.

    It belongs to no accepted connection: `connection_id` is one that there never is.
    """

    outgoing: Outgoing
    connection_id: int = 0


Effect = Send | Close | Reset | PauseReading | ResumeReading | AwaitSent | Ask

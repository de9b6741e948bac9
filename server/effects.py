"""Effects that the node returns for the asyncio server to carry out."""

from dataclasses import dataclass

from mockraft.server.raft.outgoing import Outgoing
from mockraft.serving.effects import AwaitSent as AwaitSent
from mockraft.serving.effects import Close as Close
from mockraft.serving.effects import PauseReading as PauseReading
from mockraft.serving.effects import ResumeReading as ResumeReading
from mockraft.serving.effects import Send as Send


@dataclass(slots=True)
class Reset:
    """Reset the connection (TCP RST) once sent bytes are handed to the operating system."""

    connection_id: int
    reason: str


@dataclass(slots=True)
class SendToNode:
    """Send a request to another node of the quorum; `node.answered` receives its response, or None.

    It belongs to no accepted connection: `connection_id` never occurs as one.
    """

    outgoing: Outgoing
    connection_id: int = 0


Effect = Send | Close | Reset | PauseReading | ResumeReading | AwaitSent | SendToNode

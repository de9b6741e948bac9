"""Effects that the node returns for the asyncio server to carry out."""

from dataclasses import dataclass

from mockraft.kafka_api.effects import AwaitSent as AwaitSent
from mockraft.kafka_api.effects import Close as Close
from mockraft.kafka_api.effects import Effect as Effect
from mockraft.kafka_api.effects import PauseReading as PauseReading
from mockraft.kafka_api.effects import Reset as Reset
from mockraft.kafka_api.effects import ResumeReading as ResumeReading
from mockraft.kafka_api.effects import Send as Send
from mockraft.kafka_api.effects import ServerEffect
from mockraft.server.raft.outgoing import Outgoing


@dataclass(slots=True)
class SendToNode(ServerEffect):
    """Send a request to another node of the quorum; `node.answered` receives its response, or None.

    It belongs to no accepted connection: `connection_id` never occurs as one.
    """

    outgoing: Outgoing
    connection_id: int = 0

"""Requests of raft to other nodes, and its listener interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mockraft.kafka_api.effects import ServerEffect
from mockraft.wire.message import Message


class NodeEndpoint(NamedTuple):
    """Address of another node of the quorum."""

    id: int
    host: str
    port: int


@dataclass(slots=True, frozen=True)
class Outgoing:
    """A request to another node of the quorum; its response goes to `Raft.received`.

    `message` is a request message, to be sent in the newest version both sides support of `version_min` to
    `version_max`. `node_id` is None if only the address is known (a bootstrap server). Without a response within
    `timeout_ms` it failed.
    """

    id: int
    node_id: int | None
    host: str
    port: int
    message: Message
    version_min: int
    version_max: int
    timeout_ms: int


@dataclass(slots=True)
class SendToNode(ServerEffect):
    """Send a request to another node of the quorum; `node.answered` receives its response, or None.

    It belongs to no accepted connection: `connection_id` never occurs as one.
    """

    outgoing: Outgoing
    connection_id: int = 0


class Listener(Protocol):
    """Synchronous callbacks on changes of this node: the controller implements it (Kafka's RaftClient.Listener)."""

    def became_leader(self, epoch: int, now_ms: int) -> None:
        """Handle leadership of `epoch`; everything committed before it and its own first batch are in the log."""

    def lost_leadership(self) -> None:
        """Handle the end of a leadership that `became_leader` announced."""

    def committed(self, now_ms: int) -> None:
        """Handle a moved high watermark; not called for appends in a quorum of one, which move it themselves."""

    def truncated(self) -> None:
        """Handle a truncation above the high watermark, or a snapshot that replaced the whole log."""

"""What raft asks of the shell that owns the sockets, and what it tells the controller above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class NodeEndpoint(NamedTuple):
    """Where another node of the quorum listens."""

    id: int
    host: str
    port: int


@dataclass(slots=True, frozen=True)
class Outgoing:
    """A request to another node of the quorum; its answer goes to `Raft.received`.

    `message` is a request message, to be sent in the newest version both sides know of `version_min` to `version_max`.
    `node_id` is None where only the address is known (a bootstrap server). Not answered within `timeout_ms`, it failed.
    """

    id: int
    node_id: int | None
    host: str
    port: int
    message: Any
    version_min: int
    version_max: int
    timeout_ms: int


class Listener(Protocol):
    """Who is told, synchronously, of what becomes of this node: the controller (Kafka's RaftClient.Listener)."""

    def became_leader(self, epoch: int, now_ms: int) -> None:
        """This node leads `epoch`, and all that was committed before it, its own first batch too, is in the log."""

    def lost_leadership(self, now_ms: int) -> None:
        """This node, of which `became_leader` was told, leads no more."""

    def committed(self, now_ms: int) -> None:
        """The high watermark moved; not told of appends in a quorum of one, which move it themselves."""

    def truncated(self, now_ms: int) -> None:
        """Records above the high watermark are gone from the log, or a snapshot took the place of the whole log."""

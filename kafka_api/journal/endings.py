"""Journal entries that are not exchanges: closed connections and failures of periodic work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mockraft.wire.redaction.messages import masked_request

if TYPE_CHECKING:
    from mockraft.wire.json_form import Tree


@dataclass(slots=True, eq=False, repr=False)
class ClosedConnection:
    """A closed connection and the reason; `refused` if the controller closed it, and then the refused frame, if any.

    The journal sets `id`, `node_id` and `show_secrets`.
    """

    connection_id: int
    peer_address: str
    opened_ms: int
    closed_ms: int
    reason: str
    refused: bool
    refused_frame: bytes = b""
    id: int = field(default=0, init=False)
    node_id: int = field(default=0, init=False)
    show_secrets: bool = field(default=False, init=False)

    @property
    def bytes_held(self) -> int:
        """Bytes of the refused frame and of the reason, which may quote the client's bytes."""
        return len(self.refused_frame) + len(self.reason)

    @property
    def shown_refused_frame(self) -> bytes:
        """The refused frame as people may see it: a frame without a readable header may be anything."""
        return self.refused_frame if self.show_secrets else masked_request(self.refused_frame)

    def to_json(self) -> Tree:
        """Return the entry as a JSON tree."""
        return {
            "id": self.id,
            "node": self.node_id,
            "connection": self.connection_id,
            "peer": self.peer_address,
            "openedMs": self.opened_ms,
            "closedMs": self.closed_ms,
            "refused": self.refused,
            "reason": self.reason,
            "refusedFrame": self.shown_refused_frame.hex(),
        }

    def __repr__(self) -> str:
        return f"<connection {self.connection_id} of {self.peer_address} closed: {self.reason}>"


@dataclass(slots=True, eq=False, repr=False)
class BrokenTick:
    """A failure of the controller's periodic work; the controller goes on. The journal sets `id` and `node_id`."""

    at_ms: int
    failure: str
    id: int = field(default=0, init=False)
    node_id: int = field(default=0, init=False)

    @property
    def bytes_held(self) -> int:
        """Bytes of the failure's text."""
        return len(self.failure)

    def to_json(self) -> Tree:
        """Return the entry as a JSON tree."""
        return {"id": self.id, "node": self.node_id, "brokenTickMs": self.at_ms, "failure": self.failure}

    def __repr__(self) -> str:
        return f"<periodic work at {self.at_ms}>"

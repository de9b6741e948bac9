"""Journal entries that are not exchanges: closed connections and failures of periodic work."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.wire.json_form import Tree


class ClosedConnection:
    """A closed connection and the reason; `refused` if the controller closed it, and then the refused frame, if any.

    The journal sets `id` and `node_id`.
    """

    __slots__ = (
        "closed_ms",
        "connection_id",
        "id",
        "node_id",
        "opened_ms",
        "peer_address",
        "reason",
        "refused",
        "refused_frame",
    )

    def __init__(
        self,
        connection_id: int,
        peer_address: str,
        opened_ms: int,
        closed_ms: int,
        reason: str,
        refused: bool,
        refused_frame: bytes = b"",
    ) -> None:
        self.id = self.node_id = 0
        self.connection_id = connection_id
        self.peer_address = peer_address
        self.opened_ms = opened_ms
        self.closed_ms = closed_ms
        self.reason = reason
        self.refused = refused
        self.refused_frame = refused_frame

    @property
    def bytes_held(self) -> int:
        """Bytes of the refused frame and of the reason, which may quote the client's bytes."""
        return len(self.refused_frame) + len(self.reason)

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
            "refusedFrame": self.refused_frame.hex(),
        }

    def __repr__(self) -> str:
        return f"<connection {self.connection_id} of {self.peer_address} closed: {self.reason}>"


class BrokenTick:
    """A failure of the controller's periodic work; the controller goes on. The journal sets `id` and `node_id`."""

    __slots__ = ("at_ms", "failure", "id", "node_id")

    def __init__(self, at_ms: int, failure: str) -> None:
        self.id = self.node_id = 0
        self.at_ms = at_ms
        self.failure = failure

    @property
    def bytes_held(self) -> int:
        """Bytes of the failure's text."""
        return len(self.failure)

    def to_json(self) -> Tree:
        """Return the entry as a JSON tree."""
        return {"id": self.id, "node": self.node_id, "brokenTickMs": self.at_ms, "failure": self.failure}

    def __repr__(self) -> str:
        return f"<periodic work at {self.at_ms}>"

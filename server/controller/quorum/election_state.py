"""Identities and election state shared by the metadata log and raft (Kafka's ReplicaKey, ElectionState)."""

from __future__ import annotations

from typing import NamedTuple

from mockraft.wire import uuids

PARTITION = 0

NO_DIRECTORY_ID = bytes(16)


class ReplicaKey(NamedTuple):
    """A replica of the log: node id and directory id (zero if unknown)."""

    id: int
    directory_id: bytes

    def __str__(self) -> str:
        known = self.directory_id != NO_DIRECTORY_ID
        return self._text(uuids.text_of(self.directory_id) if known else "<undefined>")

    def as_optional(self) -> str:
        """Return the key as texts of Kafka before 4.0 have it."""
        known = self.directory_id != NO_DIRECTORY_ID
        return self._text(f"Optional[{uuids.text_of(self.directory_id)}]" if known else "Optional.empty")

    def _text(self, directory: str) -> str:
        return f"ReplicaKey(id={self.id}, directoryId={directory})"


class ElectionState(NamedTuple):
    """Persisted state of an epoch: its leader, and this node's vote in it."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None

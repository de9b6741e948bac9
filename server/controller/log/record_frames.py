"""The framing of metadata records that a log uses: Kafka's, or an overlay's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mockraft.wire import metadata_log_frame

if TYPE_CHECKING:
    from mockraft.wire.message import Message
    from mockraft.wire.metadata_log_frame import RecordAt
    from mockraft.wire.overlay import Overlay


class RecordFrames(Protocol):
    """The functions of `metadata_log_frame`. Both raise WireError."""

    def encode(self, record: Message, version: int) -> bytes:
        """Write a record with its frame."""

    def decode(self, value: bytes) -> RecordAt:
        """Read a record, and its version from the frame."""


def record_frames(overlay: Overlay | None) -> RecordFrames:
    """Return the framing of Kafka's records, or of an overlay's."""
    if overlay is None:
        return metadata_log_frame
    from mockraft.wire.recast import OverlaidRecords

    return OverlaidRecords(overlay)

"""Conversion of metadata records between Kafka's classes and an overlay's, on writing and reading the log.

The code that writes and reads records knows Kafka's classes only. A record of the overlay is written in the requested
version, or in the first later one that can express it, and is converted back to Kafka's class on reading. A record type
that Kafka does not have is reported in the process's log.
"""

from __future__ import annotations

import logging

from mockraft.wire import metadata_log_frame, records
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.overlay import Overlay
from mockraft.wire.recast import recast

_LOGGER = logging.getLogger("mockraft.records")


class OverlaidRecords:
    """Overlay-aware `encode` and `decode` of framed metadata records, as in `metadata_log_frame`."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay

    def encode(self, record: Message, version: int) -> bytes:
        """Write Kafka's record as the overlay's. Raises WireError if no version can express it."""
        name = self._overlay.record_types[record.api_key]
        if name not in self._overlay.overlaid:
            return metadata_log_frame.encode(record, version)
        overlaid_record = recast(record, self._overlay.by_name(name))
        refusal = None
        for candidate in range(min(version, overlaid_record.max_version), overlaid_record.max_version + 1):
            try:
                return metadata_log_frame.encode(overlaid_record, candidate)
            except WireError as error:
                refusal = refusal or error
        raise refusal or AssertionError("a record has a version")

    def decode(self, value: bytes) -> RecordAt:
        """Read one framed record, as Kafka's class if there is one. Raises WireError for malformed bytes."""
        found = metadata_log_frame.decode(value, self._overlay.by_type)
        name = type(found.record).__name__
        if name not in self._overlay.overlaid:
            return found
        shipped = records.TYPES.get(found.record.api_key)
        if shipped is None:
            _LOGGER.warning("%s (type %d) is a record that Kafka does not have", name, found.record.api_key)
            return found
        return RecordAt(recast(found.record, records.by_name(shipped), found.version), found.version)

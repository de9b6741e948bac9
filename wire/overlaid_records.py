"""Metadata records as an overlay words them: on their way into the log, and out of it again.

Who writes and reads them knows Kafka's records alone. A record of the overlay is written in the version that was asked
for, or in the first later one that can say it; what is read is Kafka's record again. A type that Kafka does not know is
said in the process's log.
"""

from __future__ import annotations

import logging
from typing import Any

from mockraft.wire import metadata_log_frame, records
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.overlay import Overlay
from mockraft.wire.recast import recast

_LOGGER = logging.getLogger("mockraft.records")


class OverlaidRecords:
    """`encode` and `decode` of framed metadata records, as in `metadata_log_frame`."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay

    def encode(self, record: Any, version: int) -> bytes:
        """Write a record of Kafka's as the overlay words it. WireError where no version of that can say it."""
        name = self._overlay.record_types[record.api_key]
        if name not in self._overlay.overlaid:
            return metadata_log_frame.encode(record, version)
        worded = recast(record, self._overlay.by_name(name))
        refusal = None
        for candidate in range(min(version, worded.max_version), worded.max_version + 1):
            try:
                return metadata_log_frame.encode(worded, candidate)
            except WireError as error:
                refusal = refusal or error
        raise refusal or AssertionError("a record has a version")

    def decode(self, value: bytes) -> RecordAt:
        """Read one framed record, as Kafka's where Kafka has one of that type. WireError on any bad byte."""
        found = metadata_log_frame.decode(value, self._overlay.by_type)
        name = type(found.record).__name__
        if name not in self._overlay.overlaid:
            return found
        shipped = records.TYPES.get(found.record.api_key)
        if shipped is None:
            _LOGGER.warning("%s (type %d) is a record that Kafka has not", name, found.record.api_key)
            return found
        return RecordAt(recast(found.record, records.by_name(shipped), found.version), found.version)

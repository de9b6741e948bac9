"""The metadata log: `__cluster_metadata-0` as bytes, in memory and, with a data dir, in Kafka's own files.

Skeleton of the interface; the body follows.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mockraft.server.config import ControllerConfig
from mockraft.wire.metadata_log_frame import RecordAt


class OffsetAndEpoch(NamedTuple):
    """A place in the log: the offset after the last record and the leader epoch of that record."""

    offset: int
    epoch: int


class MetadataLog:
    """The log of the one active controller."""

    start_offset: int
    end_offset: int
    high_watermark: int
    leader_epoch: int
    directory_id: bytes

    @classmethod
    def open(cls, config: ControllerConfig, now_ms: int, chance: random.Random) -> MetadataLog:
        """Recover the log from `config.data_dir`, or start one in memory."""
        raise NotImplementedError

    def append(self, records: Sequence[RecordAt], now_ms: int) -> int:
        """Append one batch and return its base offset."""
        raise NotImplementedError

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Whole batches from the one that holds `offset`."""
        raise NotImplementedError

    def records(self, from_offset: int = 0) -> Iterator[tuple[int, RecordAt]]:
        """The data records: the newest snapshot's, then the log's after it."""
        raise NotImplementedError

    def snapshot_due(self, now_ms: int) -> str | None:
        """Why a snapshot should be written now (bytes, age), or None."""
        raise NotImplementedError

    def write_snapshot(self, records: Iterable[RecordAt], now_ms: int) -> OffsetAndEpoch:
        """Write a snapshot of the image at the end of the log."""
        raise NotImplementedError

    def close(self) -> None:
        """Release files and lock."""
        raise NotImplementedError

"""Where the readers of the metadata log are, captured and live, and what a replayed request says about that.

A reader is a replica id. Its live Fetch goes on where its last live answer ended, whatever the captured offset was;
the offset of a heartbeat is the live end of what the broker had read when it captured that offset, and stays on its
side of the broker's epoch, since that comparison is what decides whether it has caught up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import Any

from mockraft.spark_replay.regression.classes import BROKER_EPOCH
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError

REGISTRATION_RECORDS_MAX = 100
"""How many records of one registration (PartitionChanges before the RegisterBrokerRecord) are reckoned with."""


class _Reader:
    def __init__(self) -> None:
        self.captured_end = self.live_end = 0
        self.live_epoch = 0
        self.live_high_watermark = -1
        # Where both were after each answer, the captured ends in order.
        self.captured_ends = [0]
        self.live_ends = [0]


class LogReaders:
    """All readers of a replay."""

    def __init__(self, renaming: Renaming) -> None:
        self._renaming = renaming
        self._readers: defaultdict[int, _Reader] = defaultdict(_Reader)

    def bind_fetch(self, request: Any) -> None:
        """Set a Fetch request's place in the log, in place."""
        reader = self._readers[replica_of(request)]
        for partition in (partition for topic in request.topics for partition in topic.partitions):
            partition.fetch_offset = reader.live_end
            partition.last_fetched_epoch = (
                reader.live_epoch if reader.live_end else min(partition.last_fetched_epoch, 0)
            )
            if partition.high_watermark != -1 and partition.high_watermark < 1 << 62:
                partition.high_watermark = max(reader.live_high_watermark, 0)

    def bind_heartbeat(self, request: Any, captured_epoch: int) -> None:
        """Set a heartbeat's offset, in place. The epoch is live already; `captured_epoch` is the captured one."""
        offset = request.current_metadata_offset
        if offset < 0:
            return
        reader = self._readers[request.broker_id]
        index = bisect_right(reader.captured_ends, offset + 1) - 1
        live = reader.live_ends[index] - 1
        live_epoch = self._renaming.live(BROKER_EPOCH, captured_epoch)
        if offset < captured_epoch:
            live = min(live, live_epoch - 1)
        elif live <= live_epoch:
            # The live reader is behind. Past the registration then is past it now; in its batch others may come first.
            live = live_epoch + min(offset - captured_epoch, REGISTRATION_RECORDS_MAX)
        request.current_metadata_offset = live

    def answered(self, request: Any, captured: Any, live: Any) -> None:
        """Learn from two answers to one Fetch."""
        reader = self._readers[replica_of(request)]
        reader.captured_end = _end(captured)[0] or reader.captured_end
        if reader.captured_ends[-1] < reader.captured_end:
            reader.captured_ends.append(reader.captured_end)
            reader.live_ends.append(reader.live_end)
        self.read(request, live)

    def read(self, request: Any, live: Any) -> None:
        """Learn from a live answer alone."""
        reader = self._readers[replica_of(request)]
        for partition in (partition for topic in live.responses for partition in topic.partitions):
            reader.live_high_watermark = max(reader.live_high_watermark, partition.high_watermark)
        end, epoch = _end(live)
        if end > reader.live_end:
            reader.live_end, reader.live_epoch = end, epoch
        reader.live_ends[-1] = reader.live_end


def replica_of(request: Any) -> int:
    """The replica id of a Fetch request, which newer versions say in another place."""
    return int(request.replica_state.replica_id if request.replica_id == -1 else request.replica_id)


def _end(response: Any) -> tuple[int, int]:
    """The offset after the last whole batch of a Fetch's answer and its epoch; 0, 0 without one."""
    end = epoch = 0
    for partition in (partition for topic in response.responses for partition in topic.partitions):
        try:
            for header in record_batch.read_headers(bytes(partition.records or b""), allow_partial_tail=True):
                end, epoch = header.last_offset + 1, header.leader_epoch
        except WireError:
            continue
    return end, epoch

"""Map positions in a snapshot whose addresses are translated, so that its bytes move.

FetchSnapshot requests bytes from a position and gets the total size. After a batch was translated, the reader's copy is
longer or shorter than the controller's: positions are mapped, and the reported size is the controller's plus the
difference so far, so that the reader's count is right after every piece. A piece ends with a whole batch unless it
contains none; bytes of a batch that began in an earlier piece are not translated.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from mockraft.spark_replay.endpoints import Translate, translate_log
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError

if TYPE_CHECKING:
    from mockraft.wire.messages import FetchSnapshotRequest, FetchSnapshotResponse

SNAPSHOTS_MAX = 1000
"""Number of snapshot positions kept, most recently used; a reader further back starts over."""


class SnapshotPositions:
    """Positions of snapshot readers: (snapshot, reader's position) to the controller's position."""

    def __init__(self, translate: Translate) -> None:
        self._translate = translate
        # (end offset, epoch, position as the reader counts) → (position as the controller counts, left of a batch)
        self._places: OrderedDict[tuple[int, int, int], tuple[int, int]] = OrderedDict()

    def translate_request(self, request: FetchSnapshotRequest) -> bool:
        """Replace positions of a FetchSnapshot request by the controller's, in place; return True if any changed."""
        changed = False
        for partition in (partition for topic in request.topics for partition in topic.partitions):
            snapshot = partition.snapshot_id
            place = self._places.get((snapshot.end_offset, snapshot.epoch, partition.position))
            if place is not None and place[0] != partition.position:
                partition.position = place[0]
                changed = True
        return changed

    def translate_response(self, response: FetchSnapshotResponse, positions: dict[int, int]) -> None:
        """Translate the pieces in place; `positions` has the requested position by partition."""
        for partition in (partition for topic in response.topics for partition in topic.partitions):
            reader_position = positions.get(partition.index)
            if partition.error_code or reader_position is None:
                continue
            snapshot = partition.snapshot_id.end_offset, partition.snapshot_id.epoch
            _, left = self._places.get((*snapshot, reader_position), (reader_position, 0))
            piece, taken, left = self._piece(bytes(partition.unaligned_records or b""), left)
            at = partition.position + taken
            self._places[*snapshot, reader_position + len(piece)] = at, left
            while len(self._places) > SNAPSHOTS_MAX:
                self._places.popitem(last=False)
            partition.size += reader_position + len(piece) - at
            partition.position = reader_position
            partition.unaligned_records = piece

    def _piece(self, data: bytes, left: int) -> tuple[bytes, int, int]:
        """Return the bytes to forward, the number of bytes of `data` they replace, and how many of a batch remain."""
        if left or not data:
            # Return only the rest of a batch larger than a piece, so that the next piece starts with a batch.
            taken = data[:left] if left > 0 else data
            return taken, len(taken), left - len(taken) if left > 0 else left
        end = 0
        try:
            for header in record_batch.read_headers(data, allow_partial_tail=True):
                end = header.end
        except WireError:
            pass
        if end:
            return translate_log(data[:end], self._translate), end, 0
        size = 12 + int.from_bytes(data[8:12], signed=True) if len(data) >= 12 else 0
        # Not a batch: forward everything from here on unchanged (-1).
        return data, len(data), size - len(data) if size > len(data) else -1

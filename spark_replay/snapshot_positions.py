"""A snapshot that is handed on in pieces with other addresses in it, so that its bytes move.

FetchSnapshot asks for bytes from a position and is told how many there are in all. Where a batch was translated, what
the reader has is longer or shorter than what the controller gave: positions are mapped, and the size told is the
controller's plus the difference so far, so that the reader's count is right after every piece. A piece ends with a
whole batch unless it holds none; bytes of a batch that began in an earlier piece stay as they are.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mockraft.spark_replay.endpoints import Translate, translate_log
from mockraft.wire import record_batch
from mockraft.wire.errors import WireError

SNAPSHOTS_MAX = 1000
"""How many places in snapshots are remembered, the latest used; a reader further back than that begins anew."""


class SnapshotPositions:
    """Where readers of snapshots are: by (snapshot, position told) the controller's position."""

    def __init__(self, translate: Translate) -> None:
        self._translate = translate
        # (end offset, epoch, position as the reader counts) → (position as the controller counts, left of a batch)
        self._places: OrderedDict[tuple[int, int, int], tuple[int, int]] = OrderedDict()

    def translate_request(self, request: Any) -> bool:
        """Turn the positions of a FetchSnapshot request into the controller's, in place; whether any changed."""
        changed = False
        for partition in (partition for topic in request.topics for partition in topic.partitions):
            snapshot = partition.snapshot_id
            place = self._places.get((snapshot.end_offset, snapshot.epoch, partition.position))
            if place is not None and place[0] != partition.position:
                partition.position = place[0]
                changed = True
        return changed

    def translate_response(self, response: Any, asked: dict[int, int]) -> None:
        """Translate the pieces in place; `asked` has by partition the position at which the reader asked."""
        for partition in (partition for topic in response.topics for partition in topic.partitions):
            told = asked.get(partition.index)
            if partition.error_code or told is None:
                continue
            snapshot = partition.snapshot_id.end_offset, partition.snapshot_id.epoch
            _, left = self._places.get((*snapshot, told), (told, 0))
            piece, taken, left = self._piece(bytes(partition.unaligned_records or b""), left)
            at = partition.position + taken
            self._places[*snapshot, told + len(piece)] = at, left
            while len(self._places) > SNAPSHOTS_MAX:
                self._places.popitem(last=False)
            partition.size += told + len(piece) - at
            partition.position = told
            partition.unaligned_records = piece

    def _piece(self, data: bytes, left: int) -> tuple[bytes, int, int]:
        """What to hand on of `data`, how many bytes of `data` that is, and how many are left of a batch then."""
        if left or not data:
            # The rest of a batch that is larger than a piece, and nothing after it: the next piece starts with a batch.
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
        # Bytes that are no batch: from here on everything as it is (-1).
        return data, len(data), size - len(data) if size > len(data) else -1

"""Read records of pcap files in columns: only the walk from header to header is a loop.

Source: draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from mockraft.spark_replay import walks
from mockraft.spark_replay.formats.chunks import ChunkReader, Headers, Longs, Mask, PacketColumns, gather
from mockraft.spark_replay.formats.file_events import FileEvents, SplitDesyncError
from mockraft.spark_replay.formats.file_headers import RECORD_HEADER_BYTES, PcapHeader
from mockraft.spark_replay.formats.sync import RecordSync


class PcapRecords:
    """Iterate over the packets of a pcap file, or of a split of it, chunk by chunk."""

    def __init__(self, reader: ChunkReader, header: PcapHeader, events: FileEvents, first_number: int) -> None:
        self.reader, self.header, self.events = reader, header, events
        self.next_number = first_number
        fields = ("seconds", "fraction", "captured", "original")
        self.layout = np.dtype([(name, f"{header.order}u4") for name in fields])
        self.is_split_end = reader.end is not None and reader.end != reader.file.size

    def __iter__(self) -> Iterator[PacketColumns]:
        reader = self.reader
        while reader.size:
            starts = walks.records(reader.buffer, reader.size, self.header.order == ">")
            heads = gather(reader.buffer, starts, self.layout)
            ends = starts + RECORD_HEADER_BYTES + heads["captured"].astype(np.int64)
            bad = np.flatnonzero(~self._plausible(heads))
            if len(bad):
                packets, resumed = self._pass_damage(starts, heads, int(bad[0]))
                yield packets
                if not resumed:
                    return
                reader.advance(0)
                continue
            if reader.at_end:
                whole = int(np.searchsorted(ends, reader.size, side="right"))
                yield self._packets(starts[:whole], heads[:whole])
                left_at = int(ends[whole - 1]) if whole else 0
                if not self._finish(left_at):
                    return
                reader.advance(0)
                continue
            # A record is accepted once the next header is plausible, so the last one is postponed.
            certain = max(len(starts) - 1, 0)
            if certain:
                yield self._packets(starts[:certain], heads[:certain])
                reader.advance(int(starts[certain]))
            else:
                reader.advance(0, int(ends[0]) + RECORD_HEADER_BYTES if len(ends) else RECORD_HEADER_BYTES)

    def _plausible(self, heads: Headers) -> Mask:
        """Return which headers are not damaged. One odd value alone may be true: an empty packet, a rounded time."""
        odd = (heads["fraction"] >= 1_000_000_000 // self.header.fraction_ns).astype(np.int8)
        odd += heads["original"] == 0
        odd += heads["original"] < heads["captured"]
        odd += heads["seconds"] == 0
        plausible: Mask = (heads["captured"] <= self.header.captured_bytes_max) & (odd < 2)
        return plausible

    def _packets(self, starts: Longs, heads: Headers) -> PacketColumns:
        count = len(starts)
        numbers = np.arange(self.next_number, self.next_number + count) if self.next_number else np.zeros(count)
        self.next_number += count if self.next_number else 0
        return PacketColumns(
            self.reader.buffer,
            numbers.astype(np.int64),
            starts + self.reader.offset,
            heads["seconds"].astype(np.int64) * 1_000_000_000
            + heads["fraction"].astype(np.int64) * self.header.fraction_ns,
            np.full(count, self.header.link_type, np.int32),
            starts + RECORD_HEADER_BYTES,
            heads["captured"].astype(np.int64),
            heads["original"].astype(np.int64),
        )

    def _pass_damage(self, starts: Longs, heads: Headers, bad: int) -> tuple[PacketColumns, bool]:
        """Return the records before an impossible header, and whether reading continues behind it.

        The damage may be in that header or in the length of the record before it. Search for the next certain record
        from there on; if it lies inside the record before, drop that one too.
        """
        reader = self.reader
        problem = f"invalid record header: {' '.join(str(value) for value in heads[bad].item())}"
        bad_at = int(starts[bad]) + reader.offset
        if self.events.on_error == "fail":
            self.events.damage(bad_at, 0, problem)
        previous_at = int(starts[bad - 1]) + reader.offset if bad else bad_at
        resumed_at = self._sync(previous_at + 1)
        if bad and resumed_at is not None and resumed_at < bad_at:
            bad, bad_at = bad - 1, previous_at
        packets = self._packets(starts[:bad], heads[:bad])
        self._damage_until(bad_at, resumed_at, problem)
        return packets, self._resume(resumed_at)

    def _finish(self, left_at: int) -> bool:
        """Handle the rest behind the last whole record of a file or split; return True if reading continues."""
        reader, offset = self.reader, self.reader.offset + left_at
        left = reader.size - left_at
        if not self.is_split_end:
            if left or reader.is_cut:
                self.events.add("truncated", offset, left, "the file ends inside a record")
            return False
        if not left:
            return False
        data = reader.file.read_at(offset, RECORD_HEADER_BYTES)
        head = np.frombuffer(data, self.layout, 1)
        if self._plausible(head)[0]:
            next_at = offset + RECORD_HEADER_BYTES + int(head["captured"][0])
            following = reader.file.read_at(next_at, RECORD_HEADER_BYTES)
            if len(following) < RECORD_HEADER_BYTES or self._plausible(np.frombuffer(following, self.layout, 1))[0]:
                raise SplitDesyncError(f"a record crosses the split's end at {reader.end}", reader.file.path, offset)
        resumed_at = self._sync(offset + 1)
        self._damage_until(offset, resumed_at, "no record header follows this record")
        return self._resume(resumed_at)

    def _sync(self, offset: int) -> int | None:
        file = self.reader.file
        return None if file.compression else RecordSync(file, self.header).resume(offset, self.reader.end)

    def _damage_until(self, offset: int, resumed_at: int | None, problem: str) -> None:
        end = self.reader.end if resumed_at is None else resumed_at
        self.events.damage(offset, 0 if end is None else end - offset, problem)

    def _resume(self, resumed_at: int | None) -> bool:
        if resumed_at is None:
            return False
        self.reader.seek(resumed_at)
        return not self.reader.at_end

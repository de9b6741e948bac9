"""Read blocks of pcapng files in columns: sections and interfaces one by one, packets a chunk at once.

Enhanced, simple (no time: 0) and old packet blocks are packets; blocks without packets are skipped. Source:
draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from mockraft.spark_replay.formats.chunks import ChunkReader, Longs, Mask, PacketColumns
from mockraft.spark_replay.formats.file_events import CaptureError, FileEvents, SplitDesyncError
from mockraft.spark_replay.formats.file_headers import (
    CAPTURED_BYTES_MAX,
    SECTION_HEADER_BYTES,
    SECTION_MAGIC,
    SECTION_ORDERS,
    Interface,
    Order,
    read_interface,
)
from mockraft.spark_replay.formats.sync import BlockSync

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET, _SECRETS = 0x0A0D0D0A, 1, 2, 3, 6, 10
_TLS_KEY_LOG = 0x544C534B
# A block's type and length before its body, and its length behind it.
_FRAME_BYTES, _BODY_AT = 12, 8
_BLOCK_BYTES_MAX = CAPTURED_BYTES_MAX + 4096
Words = npt.NDArray[np.uint32]
Section = tuple[Order, tuple[Interface, ...]]


class _Walk(NamedTuple):
    """Consecutive blocks: the start of each and its declared length, in words; why the walk ended."""

    at: Longs
    sizes: Longs
    is_section: bool
    is_bad: bool


def walk_blocks(words: memoryview, at: int) -> _Walk:
    """Return the blocks from `at` on, up to a section header, an impossible block, or the end of the words."""
    offsets: list[int] = []
    sizes: list[int] = []
    add, add_size = offsets.append, sizes.append
    section = SECTION
    try:
        while True:
            size = words[at + 1]
            if words[at] == section or size < _FRAME_BYTES:
                break
            add(at)
            add_size(size)
            at += size >> 2
        is_section = bool(words[at] == section)
    except IndexError:
        return _Walk(np.array(offsets, np.int64), np.array(sizes, np.int64), False, False)
    return _Walk(np.array(offsets, np.int64), np.array(sizes, np.int64), is_section, not is_section)


def times_ns(ticks: npt.NDArray[np.uint64], interface: Interface) -> Longs:
    """Return nanoseconds since 1970 of an interface's ticks, rounded down; 0 if 64 bits cannot hold them."""
    power = interface.resolution & 0x7F
    is_binary = bool(interface.resolution & 0x80)
    per_s = (2 if is_binary else 10) ** power
    most = int(ticks.max()) if len(ticks) else 0
    if not is_binary and power <= 9 and most * 10 ** (9 - power) < 1 << 63:
        result = (ticks * np.uint64(10 ** (9 - power))).astype(np.int64)
    elif is_binary and power <= 33 and (most >> power) < 1 << 33:
        low = ticks & np.uint64(per_s - 1)
        fraction = low * np.uint64(1_000_000_000) >> np.uint64(power)
        result = (ticks >> np.uint64(power)).astype(np.int64) * 1_000_000_000 + fraction.astype(np.int64)
    elif not is_binary and 9 < power <= 28 and most // 10 ** (power - 9) < 1 << 63:
        result = (ticks // np.uint64(10 ** (power - 9))).astype(np.int64)
    else:
        exact = [value * 1_000_000_000 // per_s for value in ticks.tolist()]
        result = np.array([value if value < 1 << 63 else 0 for value in exact], np.int64)
    offset_ns = interface.offset_s * 1_000_000_000
    return result + offset_ns if abs(offset_ns) < 1 << 62 else result


class PcapngBlocks:
    """Iterate over the packets of a pcapng file, or of a split of it, chunk by chunk.

    `section` is the one that contains the start, `section_at_end` the one that must be current at the end (None: any).
    `interfaces_at` holds the file offsets of the descriptions of the `interfaces` seen, `key_logs` the secrets of TLS.
    """

    def __init__(
        self,
        reader: ChunkReader,
        section: Section,
        section_at_end: Section | None,
        events: FileEvents,
        first_number: int,
    ) -> None:
        self.reader, self.events = reader, events
        self.order = section[0]
        self.interfaces = list(section[1])
        self.interfaces_at = [-1] * len(self.interfaces)
        self.key_logs: list[bytes] = []
        self.section_at_end = section_at_end
        self.next_number = first_number
        self.at = 0
        self._views: dict[Order, tuple[Words, memoryview]] = {}
        self.is_split_end = reader.end is not None and reader.end != reader.file.size

    def __iter__(self) -> Iterator[PacketColumns]:
        reader = self.reader
        while self.at < reader.size:
            if self.reader.buffer[self.at : self.at + 4].tobytes() == SECTION_MAGIC:
                if not self._read_section():
                    return
                continue
            words, view = self._words()
            walk = walk_blocks(view, self.at >> 2)
            ends = walk.at + (walk.sizes >> 2)
            whole = int(np.searchsorted(ends, len(words), side="right"))
            at, sizes = walk.at[:whole], walk.sizes[:whole]
            wrong = np.flatnonzero((words[ends[:whole] - 1] != sizes) | (sizes & 3 != 0))
            too_long = whole < len(walk.at) and int(walk.sizes[whole]) > _BLOCK_BYTES_MAX
            is_bad = bool(len(wrong)) or too_long or walk.is_bad
            if len(wrong):
                at, sizes = at[: wrong[0]], sizes[: wrong[0]]
            yield self._packets(words, at, sizes)
            if len(at):
                self.at = 4 * (int(at[-1]) + (int(sizes[-1]) >> 2))
            if is_bad:
                if not self._pass_damage():
                    return
            elif walk.is_section:
                continue
            elif not reader.at_end:
                self._advance(int(walk.sizes[whole]) if whole < len(walk.at) else SECTION_HEADER_BYTES)
            elif not self._finish():
                return

    def _advance(self, needed: int) -> None:
        self.reader.advance(self.at, needed)
        self.at = 0
        self._views = {}

    def _words(self) -> tuple[Words, memoryview]:
        """Return the chunk as words of the section's byte order."""
        found = self._views.get(self.order)
        if found is None:
            words = self.reader.buffer[: self.reader.size & ~3].view(f"{self.order}u4").astype(np.uint32, copy=False)
            found = self._views[self.order] = words, words.data
        return found

    def _read_section(self) -> bool:
        """Skip a section header; return True if reading continues."""
        reader = self.reader
        if reader.size - self.at < SECTION_HEADER_BYTES and not reader.at_end:
            self._advance(SECTION_HEADER_BYTES)
        head = reader.buffer[self.at : min(reader.size, self.at + SECTION_HEADER_BYTES)].tobytes()
        if len(head) < SECTION_HEADER_BYTES:
            self._truncated()
            return False
        order = SECTION_ORDERS.get(head[8:12])
        size = int.from_bytes(head[4:8], "big" if order == ">" else "little")
        if order is None or size < SECTION_HEADER_BYTES or size % 4 or size > _BLOCK_BYTES_MAX:
            return self._pass_damage(f"invalid section header: {head[:12].hex(' ')}")
        if self.at + size > reader.size and not reader.at_end:
            self._advance(size)
        if self.at + size > reader.size:
            self._truncated()
            return False
        if reader.buffer[self.at + size - 4 : self.at + size].tobytes() != head[4:8]:
            return self._pass_damage("a section header's two lengths differ")
        self.order, self.interfaces, self.interfaces_at = order, [], []
        self.at += size
        if self.at == reader.size and not reader.at_end:
            self._advance(SECTION_HEADER_BYTES)
        return True

    def _packets(self, words: Words, at: Longs, sizes: Longs) -> PacketColumns:
        """Return the packets among whole blocks; add the interfaces that are described among them."""
        kinds = words[at]
        known = len(self.interfaces) + np.cumsum(kinds == INTERFACE)
        for which in np.flatnonzero(kinds == INTERFACE).tolist():
            start, size = int(at[which]), int(sizes[which]) >> 2
            body = self.reader.buffer[4 * start + _BODY_AT : 4 * (start + size - 1)].tobytes()
            try:
                self.interfaces.append(read_interface(self.order, body))
            except CaptureError as error:
                self.events.damage(self.reader.offset + 4 * start, 4 * size, error.problem)
                self.interfaces.append(Interface(-1, 0))
            self.interfaces_at.append(self.reader.offset + 4 * start)
        for which in np.flatnonzero((kinds == _SECRETS) & (sizes >= 20)).tolist():
            start, size = int(at[which]), int(sizes[which])
            if words[start + 2] == _TLS_KEY_LOG:
                length = min(int(words[start + 3]), size - 20)
                self.key_logs.append(self.reader.buffer[4 * start + 16 :][:length].tobytes())
        is_packet = (kinds == PACKET) | (kinds == SIMPLE_PACKET) | (kinds == OLD_PACKET)
        return self._columns(words, at[is_packet], sizes[is_packet], kinds[is_packet], known[is_packet])

    def _columns(self, words: Words, at: Longs, sizes: Longs, kinds: Words, known: Longs) -> PacketColumns:
        count = len(at)
        is_simple = kinds == SIMPLE_PACKET
        head_words = np.where(is_simple, 3, 7)
        bad = sizes < 4 * head_words + 4
        safe = np.where(bad, 0, at)
        # Gathered offsets may lie outside a block of another type or size: they are clipped to the last word.
        last = len(words) - 1

        def word(distance: int) -> Longs:
            found: Longs = words[np.minimum(safe + distance, last)].astype(np.int64)
            return found

        interface = word(2)
        interface = np.where(is_simple, 0, interface)
        old = kinds == OLD_PACKET
        if old.any():
            interface = np.where(old, interface & 0xFFFF if self.order == "<" else interface >> 16, interface)
        original = np.where(is_simple, word(2), word(6))
        captured = np.where(is_simple, original, word(5))
        start = 4 * (safe + head_words)
        body_size = sizes - 4 * head_words - 4
        bad |= interface >= known
        index = np.where(bad, 0, interface)
        if is_simple.any() and self.interfaces:
            snaplen = self.interfaces[0].snaplen or CAPTURED_BYTES_MAX
            captured = np.where(is_simple, np.minimum(np.minimum(captured, snaplen), body_size), captured)
        bad |= captured > body_size
        ts_ns = np.zeros(count, np.int64)
        ticks = word(3).astype(np.uint64) << np.uint64(32) | word(4).astype(np.uint64)
        link_type = np.zeros(count, np.int32)
        order = np.flatnonzero(~bad)[np.argsort(index[~bad], kind="stable")]
        for chosen in np.split(order, np.flatnonzero(np.diff(index[order])) + 1) if len(order) else ():
            number = int(index[chosen[0]])
            ts_ns[chosen] = times_ns(ticks[chosen], self.interfaces[number])
            link_type[chosen] = self.interfaces[number].link_type
        ts_ns[is_simple] = 0
        numbers = np.arange(self.next_number, self.next_number + count) if self.next_number else np.zeros(count)
        self.next_number += count if self.next_number else 0
        packets = PacketColumns(
            self.reader.buffer,
            numbers.astype(np.int64),
            self.reader.offset + 4 * at,
            ts_ns,
            link_type,
            start,
            captured,
            original,
        )
        return self._readable(packets, bad, sizes) if bad.any() else packets

    def _readable(self, packets: PacketColumns, bad: Mask, sizes: Longs) -> PacketColumns:
        first = int(np.argmax(bad))
        self.events.damage(
            int(packets.file_offset[first]), int(sizes[bad].sum()), f"{int(bad.sum())} packet blocks cannot be read"
        )
        return packets.where(~bad)

    def _pass_damage(self, problem: str = "no block") -> bool:
        """Continue behind bytes that are no block; return True if there are more."""
        reader, offset = self.reader, self.reader.offset + self.at
        if self.events.on_error == "fail":
            self.events.damage(offset, 0, problem)
        resumed_at = None
        if not reader.file.compression:
            resumed_at = BlockSync(reader.file, self.order).resume(offset + 4, reader.end)
        end = reader.end if resumed_at is None else resumed_at
        self.events.damage(offset, 0 if end is None else end - offset, problem)
        if resumed_at is None:
            return False
        reader.seek(resumed_at)
        self.at = 0
        self._advance(0)
        return True

    def _finish(self) -> bool:
        """Handle the rest behind the last whole block of a file or split; return True if reading continues."""
        reader, offset = self.reader, self.reader.offset + self.at
        left = reader.size - self.at
        if not self.is_split_end:
            if left or reader.is_cut:
                self._truncated()
            return False
        if not left:
            if self.section_at_end not in (None, (self.order, tuple(self.interfaces))):
                raise SplitDesyncError("sections or interfaces begin within the splits", reader.file.path, offset)
            return False
        if left < 8 or BlockSync(reader.file, self.order).follow(offset) is not None:
            raise SplitDesyncError(f"a block crosses the split's end at {reader.end}", reader.file.path, offset)
        return self._pass_damage()

    def _truncated(self) -> None:
        left = self.reader.size - self.at
        self.events.add("truncated", self.reader.offset + self.at, left, "the file ends inside a block")

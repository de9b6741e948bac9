"""The packets of a capture file of either format."""

from __future__ import annotations

from typing import NamedTuple

from mockraft.spark_replay.formats.capture_files import CaptureFile
from mockraft.spark_replay.formats.chunks import ChunkReader
from mockraft.spark_replay.formats.file_events import CaptureError, FileEvents
from mockraft.spark_replay.formats.file_headers import (
    PCAP_HEADER_BYTES,
    SECTION_MAGIC,
    Interface,
    Order,
    PcapHeader,
    read_pcap_header,
)
from mockraft.spark_replay.formats.pcap_records import PcapRecords
from mockraft.spark_replay.formats.pcapng_blocks import PcapngBlocks


class Split(NamedTuple):
    """The packets of a file whose records start at or behind `start` and before `end` (None: end of file).

    `first_packet_no` is 0 if unknown. For pcapng, `order` and `interfaces` are those of the section that contains
    `start`, and `section_at_end` those that the next split was planned with (None: known to be right). `link_type`
    overrides the file's, `decompressed_bytes_max` the usual limit of a decompressed file.
    """

    path: str
    start: int = 0
    end: int | None = None
    first_packet_no: int = 1
    order: Order = "<"
    interfaces: tuple[Interface, ...] = ()
    section_at_end: tuple[Order, tuple[Interface, ...]] | None = None
    link_type: int | None = None
    decompressed_bytes_max: int | None = None


def read_header(file: CaptureFile) -> tuple[PcapHeader | None, bytes]:
    """Return the pcap header (None: a pcapng file) and the bytes read. Raises CaptureError for any other file."""
    start = bytearray(PCAP_HEADER_BYTES)
    if file.compression is None:
        file.seek(0)
    try:
        data = bytes(start[: file.read_into(memoryview(start))])
        header = read_pcap_header(data)
    except EOFError:
        raise CaptureError("the file ends inside its header", file.path) from None
    except CaptureError as error:
        raise CaptureError(error.problem, file.path, error.offset) from None
    if header is None and data[:4] != SECTION_MAGIC:
        found = f"it starts with {data[:4].hex(' ')}" if data else "it is empty"
        raise CaptureError(f"not a pcap or pcapng file: {found}", file.path)
    return header, data


def open_packets(file: CaptureFile, split: Split, events: FileEvents, chunk_bytes: int) -> PcapRecords | PcapngBlocks:
    """Return the packets of a file or of one split of it, in chunks."""
    header, data = read_header(file)
    start = split.start if header is None else max(split.start, PCAP_HEADER_BYTES)
    reader = ChunkReader(file, start, split.end, chunk_bytes)
    reader.begin(data if header is None else b"")
    if header is not None:
        return PcapRecords(reader, header, events, split.first_packet_no)
    section = split.order, split.interfaces
    return PcapngBlocks(reader, section, split.section_at_end, events, split.first_packet_no)

"""The packets of a capture file of either format."""

from __future__ import annotations

from collections.abc import Iterator

from mockraft.spark_replay.formats.capture_errors import CaptureError
from mockraft.spark_replay.formats.capture_files import CaptureFile
from mockraft.spark_replay.formats.chunks import ChunkReader, PacketColumns
from mockraft.spark_replay.formats.file_events import FileEvents
from mockraft.spark_replay.formats.file_headers import PCAP_HEADER_BYTES, SECTION_MAGIC, PcapHeader, read_pcap_header
from mockraft.spark_replay.formats.pcap_records import PcapRecords
from mockraft.spark_replay.formats.splits import Split


def read_header(file: CaptureFile) -> PcapHeader | None:
    """The header of a pcap file, None for a pcapng file (read up to behind those bytes); CaptureError for others."""
    start = bytearray(PCAP_HEADER_BYTES)
    try:
        data = bytes(start[:0])
        count = file.read_into(memoryview(start))
        data = bytes(start[:count])
        header = read_pcap_header(data)
    except EOFError:
        header = None
    except CaptureError as error:
        raise CaptureError(error.problem, file.path, error.offset) from None
    if header is None and data[:4] != SECTION_MAGIC:
        found = f"it starts with {data[:4].hex(' ')}" if data else "it is empty"
        raise CaptureError(f"not a pcap or pcapng file: {found}", file.path)
    return header


def open_packets(file: CaptureFile, split: Split, events: FileEvents, chunk_bytes: int) -> Iterator[PacketColumns]:
    """The packets of a file or of one split of it, in chunks."""
    header = read_header(file)
    assert header is not None
    reader = ChunkReader(file, max(split.start, PCAP_HEADER_BYTES), split.end, chunk_bytes)
    if split.start:
        reader.seek(split.start)
    yield from PcapRecords(reader, header, events, split.first_packet_no)

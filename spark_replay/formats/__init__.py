"""Capture files to TCP segments, in columns.

Reads pcap and pcapng, plain or compressed (gz, zst, bz2, lz4), whole or one split of a file. The steps:

    capture_files   bytes of a local or remote file, decompressed
    chunks          a window over the file; packets of one chunk as columns
    pcap_records, pcapng_blocks   find the packets of a chunk; only the walk from header to header is a loop
    links, layers, tunnels   link, IP and TCP headers of all packets of a chunk at once, with numpy
    fragments       IP packets that came in several
    segments        the result: `read_segments`, a batch of TCP segments for each chunk

`splits` cuts a large file into parts that can be read in parallel. The formats have no sync marks, so `sync` finds the
first certain record behind an offset, and a reader raises SplitDesyncError unless it ends exactly where the next split
begins: by induction the parts together are exactly the whole file, or there is an error.

Damage is a `CaptureError` with file and offset, or with `on_error` quarantine or skip a row of `schemas.FILE_EVENTS`;
reading then continues at the next certain record. The chunk size never changes the segments.
"""

from mockraft.spark_replay.formats.file_events import CaptureError, SplitDesyncError
from mockraft.spark_replay.formats.packet_sources import Split
from mockraft.spark_replay.formats.segments import Flow, Segments, packets, read_segments
from mockraft.spark_replay.formats.splits import packet_numbers, plan_splits

__all__ = [
    "CaptureError",
    "Flow",
    "Segments",
    "Split",
    "SplitDesyncError",
    "packet_numbers",
    "packets",
    "plan_splits",
    "read_segments",
]

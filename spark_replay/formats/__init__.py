"""Capture files to TCP segments, in columns: pcap and pcapng, whole, compressed or one split of them."""

from mockraft.spark_replay.formats.capture_errors import CaptureError, SplitDesyncError
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

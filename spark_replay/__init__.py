"""Captured Kafka traffic: decode it into tables, and replay it against another controller.

The packages form a pipeline, each with Arrow record batches in and out (`schemas` defines the tables):

    formats     capture files (pcap, pcapng, compressed or split)  -> TCP segments
    streams     segments -> runs of contiguous bytes -> frames, each request paired with its response
    decoding    frames -> messages and exchanges, checked by writing every message again
    regression  exchanges -> requests sent to a live controller, and its responses compared with the captured ones
    report      any of these tables -> one HTML file
    spark       the same pipeline as Spark data sources and DataFrame functions

Everything but `spark` runs on one machine in bounded memory, whatever the size of the capture, and the rows depend on
neither chunk size, splits nor partitions. `recording` and `recording_proxy` write captures; they need neither numpy nor
pyarrow, and `replay` of exchanges in memory does not either.

Captured bytes are untrusted: damage and bytes that are not Kafka become rows of `FILE_EVENTS` and `CONN_EVENTS` or a
`CaptureError` with file and offset. The package talks to controllers over TCP only and never imports the server.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.spark_replay.frames import read_frames

__all__ = ["read_frames"]


def __getattr__(name: str) -> object:
    """Import public names on first use: a replay in memory needs neither numpy nor pyarrow."""
    if name == "read_frames":
        from mockraft.spark_replay.frames import read_frames

        return read_frames
    raise AttributeError(name)

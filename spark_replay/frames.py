"""Kafka frames of capture files, as Arrow record batches, on one machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from os import PathLike, fspath
from typing import Any

import pyarrow as pa
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.formats.file_events import OnError
from mockraft.spark_replay.streams.runs import make_runs
from mockraft.spark_replay.streams.stitch import Stitcher

_FIRST_BYTES = 1 << 16


def read_frames(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    ports: Collection[int] = (),
    *,
    chunk_bytes: int = 8 << 20,
    frame_bytes_max: int = 100 << 20,
    gap_policy: str = "resync",
    snaplen_policy: str = "keep",
    on_error: OnError = "fail",
    decompressed_bytes_max: int | None = None,
    conn_events: list[pa.RecordBatch] | None = None,
    file_events: list[dict[str, Any]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The frames of capture files, with the columns of `schemas.FRAMES`.

    Several files are read in the order of their first packets' times, whatever the order they are named in: connections
    go on from one to the next. Memory does not grow with the size of the files. The order of frames is that in which
    their partners were found.

    Args:
        paths: pcap or pcapng files.
        ports: the servers'. Without any, a connection is Kafka if its client's first bytes are a believable request.
        chunk_bytes: how much of a file is worked on at once; the frames do not depend on it.
        frame_bytes_max: what says it is longer is no frame.
        gap_policy: after a gap `resync` or `drop` the rest of that direction.
        snaplen_policy: frames that a snaplen cut short: `keep` their rows (without bytes) or `drop` them.
        on_error: what is no capture, or is damaged, is a CaptureError (`fail`), or a row of `file_events`, and reading
            goes on behind the damage (`quarantine`, `skip`).
        decompressed_bytes_max: what a compressed file may unpack to. Default: 200 times its size, and 1 GiB at least.
        conn_events: gets what happened to connections, as batches of `schemas.CONN_EVENTS`.
        file_events: gets what of the files is in no table, as rows of `schemas.FILE_EVENTS`.

    `formats.CaptureError`, with file and offset.
    """
    files = [fspath(path) for path in ([paths] if isinstance(paths, str | PathLike) else paths)]
    if len(files) > 1:
        files.sort(key=_first_time_ns)
    stitcher = Stitcher(frame_bytes_max, gap_policy, snaplen_policy)
    for file in files:
        for segments in read_segments(
            file,
            ports=ports,
            chunk_bytes=chunk_bytes,
            events=file_events,
            on_error=on_error,
            decompressed_bytes_max=decompressed_bytes_max,
        ):
            yield from stitcher.receive(make_runs(segments, ports))
            _take_events(stitcher, conn_events)
    yield from stitcher.finish()
    _take_events(stitcher, conn_events)


def _first_time_ns(file: str) -> int:
    """When the first TCP segment of a file was captured; 0 where there is none."""
    for segments in read_segments(file, chunk_bytes=_FIRST_BYTES, on_error="skip"):
        return int(segments.ts_ns[0])
    return 0


def _take_events(stitcher: Stitcher, into: list[pa.RecordBatch] | None) -> None:
    events = stitcher.take_events()
    if into is not None and events.num_rows:
        into.append(events)

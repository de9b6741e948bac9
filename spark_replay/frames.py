"""Kafka frames of capture files, as Arrow record batches, on one machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from os import PathLike, fspath
from typing import Any

import pyarrow as pa
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.streams.runs import make_runs
from mockraft.spark_replay.streams.stitch import Stitcher


def read_frames(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    ports: Collection[int] = (),
    *,
    chunk_bytes: int = 8 << 20,
    frame_bytes_max: int = 100 << 20,
    gap_policy: str = "resync",
    snaplen_policy: str = "keep",
    conn_events: list[pa.RecordBatch] | None = None,
    file_events: list[dict[str, Any]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The frames of capture files (one, or several in the order of their times), with the columns of `schemas.FRAMES`.

    Memory does not grow with the size of the files. The order of frames is that in which their partners were found.

    Args:
        paths: pcap or pcapng files.
        ports: the servers'. Without any, a connection is Kafka if its client's first bytes are a believable request.
        chunk_bytes: how much of a file is worked on at once; the frames do not depend on it.
        frame_bytes_max: what says it is longer is no frame.
        gap_policy: after a gap `resync` or `drop` the rest of that direction.
        snaplen_policy: frames that a snaplen cut short: `keep` their rows (without bytes) or `drop` them.
        conn_events: gets what happened to connections, as batches of `schemas.CONN_EVENTS`.
        file_events: gets what of the files is in no table, as rows of `schemas.FILE_EVENTS`.

    `formats.CaptureError` for what is no capture file, or not one to its end.
    """
    files = [paths] if isinstance(paths, str | PathLike) else list(paths)
    stitcher = Stitcher(frame_bytes_max, gap_policy, snaplen_policy)
    for file in files:
        for segments in read_segments(fspath(file), ports=ports, chunk_bytes=chunk_bytes, events=file_events):
            yield from stitcher.receive(make_runs(segments, ports))
            _take_events(stitcher, conn_events)
    yield from stitcher.finish()
    _take_events(stitcher, conn_events)


def _take_events(stitcher: Stitcher, into: list[pa.RecordBatch] | None) -> None:
    events = stitcher.take_events()
    if into is not None and events.num_rows:
        into.append(events)

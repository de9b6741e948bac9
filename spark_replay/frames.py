"""Kafka frames of capture files, as Arrow record batches, on one machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from numbers import Integral
from os import PathLike, fspath
from typing import get_args

import pyarrow as pa
from mockraft.spark_replay.arrow_columns import at_least_one
from mockraft.spark_replay.capture_paths import NoCaptureError, capture_files
from mockraft.spark_replay.formats import read_segments
from mockraft.spark_replay.formats.capture_files import CaptureFile
from mockraft.spark_replay.formats.file_events import CaptureError, FileEvent, FileEvents, OnError
from mockraft.spark_replay.formats.packet_sources import Split, open_packets
from mockraft.spark_replay.key_logs import KeyLog, read_key_log
from mockraft.spark_replay.schemas import FRAMES
from mockraft.spark_replay.streams.reassembly import Reassembler
from mockraft.spark_replay.streams.runs import make_runs

_FIRST_BYTES = 1 << 16
PORT_MAX = 65_535


def read_frames(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    ports: Collection[int] = (),
    *,
    chunk_bytes: int = 8 << 20,
    frame_bytes_max: int = 100 << 20,
    on_error: OnError = "fail",
    decompressed_bytes_max: int | None = None,
    key_log: str | PathLike[str] | KeyLog | None = None,
    conn_events: list[pa.RecordBatch] | None = None,
    file_events: list[FileEvent] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the frames of capture files, with the columns of `schemas.FRAMES`.

    Several files are read in the order of their first packets' times, whatever the order of `paths`; connections
    continue from one file to the next. Memory does not grow with the size of the files. Frames come in the order in
    which their partners were found. Without any frame there is one batch without rows.

    Args:
        paths: pcap or pcapng files, folders or globs of them, local or in an object store (`s3://…`).
        ports: the servers'. Without any, a connection is Kafka if its client's first bytes are a plausible request.
        chunk_bytes: bytes of a file processed at once; the frames do not depend on it.
        frame_bytes_max: longest frame; a larger length is an error in the stream.
        on_error: for a file that is not a capture or is damaged, raise CaptureError (`fail`), or add a row of
            `file_events` and continue behind the damage (`quarantine`, `skip`).
        decompressed_bytes_max: limit for a decompressed file. Default: 200 times its size, at least 1 GiB.
        key_log: a file with secrets of TLS connections (SSLKEYLOGFILE); those in pcapng files are used without it.
        conn_events: receives events of connections, as batches of `schemas.CONN_EVENTS`.
        file_events: receives what is in no table, as rows of `schemas.FILE_EVENTS`.

    Raises formats.CaptureError, with file and offset, and ValueError for another value of an option, or a
    key log without secrets.
    """
    _check(ports, on_error, chunk_bytes=chunk_bytes, frame_bytes_max=frame_bytes_max)
    given = [paths] if isinstance(paths, str | PathLike) else paths
    files = [file for path in given for file in _files_of(fspath(path))]
    if len(files) > 1:
        files.sort(key=partial(_first_time_ns, decompressed_bytes_max=decompressed_bytes_max))
    secrets = read_key_log(fspath(key_log)) if isinstance(key_log, str | PathLike) else key_log or KeyLog()
    reassembler = Reassembler(frame_bytes_max, key_log=secrets)

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            for segments in read_segments(
                Split(file, decompressed_bytes_max=decompressed_bytes_max),
                ports=ports,
                chunk_bytes=chunk_bytes,
                events=file_events,
                on_error=on_error,
            ):
                yield from reassembler.receive(make_runs(segments, ports))
                _take_events(reassembler, conn_events)
        yield from reassembler.finish()
        _take_events(reassembler, conn_events)

    yield from at_least_one(batches(), FRAMES)


def _files_of(path: str) -> list[str]:
    """Return the captures at a path; itself if there are none, so that opening it raises the error."""
    with suppress(NoCaptureError):
        return [file.path for file in capture_files(path)] or [path]
    return [path]


def _check(ports: Collection[int], on_error: str, **sizes: int) -> None:
    """Raise ValueError for a wrong option, by the rules of the Spark source's."""
    if wrong := [port for port in ports if not isinstance(port, Integral) or not 0 < port <= PORT_MAX]:
        raise ValueError(f"ports: {wrong[0]!r} is not a port, a number from 1 to {PORT_MAX}")
    if on_error not in get_args(OnError):
        raise ValueError(f"on_error: {on_error!r} is not {', '.join(get_args(OnError))}")
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}: {size!r} is not a number of bytes from 1 on")


def _first_time_ns(file: str, decompressed_bytes_max: int | None) -> int:
    """Return the capture time of a file's first packet; 0 if there is none."""
    with suppress(CaptureError), CaptureFile(file, decompressed_bytes_max) as opened:
        for packets in open_packets(opened, Split(file), FileEvents(file, None, "skip"), _FIRST_BYTES):
            if len(packets.ts_ns):
                return int(packets.ts_ns[0])
    return 0


def _take_events(reassembler: Reassembler, into: list[pa.RecordBatch] | None) -> None:
    events = reassembler.take_events()
    if into is not None and events.num_rows:
        into.append(events)

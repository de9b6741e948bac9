"""Read and decode captures for a report, and fetch the bytes of the few frames that it shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from mockraft.spark_replay import schemas
from mockraft.spark_replay.decoding import Opener, decode_batches, decode_record_batches
from mockraft.spark_replay.formats import CaptureError
from mockraft.spark_replay.formats.file_events import FileEvent
from mockraft.spark_replay.frames import read_frames
from mockraft.spark_replay.key_logs import KeyLogError
from mockraft.spark_replay.report.columns import integers
from mockraft.spark_replay.report.sources import Captures, Folder, OnRows, SourceError, Tables, rows_where
from mockraft.spark_replay.report.traffic import Traffic
from mockraft.spark_replay.storage import Location

FrameKey = tuple[int, int, int, bool]
"""The key of a frame: conn_id, incarnation, frame_no, is_response."""
Frames = dict[FrameKey, bytes]

_KEY = ["conn_id", "incarnation", "frame_no", "is_response"]
_KEYS_AT_ONCE = 50


def traffic_of_captures(captures: Captures, wanted: Collection[FrameKey], on_rows: OnRows) -> tuple[Traffic, Frames]:
    """Read, decode and sum up captures; return the bytes of `wanted` frames and of examples of unreadable ones too.

    Raises SourceError for a file that is not a capture or cannot be read, unless their `on_error` has it counted.
    """
    traffic = Traffic()
    frames: Frames = {}
    for path in captures.paths:
        try:
            frames |= _read(captures, path, wanted, traffic, on_rows)
        except (CaptureError, KeyLogError) as error:
            raise SourceError(str(error)) from None
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror or error}") from None
    return traffic, frames


def frames_of_tables(folder: Folder, wanted: Collection[FrameKey]) -> Frames:
    """Return the bytes of these frames from the table `frames`; none if there is no such table."""
    if Tables(folder).path("frames") is None:
        return {}
    frames: Frames = {}
    keys = sorted(wanted)
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[start : start + _KEYS_AT_ONCE]
        one_of = (
            ds.field("conn_id").isin([key[0] for key in some])
            & ds.field("frame_no").isin([key[2] for key in some])
            & ds.field("is_response").isin({key[3] for key in some})
        )
        rows = rows_where(folder, "frames", one_of, [*_KEY, "frame"], 100 * _KEYS_AT_ONCE)
        frames |= {frame_key(row): row["frame"] for row in rows if row["frame"] is not None}
    return {key: frames[key] for key in keys if key in frames}


def frame_key(row: dict[str, Any]) -> FrameKey:
    """Return the frame key of a row of FRAMES or MESSAGES."""
    return row["conn_id"], row["incarnation"], row["frame_no"], row["is_response"]


def _read(
    captures: Captures, path: str | PathLike[str], wanted: Collection[FrameKey], traffic: Traffic, on_rows: OnRows
) -> Frames:
    frames: Frames = {}
    connections = {key[0] for key in wanted}
    conn_events: list[pa.RecordBatch] = []
    file_events: list[FileEvent] = []
    opener = Opener()
    done, name = 0, Location.parse(path).name
    for batch in read_frames(
        path,
        captures.ports,
        on_error=captures.on_error,
        key_log=captures.key_log,
        conn_events=conn_events,
        file_events=file_events,
    ):
        at = 0
        for messages in decode_batches([batch]):
            part = batch.slice(at, messages.num_rows)
            at += messages.num_rows
            before = {frame_key(row) for row in traffic.examples.values()}
            traffic.add_messages(messages)
            shown = {frame_key(row) for row in traffic.examples.values()} - before
            if shown or connections.intersection(integers(part, "conn_id").tolist()):
                frames |= _picked(part, shown.union(wanted))
        for forwarded in opener.messages(batch):
            traffic.add_forwarded(forwarded)
        for records in decode_record_batches([batch], of_log_only=True):
            traffic.events.log.add(records)
        done += batch.num_rows
        on_rows(name, done, None)
        _drain(traffic, conn_events)
    _drain(traffic, conn_events)
    if file_events:
        traffic.add_file_events(pa.RecordBatch.from_pylist(file_events, schema=schemas.FILE_EVENTS))
    return frames


def _drain(traffic: Traffic, conn_events: list[pa.RecordBatch]) -> None:
    for batch in conn_events:
        traffic.events.add_conn_events(batch)
    conn_events.clear()


def _picked(frames: pa.RecordBatch, wanted: Iterable[FrameKey]) -> Frames:
    keys = set(wanted)
    columns = [frames.column(name).to_pylist() for name in _KEY]
    found = {}
    for at, key in enumerate(zip(*columns, strict=True)):
        if key in keys and (frame := frames.column("frame")[at].as_py()) is not None:
            found[key] = frame
    return found

"""Read one partition of the sources: a split of a file as Arrow batches, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.formats import (
    CaptureError,
    Segments,
    Split,
    SplitDesyncError,
    packets,
    plan_splits,
    read_segments,
)
from mockraft.spark_replay.formats.file_events import DAMAGE_KINDS, FileEvent
from mockraft.spark_replay.schemas import FILE_EVENTS, FRAMES, PACKETS, RUNS
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.listing import StoredFile
from mockraft.spark_replay.streams.reassembly import Reassembler
from mockraft.spark_replay.streams.runs import make_runs

SCHEMAS = {"runs": RUNS, "packets": PACKETS, "frames": FRAMES, "file_events": FILE_EVENTS}
"""The columns of each level."""

TASKS_MIN = 512
"""Small files share tasks only if there are more tasks than these: a cluster has enough work for each core."""
OPEN_BYTES = 4 << 20
"""The cost of opening a file, in bytes read: as much as Spark assumes (spark.sql.files.openCostInBytes)."""
PLANNED_AT_ONCE = 32


class UnsortedRunsError(RuntimeError):
    """Raised if runs come in another order than Spark was asked for: their connections would lose frames silently."""


_BYTES = {"packets": "payload", "frames": "frame"}
_ENDS = {"runs": ("client", "server"), "packets": ("src", "dst"), "frames": ("client",)}
# Fields of `Segments` that are not arrays with one entry per segment.
_OF_THE_CHUNK = ("buffer", "file", "flows")


class SplitTask(NamedTuple):
    """Splits that one task reads, one after the other, and the bytes of files in them."""

    splits: list[Split]
    size: int


def plan_tasks(files: Iterable[StoredFile], options: SourceOptions) -> list[SplitTask]:
    """Return the splits of `files`, in order: a task for each large one, and few tasks for many small ones.

    Files in an object store are opened `PLANNED_AT_ONCE` at a time, and small files are not opened. Raises CaptureError
    as `splits_of` does.
    """
    listed = list(files)

    def plan(file: StoredFile) -> list[Split]:
        return splits_of(file.path, options, file.size)

    if any(file.size > options.split_bytes and Location.parse(file.path).is_remote for file in listed):
        with ThreadPoolExecutor(PLANNED_AT_ONCE) as pool:
            planned = list(pool.map(plan, listed))
    else:
        planned = [plan(file) for file in listed]
    sizes = [
        ((file.size if split.end is None else split.end) - split.start, split)
        for file, splits in zip(listed, planned, strict=True)
        for split in splits
    ]
    limit = min(options.split_bytes, sum(size + OPEN_BYTES for size, _ in sizes) // TASKS_MIN)
    tasks: list[SplitTask] = []
    left = 0
    for size, split in sizes:
        if size + OPEN_BYTES > left:
            tasks.append(SplitTask([], 0))
            left = limit
        tasks[-1].splits.append(split)
        tasks[-1] = tasks[-1]._replace(size=tasks[-1].size + size)
        left -= size + OPEN_BYTES
    return tasks


def splits_of(path: str, options: SourceOptions, size: int | None = None) -> list[Split]:
    """Return the splits of `path`; one for level frames, for compressed files, and for those that are small enough.

    A file whose `size` is known to be small is not opened. For another file that is not a capture, raises CaptureError
    if `on_error` is fail; else returns one split without rows.
    """
    if options.level == "frames":
        return [Split(path)]
    if size is not None and size <= options.split_bytes:
        return [Split(path, first_packet_no=1 if options.split_index == "exact" else 0)]
    try:
        return plan_splits(path, options.split_bytes, options.split_index)
    except CaptureError:
        if options.on_error == "fail":
            raise
        return [Split(path)]


def read_splits(splits: Iterable[Split], options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Yield the batches of splits, one after the other, as `read_partition` does."""
    for split in splits:
        yield from read_partition(split, options)


def read_partition(split: Split, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one split at `options.level`, without rows that options reject.

    Raises CaptureError, with file and offset, for the first damage, if `on_error` is fail; SplitDesyncError for a split
    of a wrong plan.
    """
    try:
        for batch in _LEVELS[options.level](split, options):
            kept = kept_rows(batch, options)
            if kept.num_rows:
                yield kept
    except SplitDesyncError as error:
        problem = f"{error.problem}: its splits cannot be found without reading the whole file, use splitIndex=exact"
        raise SplitDesyncError(problem, error.file, error.offset) from None


def kept_rows(batch: pa.RecordBatch, options: SourceOptions) -> pa.RecordBatch:
    """Return the rows accepted by the options' clients and APIs, without bytes if not wanted."""
    masks = []
    if options.clients and options.level in _ENDS:
        clients = pa.array(options.clients, pa.string())
        masks.append(reduce(pc.or_, [pc.is_in(batch.column(end), value_set=clients) for end in _ENDS[options.level]]))
    if options.api_keys:
        masks.append(pc.is_in(batch.column("api_key"), value_set=pa.array(options.api_keys, pa.int16())))
    if masks:
        batch = batch.filter(reduce(pc.and_, masks))
    if not options.include_bytes and (name := _BYTES.get(options.level)):
        empty = pa.nulls(batch.num_rows, pa.binary())
        batch = batch.set_column(batch.schema.get_field_index(name), name, empty)
    return batch


def checked_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of runs whose rows are sorted by connection and time. Raises UnsortedRunsError."""
    last = pa.RecordBatch.from_pydict({"conn_id": [-(1 << 63)], "first_ts_ns": [-(1 << 63)]})
    for batch in batches:
        connections, times = (
            np.concatenate([last[name].to_numpy()[-1:], batch[name].to_numpy()]) for name in ("conn_id", "first_ts_ns")
        )
        later = connections[1:] > connections[:-1]
        if not np.all(later | ((connections[1:] == connections[:-1]) & (times[1:] >= times[:-1]))):
            raise UnsortedRunsError(
                "this engine ignores sortWithinPartitions before mapInArrow, as Sail does, and connections cannot be "
                "followed on it; the source kafka_frames and read_frames can be used"
            )
        if batch.num_rows:
            last = batch
        yield batch


def new_reassembler(options: SourceOptions, *, sorted_by_connection: bool = False) -> Reassembler:
    """Return a reassembler with the options' policies."""
    return Reassembler(
        options.max_frame_bytes,
        options.gap_policy,
        options.snaplen_policy,
        sorted_by_connection=sorted_by_connection,
    )


def _read_runs(split: Split, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    return (make_runs(segments, options.ports) for segments in _segments(split, options))


def _read_frames(split: Split, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    reassembler = new_reassembler(options)
    for runs in _read_runs(split, options):
        yield from reassembler.receive(runs)
        reassembler.take_events()
    yield from reassembler.finish()


def _read_file_events(split: Split, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    rows: list[FileEvent] = []
    for _each in _segments(split, options, rows):
        pass
    if options.on_error == "skip":
        rows = [row for row in rows if row["kind"] not in DAMAGE_KINDS]
    yield pa.RecordBatch.from_pylist(rows, schema=FILE_EVENTS)


_LEVELS: dict[str, Callable[[Split, SourceOptions], Iterator[pa.RecordBatch]]] = {
    "runs": _read_runs,
    "packets": lambda *read: map(packets, _segments(*read)),
    "frames": _read_frames,
    "file_events": _read_file_events,
}


def _segments(split: Split, options: SourceOptions, events: list[FileEvent] | None = None) -> Iterator[Segments]:
    """Yield the split's segments, without those that options rule out."""
    found = read_segments(
        split,
        ports=options.ports,
        chunk_bytes=options.chunk_bytes,
        events=events,
        link_type=options.linktype,
        time_from_ns=options.time_from_ns,
        time_to_ns=options.time_to_ns,
        on_error=options.on_error,
    )
    hosts = set(options.clients)
    return (_of_hosts(segments, hosts) for segments in found) if hosts else found


def _of_hosts(segments: Segments, hosts: set[str]) -> Segments:
    """Return the segments that have one of `hosts` at one of their ends."""
    wanted = np.array([flow.src in hosts or flow.dst in hosts for flow in segments.flows], bool)
    if wanted.all():
        return segments
    kept = wanted[segments.flow]
    arrays = [field.name for field in fields(segments) if field.name not in _OF_THE_CHUNK]
    return replace(segments, **{name: getattr(segments, name)[kept] for name in arrays})

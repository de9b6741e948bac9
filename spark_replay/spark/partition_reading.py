"""Read one partition of the sources: a split of a file as Arrow batches, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import reduce
from typing import Any, NamedTuple

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
from mockraft.spark_replay.key_logs import KeyLog
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
_PORTS = ("client_port", "server_port", "sport", "dport")
_HOSTS = ("client", "server", "src", "dst")
_COMPARE = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
# Fields of `Segments` that are not arrays with one entry per segment.
_OF_THE_CHUNK = ("buffer", "file", "flows")


class Predicate(NamedTuple):
    """A condition on one column: `operator` is =, <, <=, >, >= or in (then `value` is a tuple)."""

    column: str
    operator: str
    value: Any

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Return a mask of the rows of `batch` that it accepts; null if the column is null."""
        column = batch.column(self.column)
        if self.operator == "in":
            return pc.is_in(column, value_set=pa.array(self.value, column.type))
        return _COMPARE[self.operator](column, pa.scalar(self.value, column.type))

    @property
    def values(self) -> tuple[Any, ...] | None:
        """Return all values that it accepts; None if they cannot be listed."""
        return {"=": (self.value,), "in": self.value}.get(self.operator)


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


def read_splits(
    splits: Iterable[Split], options: SourceOptions, predicates: Sequence[Predicate] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of splits, one after the other, as `read_partition` does."""
    for split in splits:
        yield from read_partition(split, options, predicates)


def read_partition(
    split: Split, options: SourceOptions, predicates: Sequence[Predicate] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one split at `options.level`, without rows that options or a predicate reject.

    Raises CaptureError, with file and offset, for the first damage, if `on_error` is fail; SplitDesyncError for a split
    of a wrong plan.
    """
    if any(each.column == "file" and each.values and split.path not in each.values for each in predicates):
        return
    try:
        for batch in _LEVELS[options.level](split, options, predicates):
            kept = kept_rows(batch, options, predicates)
            if kept.num_rows:
                yield kept
    except SplitDesyncError as error:
        problem = f"{error.problem}: its splits cannot be found without reading the whole file, use splitIndex=exact"
        raise SplitDesyncError(problem, error.file, error.offset) from None


def kept_rows(batch: pa.RecordBatch, options: SourceOptions, predicates: Sequence[Predicate] = ()) -> pa.RecordBatch:
    """Return the rows accepted by the options' clients and APIs and all predicates, without bytes if not wanted."""
    masks = [predicate.mask(batch) for predicate in predicates]
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
    """Return a reassembler with the options."""
    key_log = options.key_log or KeyLog()
    return Reassembler(options.max_frame_bytes, sorted_by_connection=sorted_by_connection, key_log=key_log)


def _read_packets(split: Split, options: SourceOptions, predicates: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    return (packets(segments) for segments in _segments(split, options, predicates))


def _read_runs(split: Split, options: SourceOptions, predicates: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    return (make_runs(segments, options.ports) for segments in _segments(split, options, predicates))


def _read_frames(split: Split, options: SourceOptions, predicates: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    reassembler = new_reassembler(options)
    for runs in _read_runs(split, options, predicates):
        yield from reassembler.receive(runs)
        reassembler.take_events()
    yield from reassembler.finish()


def _read_file_events(split: Split, options: SourceOptions, _: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    rows: list[FileEvent] = []
    for _each in _segments(split, options, (), rows):
        pass
    if options.on_error == "skip":
        rows = [row for row in rows if row["kind"] not in DAMAGE_KINDS]
    yield pa.RecordBatch.from_pylist(rows, schema=FILE_EVENTS)


_LEVELS: dict[str, Callable[[Split, SourceOptions, Sequence[Predicate]], Iterator[pa.RecordBatch]]] = {
    "runs": _read_runs,
    "packets": _read_packets,
    "frames": _read_frames,
    "file_events": _read_file_events,
}


def _segments(
    split: Split, options: SourceOptions, predicates: Sequence[Predicate], events: list[FileEvent] | None = None
) -> Iterator[Segments]:
    """Yield the split's segments, without those that options or predicates rule out."""
    hosts = [set(each) for each in (options.clients, _narrowest(_HOSTS, predicates)) if each]
    found = read_segments(
        split._replace(link_type=options.linktype),
        ports=options.ports or _narrowest(_PORTS, predicates),
        chunk_bytes=options.chunk_bytes,
        events=events,
        times_ns=(
            _strictest([options.time_from_ns, *_bounds({">": 1, ">=": 0, "=": 0}, predicates)], max),
            _strictest([options.time_to_ns, *_bounds({"<": 0, "<=": 1, "=": 1}, predicates)], min),
        ),
        on_error=options.on_error,
    )
    return (_of_hosts(segments, hosts) for segments in found) if hosts else found


def _narrowest(columns: Sequence[str], predicates: Sequence[Predicate]) -> tuple[Any, ...]:
    """Return the shortest list of values accepted by a predicate for any of `columns`; None if there is none."""
    lists = [predicate.values for predicate in predicates if predicate.column in columns and predicate.values]
    return min(lists, key=len, default=())


def _bounds(added: dict[str, int], predicates: Sequence[Predicate]) -> list[int]:
    """Return a bound on packet times, like timeFrom or timeTo, from the predicates with some operators."""
    return [
        each.value + added[each.operator] for each in predicates if each.column == "ts_ns" and each.operator in added
    ]


def _strictest(bounds: Sequence[int | None], choose: Callable[[list[int]], int]) -> int | None:
    given = [bound for bound in bounds if bound is not None]
    return choose(given) if given else None


def _of_hosts(segments: Segments, hosts: Sequence[set[str]]) -> Segments:
    """Return the segments that have one of each of `hosts` at one of their ends."""
    wanted = np.array([all({flow.src, flow.dst} & some for some in hosts) for flow in segments.flows], bool)
    if wanted.all():
        return segments
    kept = wanted[segments.flow]
    arrays = [field.name for field in fields(segments) if field.name not in _OF_THE_CHUNK]
    return replace(segments, **{name: getattr(segments, name)[kept] for name in arrays})

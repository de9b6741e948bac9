"""What one partition of the sources gives: a split of a file as Arrow batches, without Spark.

`plan` cuts a file into splits, `read_partition` reads one of them at a level; both depend on nothing but their
arguments and the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from mockraft.spark_replay.formats.file_events import DAMAGE_KINDS
from mockraft.spark_replay.schemas import FILE_EVENTS, FRAMES, PACKETS, RUNS
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.streams.runs import make_runs
from mockraft.spark_replay.streams.stitch import Stitcher

SCHEMAS = {"runs": RUNS, "packets": PACKETS, "frames": FRAMES, "file_events": FILE_EVENTS}
"""The columns of each level."""

_BYTES = {"packets": "payload", "frames": "frame"}
_ENDS = {"runs": ("client", "server"), "packets": ("src", "dst"), "frames": ("client",)}
_PORTS = ("client_port", "server_port", "sport", "dport")
_HOSTS = ("client", "server", "src", "dst")
_COMPARE = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
# What of `Segments` is not an array with an entry a segment.
_OF_THE_CHUNK = ("buffer", "file", "flows")


class Predicate(NamedTuple):
    """A condition on one column: `operator` is =, <, <=, >, >= or in (then `value` is a tuple)."""

    column: str
    operator: str
    value: Any

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Which rows of `batch` it holds for; null where the column is."""
        column = batch.column(self.column)
        if self.operator == "in":
            return pc.is_in(column, value_set=pa.array(self.value, column.type))
        return _COMPARE[self.operator](column, pa.scalar(self.value, column.type))

    @property
    def values(self) -> tuple[Any, ...] | None:
        """All values that the column may have; None where they cannot be listed."""
        return {"=": (self.value,), "in": self.value}.get(self.operator)


def plan(path: str, options: SourceOptions) -> list[Split]:
    """The splits that `path` is read in; at level frames, and where it is compressed, one.

    CaptureError for what is no capture, if `on_error` is fail; else one split, which has no rows.
    """
    if options.level == "frames":
        return [Split(path)]
    try:
        return plan_splits(path, options.split_bytes, options.split_index)
    except CaptureError:
        if options.on_error == "fail":
            raise
        return [Split(path)]


def read_partition(
    split: Split, options: SourceOptions, predicates: Sequence[Predicate] = ()
) -> Iterator[pa.RecordBatch]:
    """The batches of one split at `options.level`, rows that options or a predicate refuse left out.

    CaptureError, with file and offset, for the first damage, if `on_error` is fail; SplitDesyncError for a split of a
    wrong plan.
    """
    if _names_another_file(split, predicates):
        return
    try:
        for batch in _LEVELS[options.level](split, options, predicates):
            kept = kept_rows(batch, options, predicates)
            if kept.num_rows:
                yield kept
    except SplitDesyncError as error:
        problem = f"{error.problem}: its splits cannot be found from within, read it with splitIndex=exact"
        raise SplitDesyncError(problem, error.file, error.offset) from None


def kept_rows(batch: pa.RecordBatch, options: SourceOptions, predicates: Sequence[Predicate] = ()) -> pa.RecordBatch:
    """The rows that the options' clients and APIs and all predicates allow, without bytes where none are wanted."""
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


def new_stitcher(options: SourceOptions, *, sorted_by_connection: bool = False) -> Stitcher:
    """A stitcher with the options' policies."""
    return Stitcher(
        options.max_frame_bytes,
        options.gap_policy,
        options.snaplen_policy,
        sorted_by_connection=sorted_by_connection,
    )


def _read_packets(split: Split, options: SourceOptions, predicates: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    return (packets(segments) for segments in _segments(split, options, predicates))


def _read_runs(split: Split, options: SourceOptions, predicates: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    return (make_runs(segments, options.ports) for segments in _segments(split, options, predicates))


def _read_frames(split: Split, options: SourceOptions, predicates: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    stitcher = new_stitcher(options)
    for runs in _read_runs(split, options, predicates):
        yield from stitcher.receive(runs)
        stitcher.take_events()
    yield from stitcher.finish()


def _read_file_events(split: Split, options: SourceOptions, _: Sequence[Predicate]) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
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
    split: Split,
    options: SourceOptions,
    predicates: Sequence[Predicate],
    events: list[dict[str, Any]] | None = None,
) -> Iterator[Segments]:
    """The split's segments without those that neither the options nor the predicates can want."""
    hosts = [set(each) for each in (options.clients, _narrowest(_HOSTS, predicates)) if each]
    found = read_segments(
        split,
        ports=options.ports or _narrowest(_PORTS, predicates),
        chunk_bytes=options.chunk_bytes,
        events=events,
        link_type=options.linktype,
        time_from_ns=_strictest([options.time_from_ns, *_bounds({">": 1, ">=": 0, "=": 0}, predicates)], max),
        time_to_ns=_strictest([options.time_to_ns, *_bounds({"<": 0, "<=": 1, "=": 1}, predicates)], min),
        on_error=options.on_error,
    )
    return (_of_hosts(segments, hosts) for segments in found) if hosts else found


def _narrowest(columns: Sequence[str], predicates: Sequence[Predicate]) -> tuple[Any, ...]:
    """The shortest list of values that a predicate gives for any of `columns`; none: anything may be wanted."""
    lists = [predicate.values for predicate in predicates if predicate.column in columns and predicate.values]
    return min(lists, key=len, default=())


def _bounds(added: dict[str, int], predicates: Sequence[Predicate]) -> list[int]:
    """What the predicates of some operators say of a packet's time, as a bound like timeFrom or timeTo."""
    return [
        each.value + added[each.operator] for each in predicates if each.column == "ts_ns" and each.operator in added
    ]


def _strictest(bounds: Sequence[int | None], choose: Callable[[list[int]], int]) -> int | None:
    given = [bound for bound in bounds if bound is not None]
    return choose(given) if given else None


def _of_hosts(segments: Segments, hosts: Sequence[set[str]]) -> Segments:
    """The segments that have one of each of `hosts` at one of their ends."""
    wanted = np.array([all({flow.src, flow.dst} & some for some in hosts) for flow in segments.flows], bool)
    if wanted.all():
        return segments
    kept = wanted[segments.flow]
    arrays = [field.name for field in fields(segments) if field.name not in _OF_THE_CHUNK]
    return replace(segments, **{name: getattr(segments, name)[kept] for name in arrays})


def _names_another_file(split: Split, predicates: Sequence[Predicate]) -> bool:
    return any(each.column == "file" and each.values and split.path not in each.values for each in predicates)

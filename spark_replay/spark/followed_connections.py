"""Connections followed from one micro-batch of a stream to the next, in the stream's state.

    runs of new files -> packed by bucket -> step (a bucket's state and runs in, frames or events out) -> unpacked

A bucket is a share of the connections, by `conn_id`. Its state is a `Reassembler`: half-read frames, requests without a
response so far, bytes that wait for missing ones. Spark keeps it in the checkpoint with the offsets of the files that
made it, so that a batch that is repeated after a restart finds the state before it and makes the same rows. Runs and
rows pass as Arrow IPC in one binary column, because Spark's grouped functions take pandas.

The state is bounded: beyond its limits the longest idle connections of the bucket are ended, with an `evicted` event,
and their requests are rows without a response.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.schemas import CONN_EVENTS, FRAMES, RUNS
from mockraft.spark_replay.spark.data_source import to_spark_schema
from mockraft.spark_replay.spark.options import SourceOptions
from mockraft.spark_replay.spark.partition_reading import kept_rows
from mockraft.spark_replay.streams import saved_state
from mockraft.spark_replay.streams.reassembly import Limits, Reassembler
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

Table = Literal["frames", "conn_events"]

BUCKETS = 16
"""Default number of buckets: as many tasks follow connections at a time, and no more."""

STATE_BYTES_MAX = 256 << 20
CONNECTIONS_MAX = 100_000
_INCARNATIONS_KEPT = 1 << 20
"""Limits of the state of all buckets together."""

_PACKED = pa.schema([("bucket", pa.int32()), ("packed", pa.binary())])
_ORDER = [("first_ts_ns", "ascending"), ("file", "ascending"), ("file_offset", "ascending")]
# Order within one packet: SYN, then data, then FIN or RST.
_ORDER += [("syn", "descending"), ("fin", "ascending"), ("rst", "ascending")]
_SCHEMAS: dict[Table, pa.Schema] = {"frames": FRAMES, "conn_events": CONN_EVENTS}


class OtherStateError(RuntimeError):
    """Raised for a checkpoint whose open connections were saved with other settings or by another mockraft."""


class _Saved(NamedTuple):
    """The state of a bucket, and what must be the same when it is restored, which is checked first."""

    version: str
    buckets: int
    policies: tuple[object, ...]
    options: SourceOptions
    reassembler: bytes


def follow(runs: DataFrame, table: Table, options: SourceOptions, buckets: int) -> DataFrame:
    """Return the frames, or events of connections, of a streaming DataFrame of runs."""
    packed = runs.mapInArrow(partial(_pack, buckets), to_spark_schema(_PACKED))
    made = packed.groupBy("bucket").applyInPandasWithState(
        partial(_step, table, options, buckets), "packed binary", "saved binary", "append", "NoTimeout"
    )
    return made.mapInArrow(partial(_unpack, _SCHEMAS[table]), to_spark_schema(_SCHEMAS[table]))


def waiting(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Return the frames that connections still open in a checkpoint would make if the capture ended here."""
    saved = spark.read.format("statestore").load(checkpoint).select(F.col("value.groupState.saved").alias("packed"))
    return saved.mapInArrow(_finished, to_spark_schema(FRAMES))


def _pack(buckets: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the runs of each bucket in each batch as one value."""
    for batch in batches:
        of_row = batch.column("conn_id").to_numpy().view(np.uint64) % np.uint64(buckets)
        for bucket in np.unique(of_row).tolist():
            some = batch.filter(pa.array(of_row == bucket))
            yield pa.record_batch([pa.array([bucket], pa.int32()), pa.array([_bytes(some)])], schema=_PACKED)


def _step(
    table: Table,
    options: SourceOptions,
    buckets: int,
    key: tuple[int],
    packed: Iterator[pd.DataFrame],
    state: GroupState,
) -> Iterator[pd.DataFrame]:
    """Continue the connections of one bucket with the runs of a micro-batch."""
    import pandas as pd

    runs = pa.Table.from_batches([batch for part in packed for each in part["packed"] for batch in _batches(each)])
    reassembler = _restored(state.get[0], options, buckets) if state.exists else _new(options, buckets)
    made: list[pa.RecordBatch] = []
    for chunk in _chunks(runs.cast(RUNS).sort_by(_ORDER)):
        made += reassembler.receive(chunk)
    made += reassembler.drain()
    events = [reassembler.take_events()]
    saved = _saved(reassembler, options, buckets)
    while len(saved) > STATE_BYTES_MAX // buckets and reassembler.open_connections:
        # Half of them at a time: saving is what takes long.
        for _ in range((reassembler.open_connections + 1) // 2):
            reassembler.evict(f"the open connections take more than {STATE_BYTES_MAX} bytes in all buckets")
        made += reassembler.drain()
        events.append(reassembler.take_events())
        saved = _saved(reassembler, options, buckets)
    state.update((saved,))
    rows = [kept_rows(each, options) for each in (made if table == "frames" else events)]
    yield pd.DataFrame({"packed": [_bytes(each) for each in rows if each.num_rows]})


def _new(options: SourceOptions, buckets: int) -> Reassembler:
    return Reassembler(
        options.max_frame_bytes,
        limits=Limits(
            connections_max=max(1, CONNECTIONS_MAX // buckets),
            waiting_bytes_max=STATE_BYTES_MAX // 2 // buckets,
            incarnations_kept=max(2, _INCARNATIONS_KEPT // buckets),
        ),
    )


def _saved(reassembler: Reassembler, options: SourceOptions, buckets: int) -> bytes:
    state = saved_state.dumps(reassembler)
    return saved_state.dumps(tuple(_Saved(metadata.version("mockraft"), buckets, _policies(options), options, state)))


def _restored(data: bytes, options: SourceOptions, buckets: int) -> Reassembler:
    found = _Saved(*saved_state.loads(data))
    given = metadata.version("mockraft"), buckets, _policies(options)
    for name, had, has in zip(_Saved._fields, found, given, strict=False):
        if had != has:
            raise OtherStateError(
                f"the checkpoint's open connections were saved with {name} {had}, and this stream has {has}: "
                "use the same, or a new checkpointLocation"
            )
    reassembler: Reassembler = saved_state.loads(found.reassembler)
    return reassembler


def _policies(options: SourceOptions) -> tuple[object, ...]:
    return options.ports, options.max_frame_bytes


def _chunks(runs: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the runs of each chunk of a file, in order."""
    runs = runs.combine_chunks()
    times, files = runs["first_ts_ns"].to_numpy(), np.asarray(runs["file"].to_pylist(), dtype=object)
    cuts = np.flatnonzero((times[1:] != times[:-1]) | (files[1:] != files[:-1])) + 1
    for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(times)], strict=True):
        yield from runs.slice(start, end - start).to_batches()


def _unpack(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for packed in batch.column("packed"):
            for each in _batches(packed.as_py()):
                yield each.cast(schema)


def _finished(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what ending all connections of the saved buckets makes; the state itself stays as it is."""
    for batch in batches:
        for packed in batch.column("packed"):
            saved = _Saved(*saved_state.loads(packed.as_py()))
            reassembler: Reassembler = saved_state.loads(saved.reassembler)
            yield from (kept_rows(each, saved.options) for each in reassembler.finish())


def _bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _batches(data: bytes) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        yield from reader

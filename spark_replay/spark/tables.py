"""Captured traffic as DataFrames with the columns of `schemas`; nothing is collected in the driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from mockraft.spark_replay.decoding import (
    RECORD_BYTES_MAX,
    decode_batches,
    decode_forwarded_batches,
    decode_record_batches,
    decode_typed_batches,
    typed_schema,
)
from mockraft.spark_replay.formats.file_events import DAMAGE_KINDS
from mockraft.spark_replay.schemas import CONN_EVENTS, EXCHANGES, FILE_EVENTS, FORWARDED, FRAMES, MESSAGES, RECORDS
from mockraft.spark_replay.spark.data_source import register, stream_reader
from mockraft.spark_replay.spark.followed_connections import BUCKETS, follow, waiting
from mockraft.spark_replay.spark.followed_connections import Table as Followed
from mockraft.spark_replay.spark.options import OptionError, SourceOptions
from mockraft.spark_replay.spark.partition_reading import checked_order, kept_rows, new_reassembler
from mockraft.spark_replay.spark.worker_table import WorkerTable, stored_table
from mockraft.wire import api_keys
from mockraft.wire.errors import WireError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

if TYPE_CHECKING:
    from pyspark.sql import Column

BODIES = ("variant", "json", "none")

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
# Options applied to frames, not passed to the source.
_OF_FRAMES = ("apikeys", "includebytes", "level", "pushfilters")
_OF_A_CONNECTION = ("conn_id", "incarnation", "client", "client_port", "server", "server_port")


def frames(spark: SparkSession, path: Paths, *, partitions: int | None = None, **options: object) -> DataFrame:
    """Return frames of captures (FRAMES), with connections followed over any number of files.

    `partitions` is the number of shuffle partitions (default: spark.sql.shuffle.partitions). Options are the source's,
    camelCase. Raises OptionError.
    """
    return frames_table(spark, path, partitions=partitions, **options).dataframe()


def frames_table(spark: SparkSession, path: Paths, *, partitions: int | None = None, **options: object) -> WorkerTable:
    """Return the table of `frames`, to be written as Parquet by the workers."""
    given = _checked(options)
    return WorkerTable(_runs(spark, path, partitions, given), partial(_frames_of_runs, _read(given)), FRAMES)


def stored_frames_table(spark: SparkSession, folder: str | PathLike[str]) -> WorkerTable:
    """Return a stored table of `frames_table`, to be decoded by the workers that read it.

    Its strings are dictionaries, as in the files: most rows are not of an API that is asked for.
    """
    words = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([field.with_type(words) if field.type == pa.string() else field for field in FRAMES])
    return stored_table(spark, folder, schema)


def stream_frames(spark: SparkSession, path: Paths, *, buckets: int = BUCKETS, **options: object) -> DataFrame:
    """Return frames of growing folders as a stream (FRAMES), with connections followed from file to file.

    The frames are those of `frames` on the same files, each once it is known whether it has a partner; those that still
    wait are in the checkpoint, see `waiting_frames`. Open connections are kept in `buckets`, whose number belongs to
    the checkpoint. Raises OptionError, PySparkTooOldError.
    """
    return _followed(spark, path, "frames", buckets, options)


def stream_conn_events(spark: SparkSession, path: Paths, *, buckets: int = BUCKETS, **options: object) -> DataFrame:
    """Return events of connections (CONN_EVENTS) as a stream; arguments as for `stream_frames`."""
    return _followed(spark, path, "conn_events", buckets, options)


def waiting_frames(spark: SparkSession, checkpoint: str | PathLike[str]) -> DataFrame:
    """Return the frames (FRAMES) that wait for a partner in the checkpoint of a query of `stream_frames`.

    Together with the query's rows they are the frames of all files read so far.
    """
    return waiting(spark, fspath(checkpoint))


def conn_events(spark: SparkSession, path: Paths, *, partitions: int | None = None, **options: object) -> DataFrame:
    """Return events of connections (CONN_EVENTS); arguments as for `frames`, apiKeys has no effect."""
    return conn_events_table(spark, path, partitions=partitions, **options).dataframe()


def conn_events_table(
    spark: SparkSession, path: Paths, *, partitions: int | None = None, **options: object
) -> WorkerTable:
    """Return the table of `conn_events`, to be written as Parquet by the workers."""
    given = _checked(options)
    return WorkerTable(_runs(spark, path, partitions, given), partial(_events_of_runs, _read(given)), CONN_EVENTS)


def file_events(spark: SparkSession, path: Paths, **options: object) -> DataFrame:
    """Return parts of files that are in no table (FILE_EVENTS): a row for each file, kind and detail, and damaged
    place.

    Counts are of the whole file, however it was split. With onError=fail damage is an error here too.
    """
    found = _load(spark, path, "file_events", _checked(options))
    place = F.when(F.col("kind").isin(*DAMAGE_KINDS), F.col("file_offset"))
    counted = found.groupBy("file", "kind", "detail", place.alias("place")).agg(
        F.min("file_offset").alias("file_offset"), F.sum("count").alias("count")
    )
    return counted.select(*FILE_EVENTS.names)


def messages(of: DataFrame, body: str = "variant", *, show_secrets: bool = False) -> DataFrame:
    """Return each frame decoded (MESSAGES): `body` is a VARIANT, JSON text (`json`) or left out (`none`: null, faster).

    Secrets are `[hidden]` unless `show_secrets`. Every row is kept: `decode_status` shows what could not be decoded,
    `roundtrip` whether writing gives the same bytes. Raises OptionError for another `body`.
    """
    if body not in BODIES:
        raise OptionError(f"body: {body!r} is not {', '.join(BODIES)}")
    decoded = messages_table(of, with_bodies=body != "none", show_secrets=show_secrets).dataframe()
    return decoded.withColumn("body", F.try_parse_json("body")) if body == "variant" else decoded


def messages_table(of: DataFrame | WorkerTable, *, with_bodies: bool = True, show_secrets: bool = False) -> WorkerTable:
    """Return the table of `messages` with bodies as JSON or none, to be written as Parquet by the workers.

    For a `frames_table`, the workers that make the frames also decode them, without passing through the JVM.
    """
    decode = partial(_decoded, "json" if with_bodies else "none", show_secrets)
    if isinstance(of, WorkerTable):
        return of.then(decode, MESSAGES)
    return WorkerTable(of.select(*FRAMES.names), decode, MESSAGES)


def typed_messages(of: DataFrame, api: str, *, show_secrets: bool = False) -> DataFrame:
    """Return the frames of one API ("Fetch") decoded to typed columns: `decoding.typed_schema` lists them.

    Fields of a body are fields of `request` or `response`, so Spark reads and filters them without parsing JSON.
    Raises OptionError for an unknown API.
    """
    return typed_messages_table(of, api, show_secrets=show_secrets).dataframe()


def typed_messages_table(of: DataFrame | WorkerTable, api: str, *, show_secrets: bool = False) -> WorkerTable:
    """Return the table of `typed_messages`, to be written as Parquet by the workers."""
    try:
        schema = typed_schema(api)
    except WireError as error:
        raise OptionError(str(error)) from None
    decode = partial(_typed, api, show_secrets)
    if isinstance(of, WorkerTable):
        return of.then(decode, schema)
    return WorkerTable(of.select(*FRAMES.names), decode, schema)


def records(
    of: DataFrame, *, topics: Iterable[str] = (), show_secrets: bool = False, record_bytes_max: int | None = None
) -> DataFrame:
    """Return the records in Produce, Fetch and FetchSnapshot (RECORDS), one row for each frame that carried one.

    `topics` are names or ids of the topics to read (none: all). `record_bytes_max` is the limit for a decompressed
    batch (default: 64 MiB); beyond it the batch is an error row.
    """
    return records_table(of, topics=topics, show_secrets=show_secrets, record_bytes_max=record_bytes_max).dataframe()


def records_table(
    of: DataFrame | WorkerTable,
    *,
    topics: Iterable[str] = (),
    show_secrets: bool = False,
    record_bytes_max: int | None = None,
) -> WorkerTable:
    """Return the table of `records`, to be written as Parquet by the workers."""
    read = partial(_records, tuple(topics), show_secrets, record_bytes_max)
    if isinstance(of, WorkerTable):
        return of.then(read, RECORDS)
    # The pieces of a snapshot are joined by connection; the others are read where they are.
    whole = of.where(F.col("api_key").isin(api_keys.PRODUCE, api_keys.FETCH)).select(*FRAMES.names)
    return WorkerTable(whole.union(_by_connection(of, api_keys.FETCH_SNAPSHOT)), read, RECORDS)


def forwarded(of: DataFrame, *, show_secrets: bool = False) -> DataFrame:
    """Return the requests and responses that Envelopes carry, decoded (FORWARDED), with JSON bodies."""
    return forwarded_table(of, show_secrets=show_secrets).dataframe()


def forwarded_table(of: DataFrame | WorkerTable, *, show_secrets: bool = False) -> WorkerTable:
    """Return the table of `forwarded`, to be written as Parquet by the workers."""
    read = partial(_forwarded, show_secrets)
    if isinstance(of, WorkerTable):
        return of.then(read, FORWARDED)
    return WorkerTable(_by_connection(of, api_keys.ENVELOPE), read, FORWARDED)


def _by_connection(frames: DataFrame, api_key: int) -> DataFrame:
    """Return the frames of an API with each connection in one partition, in order."""
    of_api = frames.where(F.col("api_key") == api_key).select(*FRAMES.names)
    return of_api.repartition("conn_id").sortWithinPartitions("conn_id", "incarnation", "is_response", "frame_no")


def exchanges(of: DataFrame, *, unanswered: bool = False) -> DataFrame:
    """Return requests with their responses (EXCHANGES) of a DataFrame of frames, one row for each pair.

    With `unanswered` also requests without a response, with null response columns.
    """
    request, response = ~F.col("is_response"), F.col("is_response")

    def first(condition: Column, column: str) -> Column:
        return F.first(F.when(condition, F.col(column)), ignorenulls=True)

    # Key of an exchange: a response has its request's number, a request its own.
    number = F.when(response, F.col("request_frame_no")).otherwise(F.col("frame_no"))
    wanted = F.col("pair_status") == "paired"
    if unanswered:
        wanted = wanted | request
    sides = (
        of.where(wanted)
        .groupBy("conn_id", "incarnation", number.alias("request_frame_no"))
        .agg(
            *[
                F.first(name).alias(name)
                for name in (*_OF_A_CONNECTION[2:], "api_key", "api_version", "correlation_id")
            ],
            first(request, "client_id").alias("client_id"),
            first(response, "frame_no").alias("response_frame_no"),
            first(request, "ts_last_ns").alias("request_ts_ns"),
            first(response, "ts_last_ns").alias("response_ts_ns"),
            first(response, "latency_ns").alias("latency_ns"),
            first(request, "frame").alias("request"),
            first(response, "frame").alias("response"),
        )
    )
    return sides.select(*EXCHANGES.names)


def _decoded(
    body: Literal["json", "none"], show_secrets: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return decode_batches(batches, body, show_secrets=show_secrets)


def _typed(api: str, show_secrets: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return decode_typed_batches(batches, api, show_secrets=show_secrets)


def _records(
    topics: tuple[str, ...], show_secrets: bool, record_bytes_max: int | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    limit = record_bytes_max or RECORD_BYTES_MAX
    return decode_record_batches(batches, topics=topics, show_secrets=show_secrets, record_bytes_max=limit)


def _forwarded(show_secrets: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return decode_forwarded_batches(batches, show_secrets=show_secrets)


def _frames_of_runs(options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    reassembler = new_reassembler(options, sorted_by_connection=True)
    for runs in checked_order(batches):
        for batch in reassembler.receive(runs):
            yield kept_rows(batch, options)
        reassembler.take_events()
    for batch in reassembler.finish():
        yield kept_rows(batch, options)


def _events_of_runs(options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    of_connections = replace(options, api_keys=(), include_bytes=True)
    reassembler = new_reassembler(of_connections, sorted_by_connection=True)
    for runs in checked_order(batches):
        for _ in reassembler.receive(runs):
            pass
        yield kept_rows(reassembler.take_events(), of_connections)
    for _ in reassembler.finish():
        pass
    yield kept_rows(reassembler.take_events(), of_connections)


def _followed(spark: SparkSession, path: Paths, table: Followed, buckets: int, options: dict[str, object]) -> DataFrame:
    given = _checked(options)
    runs = _load(spark, path, "runs", given, is_stream=True)
    of_table = _read(given) if table == "frames" else replace(_read(given), api_keys=(), include_bytes=True)
    return follow(runs, table, of_table, buckets)


def _runs(spark: SparkSession, path: Paths, partitions: int | None, options: dict[str, str]) -> DataFrame:
    """Return runs with each connection in one partition, in the order required by `Reassembler`."""
    parts = ("conn_id",) if partitions is None else (partitions, "conn_id")
    # Order within one packet: SYN, then data, then FIN or RST.
    marks = (F.desc("syn"), F.asc("fin"), F.asc("rst"))
    runs = _load(spark, path, "runs", options).repartition(*parts)
    return runs.sortWithinPartitions("conn_id", "first_ts_ns", "file", "file_offset", *marks)


def _load(
    spark: SparkSession, path: Paths, level: str, options: dict[str, str], *, is_stream: bool = False
) -> DataFrame:
    register(spark)
    if is_stream:
        stream_reader()  # an error here, not in the query
    given = {name: value for name, value in options.items() if name.lower() not in _OF_FRAMES}
    reader = spark.readStream if is_stream else spark.read
    source = reader.format("kafka_pcap").options(**given).option("level", level)
    if is_stream:
        # DataStreamReader.load takes one path.
        return source.option("paths", json.dumps(_paths(path))).load()
    return source.load(_paths(path))


def _paths(path: Paths) -> list[str]:
    return [fspath(path)] if isinstance(path, str | PathLike) else [fspath(each) for each in path]


def _checked(options: dict[str, object]) -> dict[str, str]:
    """Return the options as Spark has them. Raises OptionError."""
    texts = {name: _text(value) for name, value in options.items() if value is not None}
    _read(texts)
    return texts


def _read(options: dict[str, str]) -> SourceOptions:
    return SourceOptions.read({"level": "frames"} | options, levels=("frames",))


def _text(value: object) -> str:
    """Return an option's value as Spark has it: sequences joined by commas, booleans in lower case."""
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Captured traffic as DataFrames with the columns of `schemas`; nothing is collected in the driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from os import PathLike, fspath

import pyarrow as pa
from mockraft.spark_replay.decoding import (
    RECORD_BYTES_MAX,
    decode_batches,
    decode_forwarded_batches,
    decode_record_batches,
    decode_typed_batches,
    pair_exchanges_table,
    typed_schema,
)
from mockraft.spark_replay.decoding.hidden_frames import hide_secrets
from mockraft.spark_replay.formats.file_events import DAMAGE_KINDS
from mockraft.spark_replay.schemas import CONN_EVENTS, EXCHANGES, FILE_EVENTS, FORWARDED, FRAMES, MESSAGES, RECORDS
from mockraft.spark_replay.spark.data_source import register, stream_reader, to_spark_schema
from mockraft.spark_replay.spark.followed_connections import BUCKETS, follow, waiting
from mockraft.spark_replay.spark.followed_connections import Table as Followed
from mockraft.spark_replay.spark.options import OptionError, SourceOptions
from mockraft.spark_replay.spark.partition_reading import checked_order, kept_rows, new_reassembler
from mockraft.wire import api_keys
from mockraft.wire.errors import WireError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

BODIES = ("variant", "json", "none")

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
# Options applied to frames, not passed to the source.
_OF_FRAMES = ("apikeys", "includebytes", "keylog", "level", "pushfilters")


def frames(spark: SparkSession, path: Paths, *, partitions: int | None = None, **options: object) -> DataFrame:
    """Return frames of captures (FRAMES), with connections followed over any number of files.

    `partitions` is the number of shuffle partitions (default: spark.sql.shuffle.partitions). Options are the source's,
    camelCase. Raises OptionError.
    """
    given = _checked(options)
    make = partial(_frames_of_runs, _read(given))
    return _runs(spark, path, partitions, given).mapInArrow(make, to_spark_schema(FRAMES))


def without_secrets(frames: DataFrame) -> DataFrame:
    """Return frames with asterisks in place of secrets; sizes stay, and the frames can be decoded."""
    return frames.select(*FRAMES.names).mapInArrow(hide_secrets, to_spark_schema(FRAMES))


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
    given = _checked(options)
    make = partial(_events_of_runs, _read(given))
    return _runs(spark, path, partitions, given).mapInArrow(make, to_spark_schema(CONN_EVENTS))


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
    decode = partial(decode_batches, body="none" if body == "none" else "json", show_secrets=show_secrets)
    decoded = of.select(*FRAMES.names).mapInArrow(decode, to_spark_schema(MESSAGES))
    return decoded.withColumn("body", F.try_parse_json("body")) if body == "variant" else decoded


def typed_messages(of: DataFrame, api: str, *, show_secrets: bool = False) -> DataFrame:
    """Return the frames of one API ("Fetch") decoded to typed columns: `decoding.typed_schema` lists them.

    Fields of a body are fields of `request` or `response`, so Spark reads and filters them without parsing JSON.
    Raises OptionError for an unknown API.
    """
    try:
        schema = typed_schema(api)
    except WireError as error:
        raise OptionError(str(error)) from None
    decode = partial(decode_typed_batches, api=api, show_secrets=show_secrets)
    return of.select(*FRAMES.names).mapInArrow(decode, to_spark_schema(schema))


def records(
    of: DataFrame, *, topics: Iterable[str] = (), show_secrets: bool = False, record_bytes_max: int | None = None
) -> DataFrame:
    """Return the records in Produce, Fetch and FetchSnapshot (RECORDS), one row for each frame that carried one.

    `topics` are names or ids of the topics to read (none: all). `record_bytes_max` is the limit for a decompressed
    batch (default: 64 MiB); beyond it the batch is an error row.
    """
    limit = record_bytes_max or RECORD_BYTES_MAX
    read = partial(decode_record_batches, topics=tuple(topics), show_secrets=show_secrets, record_bytes_max=limit)
    # The pieces of a snapshot are joined by connection.
    carriers = _by_connection(of, api_keys.PRODUCE, api_keys.FETCH, api_keys.FETCH_SNAPSHOT)
    return carriers.mapInArrow(read, to_spark_schema(RECORDS))


def forwarded(of: DataFrame, *, show_secrets: bool = False) -> DataFrame:
    """Return the requests and responses that Envelopes carry, decoded (FORWARDED), with JSON bodies."""
    carriers = _by_connection(of, api_keys.ENVELOPE)
    return carriers.mapInArrow(partial(decode_forwarded_batches, show_secrets=show_secrets), to_spark_schema(FORWARDED))


def _by_connection(frames: DataFrame, *keys: int) -> DataFrame:
    """Return the frames, or those of some APIs, with each connection in one partition, in order."""
    wanted = frames.where(F.col("api_key").isin(*keys)) if keys else frames
    rows = wanted.select(*FRAMES.names).repartition("conn_id")
    return rows.sortWithinPartitions("conn_id", "incarnation", "ts_last_ns", "is_response", "frame_no")


def exchanges(of: DataFrame, *, unanswered: bool = False) -> DataFrame:
    """Return requests with their responses (EXCHANGES) of a DataFrame of frames, one row for each pair.

    With `unanswered` also requests without a response, with null response columns.
    """
    pairs = _by_connection(of).mapInArrow(pair_exchanges_table, to_spark_schema(EXCHANGES))
    return pairs if unanswered else pairs.where("response_frame_no IS NOT NULL")


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
    if _read(given).key_log is not None:
        raise OptionError("option keyLog: not possible in a stream, whose checkpoint would have its secrets")
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

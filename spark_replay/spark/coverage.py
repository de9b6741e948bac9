"""Codec coverage of messages, counted by the workers: the driver gets a row for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.schemas import MESSAGES, columns
from mockraft.spark_replay.spark.worker_table import WorkerTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

_KIND = ["api_name", "api_key", "api_version", "is_response", "decode_status"]
_OFFSETS = ("first_diff_offset", "error_offset")
_WHERE = ("client", "client_port", "frame_no", *_OFFSETS, "error")
_NEEDED = [*_KIND, "roundtrip", *_WHERE]
COUNTED = pa.schema([MESSAGES.field(name) for name in _NEEDED])
"""The columns of MESSAGES that are counted."""
COUNTS = pa.schema(
    [*(MESSAGES.field(name) for name in _KIND), *columns("frames int64, not_roundtrip int64, example string")]
)


class Coverage(NamedTuple):
    """Decode results of one API, version and direction; `example` names a frame that failed, or is empty."""

    api_name: str
    api_key: int | None
    api_version: int | None
    is_response: bool
    decode_status: str
    frames: int
    not_roundtrip: int
    example: str


def coverage(messages: DataFrame | WorkerTable) -> list[Coverage]:
    """Count rows of MESSAGES by API, version, direction and status."""
    if isinstance(messages, WorkerTable):
        parts = messages.then(count_messages, COUNTS)
    else:
        parts = WorkerTable(messages.select(*_NEEDED), count_messages, COUNTS)
    counted = parts.dataframe().groupBy(*_KIND)
    rows = counted.agg(F.sum("frames"), F.sum("not_roundtrip"), F.coalesce(F.min("example"), F.lit(""))).collect()
    found = [Coverage(*row) for row in rows]
    return sorted(found, key=lambda row: (row.api_key is None, row.api_key, row.api_version or 0, row.is_response, row))


def count_messages(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count all batches of MESSAGES into one batch of COUNTS; `example` is the smallest text, or null."""
    total = COUNTS.empty_table()
    for batch in batches:
        total = _summed(pa.concat_tables([total, _each(batch)]))
    yield from total.to_batches()


def _each(messages: pa.RecordBatch) -> pa.Table:
    is_ok = pc.equal(messages["decode_status"], "ok")
    is_wrong = pc.and_not(is_ok, pc.fill_null(messages["roundtrip"], False))
    is_shown = pc.or_(is_wrong, pc.invert(is_ok))
    examples = pa.nulls(messages.num_rows, pa.string())
    if pc.any(is_shown).as_py():
        examples = pc.if_else(is_shown, _examples(messages), None)
    ones = pc.cast(pc.true_unless_null(is_shown), pa.int64())
    columns = [*(messages[name] for name in _KIND), ones, pc.cast(is_wrong, pa.int64()), examples]
    return pa.Table.from_arrays(columns, schema=COUNTS)


def _examples(messages: pa.RecordBatch) -> pa.StringArray:
    def text(column: pa.Array) -> pa.StringArray:
        return pc.cast(column, pa.string())

    def joined(*parts: object, by: str = " ", nulls: str = "skip") -> pa.StringArray:
        return pc.binary_join_element_wise(*parts, by, null_handling=nulls)

    offset = pc.coalesce(*(messages[name] for name in _OFFSETS))
    return joined(
        joined(messages["client"], text(messages["client_port"]), by=":"),
        joined("frame", text(messages["frame_no"])),
        joined("offset", text(offset), nulls="emit_null"),
        messages["error"],
    )


def _summed(counts: pa.Table) -> pa.Table:
    if counts["example"].null_count < counts.num_rows:
        counts = counts.sort_by("example")
    sums = [("frames", "sum"), ("not_roundtrip", "sum"), ("example", "first")]
    found = counts.group_by(_KIND, use_threads=False).aggregate(sums)
    return pa.Table.from_arrays([found[name] for name in (*_KIND, *map("_".join, sums))], schema=COUNTS)

"""Columns of tables that grow by days and clusters: `day`, `cluster` and the release that decoded a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.spark.options import OptionError
from mockraft.spark_replay.spark.worker_table import WorkerTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

_TIMES = ("ts_last_ns", "request_ts_ns", "ts_ns")
_DAY_NS = 86_400 * 1_000_000_000
_DECODER_VERSION = pa.field("decoder_version", pa.string())


def with_lake_columns(rows: DataFrame, cluster: str) -> DataFrame:
    """Return rows with `decoder_version`, `day` (UTC, of a frame's last byte, or a request's) and `cluster`.

    Rows depend on mockraft's release, their columns too: `decoder_version` tells which rows to decode again after an
    upgrade. Raises OptionError for a table without times.
    """
    time = _time_column(rows.columns)
    if time is None:
        raise OptionError(f"rows have none of the columns {', '.join(_TIMES)}, so no day")
    return rows.withColumns(
        {
            _DECODER_VERSION.name: F.lit(_release()),
            "day": F.expr(f"date_from_unix_date(cast({time} div {_DAY_NS} AS int))"),
            "cluster": F.lit(cluster),
        }
    )


def rows_of_day(table: WorkerTable, day: date) -> WorkerTable:
    """Return the rows of a day (all rows of a table without times) with `decoder_version`.

    Its folder's path has day and cluster, as `day=2026-11-20/cluster=prod-1`.
    """
    schema = table.schema.append(_DECODER_VERSION)
    start_ns = (day - date(1970, 1, 1)).days * _DAY_NS
    return table.then(partial(_of_day, _time_column(schema.names), start_ns, _release()), schema)


def _of_day(
    time: str | None, start_ns: int, release: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        kept = batch
        if time is not None:
            times = batch.column(time)
            kept = batch.filter(pc.and_(pc.greater_equal(times, start_ns), pc.less(times, start_ns + _DAY_NS)))
        yield kept.append_column(_DECODER_VERSION, pa.repeat(release, kept.num_rows))


def _time_column(names: Iterable[str]) -> str | None:
    return next((name for name in _TIMES if name in names), None)


def _release() -> str:
    """Return mockraft's version; modules that were copied without their package's metadata have none."""
    try:
        return version("mockraft")
    except PackageNotFoundError:
        return "unknown"

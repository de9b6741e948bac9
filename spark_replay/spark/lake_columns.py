"""Columns of tables that grow by days and clusters: `day`, `cluster` and the release that decoded a row."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mockraft.spark_replay.spark.options import OptionError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

_TIMES = ("ts_last_ns", "request_ts_ns", "ts_ns")
_DAY_NS = 86_400 * 1_000_000_000


def with_lake_columns(rows: DataFrame, cluster: str) -> DataFrame:
    """Return rows with `decoder_version`, `day` (UTC, of a frame's last byte, or a request's) and `cluster`.

    Rows depend on mockraft's release, their columns too: `decoder_version` tells which rows to decode again after an
    upgrade. Raises OptionError for a table without times.
    """
    time = next((name for name in _TIMES if name in rows.columns), None)
    if time is None:
        raise OptionError(f"rows have none of the columns {', '.join(_TIMES)}, so no day")
    return rows.withColumns(
        {
            "decoder_version": F.lit(_release()),
            "day": F.expr(f"date_from_unix_date(cast({time} div {_DAY_NS} AS int))"),
            "cluster": F.lit(cluster),
        }
    )


def _release() -> str:
    """Return mockraft's version; modules that were copied without their package's metadata have none."""
    try:
        return version("mockraft")
    except PackageNotFoundError:
        return "unknown"

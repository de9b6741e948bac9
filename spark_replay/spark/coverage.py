"""Codec coverage of messages: the driver gets a row for each kind."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

_KIND = ("api_name", "api_key", "api_version", "is_response", "decode_status")


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


def coverage(messages: DataFrame) -> list[Coverage]:
    """Count rows of MESSAGES by API, version, direction and status."""
    is_ok = F.col("decode_status") == "ok"
    is_wrong = is_ok & ~F.coalesce("roundtrip", F.lit(False))
    offset = F.coalesce("first_diff_offset", "error_offset")
    frame = F.concat_ws(
        " ",
        F.concat_ws(":", "client", "client_port"),
        F.concat(F.lit("frame "), "frame_no"),
        F.concat(F.lit("offset "), offset),
        "error",
    )
    example = F.min(F.when(is_wrong | ~is_ok, frame))
    counted = messages.groupBy(*_KIND).agg(F.count("*"), F.count_if(is_wrong), F.coalesce(example, F.lit("")))
    found = [Coverage(*row) for row in counted.collect()]
    return sorted(found, key=lambda row: (row.api_key is None, row.api_key, row.api_version or 0, row.is_response, row))

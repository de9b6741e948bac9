"""Results of `read_frames` in comparable forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from os import PathLike
from typing import Any

import pyarrow as pa
from mockraft.spark_replay.frames import read_frames
from mockraft.spark_replay.schemas import FRAMES

from .packetiser import PORT, Said


def table_of(path: str | PathLike[str], ports: Collection[int] = (PORT,), **options: Any) -> pa.Table:
    """All frames of a capture; their columns are checked to be those of the schema."""
    table = pa.Table.from_batches(list(read_frames(path, ports, **options)), schema=FRAMES)
    table.validate(full=True)
    return table


def frames_of(path: str | PathLike[str]) -> Counter[Said]:
    """Return the frames as sent, with their counts."""
    return said_in(table_of(path))


def said_in(table: pa.Table) -> Counter[Said]:
    """Return the frames of a table as sent."""
    columns = zip(table["is_response"].to_pylist(), table["frame"].to_pylist(), strict=True)
    return Counter(Said(not is_response, frame) for is_response, frame in columns)


def rows_of(table: pa.Table, *columns: str) -> Counter[tuple[Any, ...]]:
    """These columns of every row, in no order."""
    return Counter(zip(*(table[name].to_pylist() for name in columns), strict=True))

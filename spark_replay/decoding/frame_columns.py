"""A batch of frames as numpy columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.arrow_columns import Array

Rows = npt.NDArray[np.int64]

Kind = tuple[int, int, bool, int]
"""API key, API version, is_response, and size: frames that share a shape have the same kind."""


class FrameColumns:
    """The columns of a batch of `schemas.FRAMES` used for decoding; `buffer[starts[i] : ends[i]]` is frame i.

    `is_whole` and `has_api` are masks of the rows with all of their bytes, and with an API.
    """

    def __init__(self, frames: pa.RecordBatch) -> None:
        data = frames.column("frame").cast(pa.binary())
        offsets = np.frombuffer(data.buffers()[1] or bytes(4), np.int32)[data.offset :].astype(np.int64)
        self.buffer = np.frombuffer(data.buffers()[2] or b"", np.uint8)
        self.starts, self.ends = offsets[: len(data)], offsets[1 : len(data) + 1]
        self.is_whole = _filled(data.is_valid(), False) & ~_filled(frames.column("truncated"), False)
        api_key, api_version = frames.column("api_key"), frames.column("api_version")
        self.has_api = _filled(pc.and_(api_key.is_valid(), api_version.is_valid()), False)
        self.api_key, self.api_version = (_filled(column, -1).astype(np.int64) for column in (api_key, api_version))
        self.is_response = _filled(frames.column("is_response"), False)

    def frame(self, row: int) -> tuple[bytes, int, int, bool]:
        """Return a frame's bytes, API key, API version and is_response."""
        data = self.buffer[self.starts[row] : self.ends[row]].tobytes()
        return data, int(self.api_key[row]), int(self.api_version[row]), bool(self.is_response[row])

    def alike(self, rows: Rows) -> Iterator[tuple[Kind, Rows]]:
        """Return the rows by kind, in their original order within a kind."""
        sizes = self.ends - self.starts
        kinds = (self.api_key & 0xFFFF) << 48 | (self.api_version & 0xFFFF) << 32 | self.is_response << 31 | sizes
        kinds = kinds[rows]
        order = np.argsort(kinds, kind="stable")
        ordered = kinds[order]
        cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        for group in np.split(rows[order], cuts) if len(rows) else ():
            first = int(group[0])
            kind = int(self.api_key[first]), int(self.api_version[first]), bool(self.is_response[first])
            yield (*kind, int(sizes[first])), group


def _filled(column: pa.Array, value: object) -> Array:
    filled: Array = pc.fill_null(column, value).to_numpy(zero_copy_only=False)
    return filled

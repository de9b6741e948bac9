"""Frames to messages, table to table: one row in, one row out, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.decoding.verdicts import OPAQUE, TRUNCATED, Verdict, judge_frame
from mockraft.spark_replay.schemas import MESSAGES
from mockraft.wire.overlay import in_use

BATCH_BYTES_MAX = 16 << 20
"""Most bytes of frames that `decode_batches` decodes at once; a longer frame comes alone."""

_READ = ("frame", "truncated", "api_key", "api_version", "is_response")
_KEPT = [name for name in MESSAGES.names if name not in ("api_name", *Verdict._fields)]


def decode_frames(frames: pa.RecordBatch, body: Literal["json", "none"] = "json") -> pa.RecordBatch:
    """The messages of a batch of frames: `schemas.FRAMES` in, `schemas.MESSAGES` out, row for row.

    `decode_status` is

    - ok: read; `roundtrip` says whether the codec writes the same bytes again, `first_diff_offset` where not
    - error: the bytes are no such message; `error` says what and `error_offset` where in the frame
    - unknown_api, unknown_version: the codec does not know it
    - opaque: not Kafka's protocol (`api_key` is null); truncated: the capture has not all of its bytes

    `body` "json" gives each body as Kafka's JsonConverters write it, compact; "none" leaves the column null.
    """
    if body not in ("json", "none"):
        raise ValueError(f"body is json or none, not {body!r}")
    inputs = (frames.column(name).to_pylist() for name in _READ)
    verdicts = [_verdict(*row, body == "json") for row in zip(*inputs, strict=True)]
    columns = dict(zip(Verdict._fields, zip(*verdicts, strict=True) if verdicts else [()] * 7, strict=True))
    kept = {name: frames.column(name) for name in _KEPT}
    found = {name: pa.array(column, MESSAGES.field(name).type) for name, column in columns.items()}
    return pa.record_batch({**kept, "api_name": _api_names(frames), **found}, schema=MESSAGES)


def _verdict(
    data: bytes | None,
    truncated: bool,
    api_key: int | None,
    api_version: int | None,
    is_response: bool,
    with_json: bool,
) -> Verdict:
    if data is None or truncated:
        return TRUNCATED
    if api_key is None or api_version is None:
        return OPAQUE
    return judge_frame(data, api_key, api_version, is_response, with_json)


def decode_batches(
    batches: Iterable[pa.RecordBatch], body: Literal["json", "none"] = "json"
) -> Iterator[pa.RecordBatch]:
    """As `decode_frames`, of many batches, each cut so that no more than `BATCH_BYTES_MAX` are decoded at once."""
    for batch in batches:
        for part in _cut(batch):
            yield decode_frames(part, body)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    ends = np.cumsum(batch.column("size").to_numpy(zero_copy_only=False), dtype=np.int64)
    start = before = 0
    while start < batch.num_rows:
        stop = max(int(np.searchsorted(ends, before + BATCH_BYTES_MAX, "right")), start + 1)
        yield batch.slice(start, stop - start)
        start, before = stop, int(ends[stop - 1])


def _api_names(frames: pa.RecordBatch) -> pa.Array:
    """The APIs' names as Kafka spells them (`BrokerHeartbeat`); null where there is none of that number."""
    names = {key: name.removesuffix("Request") for key, name in in_use().requests.items()}
    keys = frames.column("api_key").dictionary_encode()
    return pa.array([names.get(key) for key in keys.dictionary.to_pylist()], pa.string()).take(keys.indices)

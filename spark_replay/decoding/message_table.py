"""Frames to messages: one row out for every row in, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
import pyarrow as pa
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.arrow_columns import at_least_one
from mockraft.spark_replay.decoding.frame_columns import FrameColumns
from mockraft.spark_replay.decoding.judging import BodyMaker, judge_frames, put_together
from mockraft.spark_replay.decoding.verdicts import FrameVerdict, full_json, json_without_secrets
from mockraft.spark_replay.schemas import MESSAGES

BATCH_BYTES_MAX = 4 << 20
"""Upper bound for the bytes of frames that `decode_batches` decodes at once; a longer frame is decoded alone."""

KEPT = [name for name in MESSAGES.names if name not in ("api_name", *FrameVerdict._fields)]


def decode_frames(
    frames: pa.RecordBatch, body: Literal["json", "none"] = "json", *, show_secrets: bool = False, by_shape: bool = True
) -> pa.RecordBatch:
    """Decode a batch of frames: `schemas.FRAMES` in, `schemas.MESSAGES` out, row for row.

    `decode_status` is

    - ok: decoded; `roundtrip` shows whether the codec writes the same bytes again, else see `first_diff_offset`
    - error: the bytes are not such a message; see `error` and `error_offset` (from the start of the frame)
    - unknown_api, unknown_version: not known to the codec
    - opaque: not Kafka's protocol (`api_key` is null); truncated: the capture lacks some of the bytes

    `body` "json" gives each body as Kafka's JsonConverters write it, compact, with `[hidden]` for secrets unless
    `show_secrets` (`mockraft.wire.redaction`); "none" leaves the column null. Frames of equal structure are judged
    together (see `shapes`); without `by_shape` each is decoded on its own, with the same result.
    """
    if body not in ("json", "none"):
        raise ValueError(f"body must be json or none, not {body!r}")
    write_json = full_json if show_secrets else json_without_secrets
    maker = BodyMaker(write_json, lambda shape, rows: shape.template.write(rows), show_secrets)
    verdicts = judge_frames(FrameColumns(frames), None if body == "none" else maker, by_shape=by_shape)
    single = np.array([*verdicts.bodies], np.int64), pa.array(verdicts.bodies.values(), pa.string())
    bodies = put_together(frames.num_rows, [*verdicts.body_columns, single], pa.string())
    columns = {**kept(frames), "api_name": api_names(frames), **verdicts.columns(), "body": bodies}
    return pa.record_batch(columns, schema=MESSAGES)


def decode_batches(
    batches: Iterable[pa.RecordBatch], body: Literal["json", "none"] = "json", *, show_secrets: bool = False
) -> Iterator[pa.RecordBatch]:
    """Call `decode_frames` for many batches, cut so that at most `BATCH_BYTES_MAX` are decoded at once.

    Without any frame there is one batch without rows.
    """
    parts = (part for batch in batches for part in cut(batch))
    yield from at_least_one((decode_frames(part, body, show_secrets=show_secrets) for part in parts), MESSAGES)


def kept(frames: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the columns of MESSAGES that are those of FRAMES, whose strings may be dictionaries."""
    return {name: frames.column(name).cast(MESSAGES.field(name).type) for name in KEPT}


def cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in slices with at most `BATCH_BYTES_MAX` of frames, or one frame."""
    ends = np.cumsum(batch.column("size").fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    start = before = 0
    while start < batch.num_rows:
        stop = max(int(np.searchsorted(ends, before + BATCH_BYTES_MAX, "right")), start + 1)
        yield batch.slice(start, stop - start)
        start, before = stop, int(ends[stop - 1])


def api_names(frames: pa.RecordBatch) -> pa.Array:
    """Return the APIs' names as Kafka spells them (`BrokerHeartbeat`); null for an unknown key."""
    names = in_use().api_names
    keys = frames.column("api_key").dictionary_encode()
    return pa.array([names.get(key) for key in keys.dictionary.to_pylist()], pa.string()).take(keys.indices)

"""Find and hide secrets in frames, so that tables of captures hold none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.arrow_columns import at_least_one
from mockraft.spark_replay.decoding.frame_columns import FrameColumns
from mockraft.spark_replay.decoding.frame_shapes import Bytes, FrameShape
from mockraft.spark_replay.schemas import FRAMES
from mockraft.wire.redaction.messages import masked_batches, masked_request, masked_response, may_hold_secrets
from mockraft.wire.redaction.secret_fields import may_hold_records


def hide_secrets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of `schemas.FRAMES` with asterisks in place of secrets; sizes stay, and frames can be decoded.

    A frame that cannot be decoded, although it may have a secret, has a body of asterisks. So has the response to an
    Envelope, because its request is in another row.
    """
    yield from at_least_one(map(_hidden, batches), FRAMES)


def rows_with_secrets(shape: FrameShape, frames: Bytes) -> npt.NDArray[np.bool_]:
    """Return a mask of the frames of a shape (rows of bytes) whose bodies may have a secret.

    A Fetch response has one only in its records, and then only where masking changes them.
    """
    if not may_hold_secrets(shape.cls):
        return np.zeros(len(frames), np.bool_)
    if shape.cls.__name__ != "FetchResponse":
        return np.ones(len(frames), np.bool_)
    found = np.zeros(len(frames), np.bool_)
    for leaf in shape.layout.leaves:
        if leaf.kind == "records":
            records = frames[:, leaf.offset : leaf.offset + leaf.length]
            if may_hold_records(records.tobytes()):
                found |= [masked_batches(data) != data for data in map(np.ndarray.tobytes, records)]
    return found


def _hidden(frames: pa.RecordBatch) -> pa.RecordBatch:
    columns, lookup = FrameColumns(frames), in_use()
    asked = [key for key, name in lookup.requests.items() if not may_hold_secrets(lookup.by_name(name))]
    answered = [key for key, name in lookup.responses.items() if not may_hold_secrets(lookup.by_name(name))]
    has_none = np.where(columns.is_response, np.isin(columns.api_key, answered), np.isin(columns.api_key, asked))
    # A response without its request is of no known API: it may be any.
    rows = np.flatnonzero(~(has_none & columns.has_api) & (columns.starts < columns.ends))
    if not len(rows):
        return frames
    shown = []
    for data, api_key, api_version, is_response in map(columns.frame, rows.tolist()):
        shown.append(
            masked_response(data, api_key, api_version, lookup) if is_response else masked_request(data, lookup)
        )
    is_changed = np.zeros(frames.num_rows, np.bool_)
    is_changed[rows] = True
    column = frames.column("frame")
    changed = pc.replace_with_mask(column, pa.array(is_changed), pa.array(shown, column.type))
    return frames.set_column(frames.schema.get_field_index("frame"), frames.schema.field("frame"), changed)

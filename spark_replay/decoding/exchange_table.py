"""Frames to exchanges: each request with its response, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.arrow_columns import at_least_one
from mockraft.spark_replay.schemas import EXCHANGES, FRAMES

WAITING_BYTES_MAX = 64 << 20
"""Upper bound for the bytes of frames waiting for their other half; beyond it the older half stops waiting."""

_OF_BOTH = ("request_frame_no", "latency_ns")
_OF_REQUEST = [name for name in FRAMES.names if name in EXCHANGES.names and name not in _OF_BOTH]
_CONNECTION = ("conn_id", "incarnation")


def pair_exchanges_table(frames: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the exchanges of frames as batches of `schemas.EXCHANGES`, ordered by request number within a batch.

    Requests and responses are matched by connection, incarnation and `request_frame_no`, in any order and across
    batches. A request without a response (not captured, or acks=0) has null response columns. Responses without a
    request are in no exchange. Without any exchange there is one batch without rows.
    """
    yield from at_least_one(_pairs(frames), EXCHANGES)


def _pairs(frames: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    waiting = pa.RecordBatch.from_pylist([], schema=FRAMES)
    for batch in frames:
        if batch.num_rows:
            together = pa.Table.from_batches([waiting, batch]).combine_chunks().to_batches()[0]
            paired, alone, waiting = _split(together)
            yield from _filled(paired)
            yield from _filled(alone)
    if waiting.num_rows:
        yield from _filled(_exchanges(waiting.filter(pc.invert(waiting.column("is_response"))), None))


def _filled(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows:
        yield batch


def _split(frames: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]:
    """Return the complete exchanges, the requests that get no response, and the frames still waiting."""
    is_response = frames.column("is_response").to_numpy(zero_copy_only=False)
    is_paired = pc.equal(frames.column("pair_status"), "paired").fill_null(False).to_numpy(zero_copy_only=False)
    request_at, response_at = _matches(frames, is_response)
    paired = _exchanges(frames.take(request_at), frames.take(response_at))
    matched = np.zeros(frames.num_rows, np.bool_)
    matched[request_at] = matched[response_at] = True
    waits = is_paired & ~matched
    if waits.any() and frames.column("size").fill_null(0).to_numpy()[waits].sum() > WAITING_BYTES_MAX:
        waits[: len(waits) // 2] = False
    alone = _exchanges(frames.filter(pa.array(~matched & ~waits & ~is_response)), None)
    return paired, alone, frames.filter(pa.array(waits))


def _matches(
    frames: pa.RecordBatch, is_response: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of requests, each with its response."""
    number = np.where(
        is_response,
        frames.column("request_frame_no").fill_null(-1).to_numpy(zero_copy_only=False),
        frames.column("frame_no").to_numpy(zero_copy_only=False),
    )
    connection = [frames.column(name).to_numpy(zero_copy_only=False) for name in _CONNECTION]
    order = np.lexsort((is_response, number, connection[1], connection[0]))
    first, second = order[:-1], order[1:]
    is_match = ~is_response[first] & is_response[second]
    for key in (number, *connection):
        is_match &= key[first] == key[second]
    return first[is_match], second[is_match]


def _exchanges(requests: pa.RecordBatch, responses: pa.RecordBatch | None) -> pa.RecordBatch:
    columns = {name: requests.column(name) for name in _OF_REQUEST}
    columns["request_frame_no"] = requests.column("frame_no")
    columns["request_ts_ns"] = requests.column("ts_last_ns")
    columns["request"] = requests.column("frame")
    for name, of_response in (
        ("response_frame_no", "frame_no"),
        ("response_ts_ns", "ts_last_ns"),
        ("latency_ns", "latency_ns"),
        ("response", "frame"),
    ):
        if responses is None:
            columns[name] = pa.nulls(requests.num_rows, EXCHANGES.field(name).type)
        else:
            columns[name] = responses.column(of_response)
    return pa.record_batch(columns, schema=EXCHANGES)

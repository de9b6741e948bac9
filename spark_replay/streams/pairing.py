"""Pair requests and responses by connection and correlation id, many connections at a time.

A frame waits until its partner comes or its connection ends; the waiting frames are bounded. If an id is used twice,
the response belongs to the latest request before it. A response may be captured just before its request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from mockraft.spark_replay.arrow_columns import Array, as_arrow, in_order, of_values, take, texts
from mockraft.spark_replay.schemas import FRAMES
from mockraft.spark_replay.streams.frame_columns import FrameColumns, concatenated
from mockraft.spark_replay.streams.headers import header_versions

_ROWS_AT_ONCE = 8192
_BYTES_AT_ONCE = 16 << 20
_CHUNKS_MAX = 2
_EARLY_RESPONSE_NS = 1_000_000_000
_STATUSES = texts(["paired", "no_response", "no_request", "mismatch", "acks0"])
_PAIRED, _NO_RESPONSE, _NO_REQUEST, _MISMATCH, _ACKS0 = range(5)


class ConnectionNames(NamedTuple):
    """The columns shared by all frames of an incarnation of a connection."""

    conn_id: int
    incarnation: int
    client: str
    client_port: int
    server: str
    server_port: int


class _End(NamedTuple):
    """The end of a connection: were all requests seen, and are responses without one dropped (SASL tokens)."""

    is_whole: bool
    is_opaque: bool


class Pairing:
    """Takes frames and returns rows of `schemas.FRAMES`, each when it is known whether it has a partner."""

    def __init__(self, rows_max: int, bytes_max: int) -> None:
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._names: dict[int, ConnectionNames] = {}
        self._ends: dict[int, _End] = {}
        self._parts: list[FrameColumns] = []
        self._new_rows = self._new_bytes = self._old_rows = 0

    def name(self, uid: int, names: ConnectionNames) -> None:
        """Set the connection of the frames with this number; call again before the first of them if it was wrong."""
        self._names[uid] = names

    def end(self, uid: int, is_whole: bool, is_opaque: bool) -> None:
        """End a number: no frame of it will follow."""
        self._ends[uid] = _End(is_whole, is_opaque)

    def receive(self, frames: FrameColumns) -> None:
        """Add frames."""
        self._parts.append(frames)
        self._new_rows += len(frames)
        self._new_bytes += frames.frame.nbytes

    def take(self, everything: bool = False) -> Iterator[pa.RecordBatch]:
        """Return the known rows, if enough have come since the last call (`everything`: in any case)."""
        enough = max(_ROWS_AT_ONCE, self._old_rows)
        is_enough = self._new_rows >= enough or self._new_bytes >= _BYTES_AT_ONCE or len(self._ends) >= _ROWS_AT_ONCE
        if not (everything or is_enough):
            return
        if not self._parts:
            self._forget_ended()
            return
        frames = concatenated(self._parts)
        batches, rest = self._resolve(frames)
        self._parts = [rest] if len(rest) else []
        self._old_rows, self._new_rows, self._new_bytes = len(rest), 0, 0
        self._forget_ended()
        yield from batches

    def _forget_ended(self) -> None:
        for uid in self._ends:
            self._names.pop(uid, None)
        self._ends.clear()

    def _resolve(self, frames: FrameColumns) -> tuple[list[pa.RecordBatch], FrameColumns]:
        partner = _partners(frames)
        uids, where = np.unique(frames.uid, return_inverse=True)
        ends = [self._ends.get(uid) for uid in uids.tolist()]
        ended = np.array([end is not None for end in ends], bool)[where]
        whole = np.array([end is not None and end.is_whole for end in ends], bool)[where]
        opaque = np.array([end is not None and end.is_opaque for end in ends], bool)[where]
        is_paired = partner >= 0
        known = is_paired | frames.acks0 | ended
        if len(frames) - int(known.sum()) > self._rows_max or frames.frame.nbytes > self._bytes_max:
            # Too many frames wait for partners: the older half stops waiting.
            waits = np.flatnonzero(~known)
            known[waits[: (len(waits) + 1) // 2]] = True
        dropped = opaque & frames.is_response & ~is_paired
        rows = np.flatnonzero(known & ~dropped)
        rest = frames.take(np.flatnonzero(~known))
        if not rows.size:
            return [], rest
        status = np.where(frames.is_response, np.where(whole, _MISMATCH, _NO_REQUEST), _NO_RESPONSE)
        status[frames.acks0] = _ACKS0
        status[is_paired] = _PAIRED
        return self._batches(frames, rows, partner, status), rest

    def _batches(self, frames: FrameColumns, rows: Array, partner: Array, status: Array) -> list[pa.RecordBatch]:
        answered = np.flatnonzero(frames.is_response & (partner >= 0))
        request = partner[answered]
        key, version = frames.api_key.copy(), frames.api_version.copy()
        key[answered], version[answered] = key[request], version[request]
        latency = np.zeros(len(frames), np.int64)
        latency[answered] = frames.ts_last_ns[answered] - frames.ts_last_ns[request]
        request_no = np.zeros(len(frames), np.int64)
        request_no[answered] = frames.frame_no[request]
        has_no_request = np.ones(len(frames), bool)
        has_no_request[answered] = False
        whole = len(rows) == len(frames)
        chosen = frames if whole else frames.take(rows)
        uids, where = np.unique(chosen.uid, return_inverse=True)
        names = zip(*(self._names[uid] for uid in uids.tolist()), strict=True)
        columns: dict[str, Array | pa.Array] = {
            name: take(of_values(values, FRAMES.field(name).type), where)
            for name, values in zip(ConnectionNames._fields, names, strict=True)
        }
        for name in FRAMES.names:
            if hasattr(chosen, name):
                columns[name] = getattr(chosen, name)
        columns["correlation_id"] = as_arrow(chosen.correlation_id, pa.int32(), ~chosen.has_header)
        columns["api_key"], columns["api_version"] = key[rows], version[rows]
        columns["header_version"] = header_versions(key, version, frames.is_response)[rows]
        columns["pair_status"] = take(_STATUSES, status[rows])
        columns["request_frame_no"] = as_arrow(request_no[rows], pa.int64(), has_no_request[rows])
        columns["latency_ns"] = as_arrow(latency[rows], pa.int64(), has_no_request[rows])
        frame = chosen.frame.to_arrow()
        columns["frame"] = frame.combine_chunks() if frame.num_chunks > _CHUNKS_MAX else frame
        # One batch for each buffer that contains frames, to avoid copying them together.
        table = pa.Table.from_arrays(in_order(columns, FRAMES), schema=FRAMES)
        batches: list[pa.RecordBatch] = table.to_batches()
        return batches


def _partners(frames: FrameColumns) -> Array:
    """Return the row of each frame's partner, -1 if there is none (yet)."""
    partner = np.full(len(frames), -1, np.int64)
    candidates = np.flatnonzero(frames.has_header & ~frames.acks0)
    if len(candidates) < 2:
        return partner
    response = frames.is_response[candidates]
    time = frames.ts_last_ns[candidates]
    exchange = frames.uid[candidates] << 32 | frames.correlation_id[candidates].view(np.uint32)
    order = np.lexsort((frames.frame_no[candidates], response, time, exchange))
    response, time, exchange = response[order], time[order], exchange[order]
    same = exchange[1:] == exchange[:-1]
    pairs = np.flatnonzero(same & ~response[:-1] & response[1:])
    rows = candidates[order]
    partner[rows[pairs]], partner[rows[pairs + 1]] = rows[pairs + 1], rows[pairs]
    alone = partner[rows] < 0
    early = np.flatnonzero(
        same & response[:-1] & ~response[1:] & alone[:-1] & alone[1:] & (time[1:] - time[:-1] <= _EARLY_RESPONSE_NS)
    )
    partner[rows[early]], partner[rows[early + 1]] = rows[early + 1], rows[early]
    return partner

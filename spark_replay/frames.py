"""Kafka frames of capture files, as Arrow record batches, on one machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b
from os import PathLike
from struct import Struct
from typing import Any

import pyarrow as pa
from mockraft.spark_replay.exchanges import Exchange, Frame, read_exchanges
from mockraft.spark_replay.schemas import FRAMES
from mockraft.wire import messages
from mockraft.wire.errors import WireError

_CLIENT_ID = Struct(">8xh")
_BATCH_ROWS = 10_000


def read_frames(path: str | PathLike[str], ports: Collection[int] = ()) -> Iterator[pa.RecordBatch]:
    """The frames of a capture file, with the columns of `schemas.FRAMES`; `ports` are the servers' (none: all)."""
    rows: list[dict[str, Any]] = []
    for exchange in read_exchanges(path, ports):
        rows += _rows(exchange)
        if len(rows) >= _BATCH_ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: Iterable[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=FRAMES)


def _rows(exchange: Exchange) -> Iterator[dict[str, Any]]:
    request, response = exchange.request, exchange.response
    status = "paired" if request and response else "no_response" if request else "no_request"
    for frame in (request, response):
        if frame is not None:
            row = _row(frame, exchange, status)
            if frame is response and request is not None:
                row["latency_ns"] = frame.last_time_ns - request.last_time_ns
                row["request_frame_no"] = request.number
            yield row


def _row(frame: Frame, exchange: Exchange, status: str) -> dict[str, Any]:
    connection, is_response = frame.connection, not frame.from_client
    client_id = None
    if not is_response:
        (size,) = _CLIENT_ID.unpack_from(frame.data)
        client_id = frame.data[10 : 10 + size].decode(errors="replace") if size >= 0 else None
    try:
        which = messages.response_header_version if is_response else messages.request_header_version
        header_version = which(exchange.api_key, exchange.api_version)
    except WireError:
        header_version = -1
    key = f"{min(connection[:2])} {max(connection[:2])}"
    return {
        "conn_id": int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big", signed=True),
        "incarnation": connection.incarnation,
        "client": connection.client.host,
        "client_port": connection.client.port,
        "server": connection.server.host,
        "server_port": connection.server.port,
        "frame_no": frame.number,
        "is_response": is_response,
        "api_key": exchange.api_key,
        "api_version": exchange.api_version,
        "header_version": header_version,
        "correlation_id": frame.correlation_id,
        "client_id": client_id,
        "ts_first_ns": frame.first_time_ns,
        "ts_last_ns": frame.last_time_ns,
        "packet_first": frame.first_packet,
        "packet_last": frame.last_packet,
        "segments": 1,
        "size": len(frame.data),
        "truncated": False,
        "after_gap": frame.after_gap,
        "pair_status": status,
        "request_frame_no": None if is_response else frame.number,
        "latency_ns": None,
        "frame": frame.data,
    }

"""A captured request with its response, as used by replays, whatever the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from mockraft.wire import api_keys, messages
from mockraft.wire.connection import Request, parse_request, read_response_body
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.messages.response_header import ResponseHeader

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 256


class Captured(NamedTuple):
    """One exchange with the columns of `schemas.EXCHANGES`; `number` counts within the session, from 1.

    `request` and `response` are frames without their length; either is None if it was not captured.
    """

    number: int
    conn_id: int
    incarnation: int
    client: str
    client_port: int
    server: str
    server_port: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    request_frame_no: int | None
    response_frame_no: int | None
    request_ts_ns: int
    response_ts_ns: int | None
    request: bytes | None
    response: bytes | None

    @property
    def connection(self) -> tuple[int, int]:
        """The key of its connection."""
        return self.conn_id, self.incarnation

    @property
    def api(self) -> str:
        """Name of the API; `?` without a request."""
        return api_keys.name(self.api_key) if self.request is not None else "?"

    @property
    def latency_ns(self) -> int | None:
        """Latency of the captured response; None without one."""
        return None if self.response_ts_ns is None else max(0, self.response_ts_ns - self.request_ts_ns)

    @property
    def answered_ns(self) -> int:
        """Time of the response; that of the request without one."""
        return self.response_ts_ns or self.request_ts_ns

    def read_request(self) -> tuple[Request, Message]:
        """Decode header and body of the request. Raises WireError."""
        header = parse_request(self.request or b"")
        return header, messages.request(self.api_key).read(header.frame[header.body_offset :], self.api_version)

    def read_response(self) -> Message:
        """Decode the body of the response. Raises WireError."""
        return read_frame(self.response or b"", self.api_key, self.api_version)


def read_frame(frame: bytes, api_key: int, api_version: int) -> Message:
    """Decode the body of a response frame. Raises WireError."""
    if len(frame) < 4:
        raise WireError(f"a response of {len(frame)} bytes has no correlation id")
    offset = 4
    if messages.response_header_version(api_key, api_version) >= 1:
        _, offset = ResponseHeader.read_from(frame, 1, 0)
    message: Message = read_response_body(frame, offset, api_key, api_version)
    return message


def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Captured]:
    """Yield rows of `schemas.EXCHANGES`, already in the order of sending, numbered as they come.

    A few hundred rows at a time become Python objects; the rest stays in its Arrow batch.
    """
    names = Captured._fields[1:]
    number = 0
    for batch in batches:
        columns = batch.select(list(names))
        for start in range(0, columns.num_rows, ROWS_AT_ONCE):
            part = columns.slice(start, ROWS_AT_ONCE)
            for row in zip(*(column.to_pylist() for column in part.columns), strict=True):
                number += 1
                yield Captured(number, *row)


def to_batch(exchanges: Iterable[Captured]) -> pa.RecordBatch:
    """Return rows of `schemas.EXCHANGES`."""
    import pyarrow as pa
    from mockraft.spark_replay.schemas import EXCHANGES

    rows = [each._asdict() | {"latency_ns": each.latency_ns} for each in exchanges]
    return pa.RecordBatch.from_pylist(rows, schema=EXCHANGES)

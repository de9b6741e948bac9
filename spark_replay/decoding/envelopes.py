"""Requests and responses that Envelopes carry, as messages of their own.

A broker forwards a client's request to the controller inside an Envelope (KIP-590), with the client's principal and
address. Only the Envelope's request has the carried API and version, so each response is opened with its request, in
whichever order the two come. An Envelope answered with an error carries no response.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from mockraft.codegen.every_release import in_use
from mockraft.spark_replay.arrow_columns import at_least_one
from mockraft.spark_replay.decoding.message_table import cut, decode_frames
from mockraft.spark_replay.decoding.typed_table import decode_typed
from mockraft.spark_replay.schemas import FORWARDED, FRAMES
from mockraft.wire import api_keys
from mockraft.wire.connection import parse_request
from mockraft.wire.errors import WireError
from mockraft.wire.principals import read_principal

WAITING_MAX: Final = 10_000
WAITING_BYTES_MAX: Final = 64 << 20
"""Upper bounds for responses that wait for their requests, and for requests that wait; the oldest stop waiting."""

_ADDED = ("principal", "client_host", "envelope_correlation_id")
_Key = tuple[int, int, int]


class _Carried(NamedTuple):
    """The carried request's API and sender, for its response."""

    api_key: int
    api_version: int
    principal: str | None
    client_host: str | None


_API = Struct(">hh")
_UNKNOWN = _Carried(-1, -1, None, None)


def decode_forwarded_batches(
    frames: Iterable[pa.RecordBatch], *, show_secrets: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the messages that Envelopes carry, with the columns of `schemas.FORWARDED`.

    A carried request that cannot be decoded is a row with the reason in `error`, and so is a response whose request was
    not captured (`unknown_api`). Secrets are `[hidden]` unless `show_secrets`.
    """
    opener = Opener(show_secrets=show_secrets)

    def decoded() -> Iterator[pa.RecordBatch]:
        for batch in frames:
            yield from opener.messages(batch)
        yield from opener.rest()

    yield from at_least_one(decoded(), FORWARDED)


def _decoded(rows: list[dict[str, Any]], show_secrets: bool) -> Iterator[pa.RecordBatch]:
    if not rows:
        return
    messages = decode_frames(pa.RecordBatch.from_pylist(rows, schema=FRAMES), show_secrets=show_secrets)
    for name in _ADDED:
        messages = messages.append_column(
            FORWARDED.field(name), pa.array([row[name] for row in rows], FORWARDED.field(name).type)
        )
    yield messages


class Opener:
    """Opens Envelopes, and keeps what waits for the other half."""

    def __init__(self, *, show_secrets: bool = False) -> None:
        self._show_secrets = show_secrets
        self._requests: dict[_Key, _Carried] = {}
        self._responses: dict[_Key, dict[str, Any]] = {}
        self._waiting_bytes = 0

    def messages(self, frames: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the messages that the Envelopes in a batch of frames carry, as far as they can be read by now."""
        for part in cut(frames):
            yield from _decoded(self._opened(part), self._show_secrets)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the responses whose requests were not captured."""
        rows = [_row(row, row["frame"], _UNKNOWN) for row in self._responses.values()]
        yield from _decoded(rows, self._show_secrets)

    def _opened(self, frames: pa.RecordBatch) -> list[dict[str, Any]]:
        """Return what the Envelopes in a batch of frames carry, as rows of FRAMES and the added columns."""
        frames = frames.filter(pc.fill_null(pc.equal(frames.column("api_key"), api_keys.ENVELOPE), False))
        if not frames.num_rows:
            return []
        bodies = decode_typed(frames, "Envelope", show_secrets=True).select(["request", "response"]).to_pylist()
        opened: list[dict[str, Any]] = []
        for row, body in zip(frames.drop_columns(["frame"]).to_pylist(), bodies, strict=True):
            if body["request"] is not None:
                opened += self._request(row, body["request"])
            elif body["response"] is not None and body["response"]["responseData"] is not None:
                opened += self._response(row, body["response"]["responseData"])
        return opened

    def _request(self, row: dict[str, Any], body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        data = body["requestData"] or b""
        try:
            header = parse_request(data, in_use())
            api, client_id, correlation_id = header[:2], header.client_id, header.correlation_id
        except WireError:
            api = _API.unpack_from(data) if len(data) >= _API.size else _UNKNOWN[:2]
            client_id = correlation_id = None
        carried = _Carried(*api, _principal(body["requestPrincipal"]), _address(body["clientHostAddress"]))
        yield _row(row, data, carried) | {"client_id": client_id, "correlation_id": correlation_id}
        key = row["conn_id"], row["incarnation"], row["frame_no"]
        response = self._responses.pop(key, None)
        if response is not None:
            self._waiting_bytes -= len(response["frame"])
            yield _row(response, response["frame"], carried)
        elif row["pair_status"] == "paired":
            self._requests[key] = carried
            if len(self._requests) > WAITING_MAX:
                del self._requests[next(iter(self._requests))]

    def _response(self, row: dict[str, Any], data: bytes) -> Iterator[dict[str, Any]]:
        key = row["conn_id"], row["incarnation"], row["request_frame_no"]
        carried = self._requests.pop(key, None)
        if carried is not None:
            yield _row(row, data, carried)
            return
        self._responses[key] = row | {"frame": data}
        self._waiting_bytes += len(data)
        while len(self._responses) > WAITING_MAX or self._waiting_bytes > WAITING_BYTES_MAX:
            oldest = self._responses.pop(next(iter(self._responses)))
            self._waiting_bytes -= len(oldest["frame"])
            yield _row(oldest, oldest["frame"], _UNKNOWN)


def _row(envelope: dict[str, Any], data: bytes, carried: _Carried) -> dict[str, Any]:
    """Return the row of a carried message; number, times and pairing are its Envelope's."""
    is_response = envelope["is_response"]
    try:
        version_of = in_use().response_header_version if is_response else in_use().request_header_version
        header_version = version_of(carried.api_key, carried.api_version)
    except WireError:
        header_version = -1
    return envelope | {
        "api_key": carried.api_key,
        "api_version": carried.api_version,
        "header_version": header_version,
        "correlation_id": int.from_bytes(data[:4], signed=True) if is_response and len(data) >= 4 else None,
        "client_id": None,
        "size": len(data),
        "frame": data,
        "principal": carried.principal,
        "client_host": carried.client_host,
        "envelope_correlation_id": envelope["correlation_id"],
    }


def _principal(data: bytes | None) -> str | None:
    """Return a principal as Kafka shows it, `User:alice`; null if it is not one of Kafka's own principal builder."""
    try:
        principal = read_principal(data)
    except WireError:
        return None
    return f"{principal.type}:{principal.name}"


def _address(data: bytes | None) -> str | None:
    try:
        return str(ipaddress.ip_address(data or b""))
    except ValueError:
        return None

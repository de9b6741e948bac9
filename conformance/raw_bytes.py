"""Raw bytes on a connection of their own, and their fate: the frames received, and the state of the connection."""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple

from mockraft.conformance.expectation import PATIENCE_S
from mockraft.conformance.requests import Tree, request
from mockraft.conformance.target import Target
from mockraft.wire import api_keys, messages
from mockraft.wire.connection import FrameReader, read_response_body, write_request
from mockraft.wire.json_form import to_json

PROBE_ID = 0x7FFF0001
"""The correlation id of the request that checks if a connection is still open."""
CORRELATION_ID = 77
_READ_BYTES = 1 << 16


class Fate(NamedTuple):
    """The result of sending some bytes."""

    frames: list[bytes]
    is_open: bool


async def fate(target: Target, data: bytes) -> Fate:
    """Send bytes on a new connection, then an ApiVersions request, which any open connection answers."""
    reader = FrameReader()
    frames: list[bytes] = []
    source, sink = await asyncio.open_connection(target.host, target.port)
    try:
        sink.write(data + write_request(request("ApiVersions", {}, 0), 0, PROBE_ID, "probe"))
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    received = await source.read(_READ_BYTES)
                except ConnectionError:
                    received = b""
                if not received:
                    return Fate(frames, is_open=False)
                for frame in reader.receive_data(received):
                    if frame[:4] == PROBE_ID.to_bytes(4, "big"):
                        return Fate(frames, is_open=True)
                    frames.append(frame)
    finally:
        sink.close()


def framed(frame: bytes) -> bytes:
    """Prefix data with its length."""
    return struct.pack(">i", len(frame)) + frame


def header(api_key: int, version: int, client_id: bytes | None = b"x") -> bytes:
    """Encode a request header without tags (version 1)."""
    written = b"\xff\xff" if client_id is None else struct.pack(">h", len(client_id)) + client_id
    return struct.pack(">hhi", api_key, version, CORRELATION_ID) + written


def written(api: str, tree: Tree, version: int) -> bytes:
    """Encode a whole request frame, including its length."""
    return write_request(request(api, tree, version), version, CORRELATION_ID, "x")


def answered(api: str, version: int, frame: bytes, header_version: int | None = None) -> Tree:
    """Decode the response in a frame as JSON, including `correlationId`."""
    key = next(key for key, name in api_keys.NAMES.items() if name == api)
    tags = messages.response_header_version(key, version) if header_version is None else header_version
    response = read_response_body(frame, 4 + tags, key, version)
    return {"correlationId": int.from_bytes(frame[:4], "big", signed=True), **to_json(response, version)}

"""The loops of captured traffic that cannot be vectorised: from header to header, each giving the place of the next.

With mockraft-speed, and unless MOCKRAFT_CODEC=pure, they run in C (`speed/mockraft_speed/captures.c`). The Python
functions are the reference, which tests compare with the C ones.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, error

import numpy as np
import numpy.typing as npt
from mockraft.spark_replay.accelerated import captures

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
FrameWalk = Callable[[memoryview, int, int, int], tuple[int, Longs]]

INCOMPLETE, BAD, SASL = range(3)
"""Why a walk over frames stops: the next one is not whole, is no frame, or the last one is SaslHandshake v0."""
REQUEST_BYTES_MIN, RESPONSE_BYTES_MIN = 8, 4
API_KEY_MAX, API_VERSION_MAX = 0xFF, 0x3F
SASL_HANDSHAKE = 17
_LENGTH, _REQUEST = Struct(">i"), Struct(">ihhi")


def pure_records(buffer: Bytes, size: int, is_big_endian: bool) -> Longs:
    """Return the starts of a pcap file's records in the first `size` bytes, the first at 0.

    The last one may be incomplete behind its header.
    """
    captured = Struct(">8xI4x" if is_big_endian else "<8xI4x").unpack_from
    view = buffer.data[:size]
    offsets: list[int] = []
    add = offsets.append
    at = 0
    try:
        while True:
            (length,) = captured(view, at)
            add(at)
            at += 16 + length
    except error:
        return np.array(offsets, np.int64)


def pure_requests(view: memoryview, at: int, end: int, frame_bytes_max: int) -> tuple[int, Longs]:
    """Return why it stops, and the bounds of the whole requests from `at` on: `at` and the end of each."""
    bounds = [at]
    return _requests(view, at, end, frame_bytes_max, bounds), np.array(bounds, np.int64)


def pure_responses(view: memoryview, at: int, end: int, frame_bytes_max: int) -> tuple[int, Longs]:
    """Return why it stops, and the bounds of the whole responses from `at` on: `at` and the end of each."""
    bounds = [at]
    return _responses(view, at, end, frame_bytes_max, bounds), np.array(bounds, np.int64)


def _requests(view: memoryview, at: int, end: int, frame_bytes_max: int, bounds: list[int]) -> int:
    unpack, append = _REQUEST.unpack_from, bounds.append
    last = end - 12
    while at <= last:
        length, key, version, _ = unpack(view, at)
        if not (8 <= length <= frame_bytes_max and 0 <= key <= 0xFF and 0 <= version <= 0x3F):
            return BAD
        at += 4 + length
        if at > end:
            return INCOMPLETE
        append(at)
        if key == SASL_HANDSHAKE and not version:
            return SASL
    if at + 4 <= end:
        (length,) = _LENGTH.unpack_from(view, at)
        if not REQUEST_BYTES_MIN <= length <= frame_bytes_max:
            return BAD
    return INCOMPLETE


def _responses(view: memoryview, at: int, end: int, frame_bytes_max: int, bounds: list[int]) -> int:
    unpack, append = _LENGTH.unpack_from, bounds.append
    last = end - 4
    while at <= last:
        (length,) = unpack(view, at)
        if not 4 <= length <= frame_bytes_max:
            return BAD
        at += 4 + length
        if at > end:
            return INCOMPLETE
        append(at)
    return INCOMPLETE


def _in_c() -> tuple[Callable[[Bytes, int, bool], Longs], FrameWalk, FrameWalk]:
    assert captures is not None
    find_records = captures.records

    def records(buffer: Bytes, size: int, is_big_endian: bool) -> Longs:
        return np.frombuffer(find_records(buffer, size, is_big_endian), np.int64)

    def frames(walk: Callable[[memoryview, int, int, int], tuple[int, bytes]]) -> FrameWalk:
        def walked(view: memoryview, at: int, end: int, frame_bytes_max: int) -> tuple[int, Longs]:
            state, bounds = walk(view, at, end, frame_bytes_max)
            return state, np.frombuffer(bounds, np.int64)

        return walked

    return records, frames(captures.requests), frames(captures.responses)


records, requests, responses = (pure_records, pure_requests, pure_responses) if captures is None else _in_c()

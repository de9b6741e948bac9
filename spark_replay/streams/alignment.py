"""Find the first frame in bytes that begin anywhere: after a gap, after bytes that are no frame, midway.

A candidate is a position whose first bytes can be a frame's header. Where a segment starts, it is accepted by these
alone; inside a segment, only if another frame follows it. The bytes that decide may still be missing: the verdict is
then postponed, so that it is the same however many bytes come at once, but not for frames longer than the limits below.
Where contiguous bytes end, a candidate counts that ends exactly there.

    requests    a known API and version, and a client id that is text
    responses   the id of an open request; where a segment starts also ids that rise from one response to the next,
                since requests may be missing (one-way captures, gaps in both directions)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from mockraft.spark_replay.arrow_columns import Array
from mockraft.spark_replay.streams import headers

_BLOCK_BYTES_MIN, _BLOCK_BYTES_MAX = 1 << 10, 1 << 18
_REQUEST_BYTES_MAX = 2 << 20
_RESPONSE_BYTES_MAX = 256 << 10
# A response has at least two bytes behind its id.
_RESPONSE_LENGTH_MIN = 6
_ID_STEP_MAX = 1 << 16
_MASK = 0xFFFFFFFF

Verdict = bool | int
"""Whether a frame starts there, or the position up to which bytes are needed to decide."""


class Window(NamedTuple):
    """Contiguous bytes [at, end) of `view`, with the starts and times of their segments; `is_last`: none follow."""

    view: memoryview
    at: int
    end: int
    starts: Array
    ts_ns: Array
    is_last: bool


class Found(NamedTuple):
    """The start of the first frame; without one, where undecided bytes begin, and up to where bytes are needed."""

    at: int | None
    rest: int
    needed: int = 0


def first_request(window: Window, frame_bytes_max: int, *, is_named: bool = False) -> Found:
    """Return the first request of a client's bytes; `is_named`: with a client id."""
    view, end = window.view, window.end

    def judge(at: int, stop: int | None) -> Verdict:
        if is_named and headers.REQUEST_START.unpack_from(view, at)[4] <= 0:
            return False
        if stop is not None and headers.is_plausible_request(view[at:stop], frame_bytes_max):
            return True
        verdict = headers.plausible_request(view[at:end], frame_bytes_max)
        if verdict is not True:
            return verdict and at + verdict
        following: int = at + 4 + headers.LENGTH.unpack_from(view, at)[0]
        if following - at > _REQUEST_BYTES_MAX or (window.is_last and following >= end):
            return following == end
        verdict = headers.plausible_request(view[following:end], frame_bytes_max)
        return verdict if isinstance(verdict, bool) else following + verdict

    def candidates(at: int, end: int) -> Array:
        return headers.may_be_requests(np.frombuffer(view, np.uint8)[at:end], frame_bytes_max) + at

    return _first(window, headers.REQUEST_START.size, candidates, judge)


def first_response(window: Window, frame_bytes_max: int, open_since: Mapping[int, list[int]]) -> Found:
    """Return the first response of a server's bytes; `open_since` are the times of the open requests by their ids."""
    view, end = window.view, window.end

    def is_open(number: int, at: int) -> bool:
        since = open_since.get(number)
        return since is not None and since[0] <= int(
            window.ts_ns[max(int(window.starts.searchsorted(at, "right")) - 1, 0)]
        )

    def is_possible(length: int) -> bool:
        return _RESPONSE_LENGTH_MIN <= length <= frame_bytes_max

    def judge(at: int, stop: int | None) -> Verdict:
        length, number = headers.RESPONSE.unpack_from(view, at)
        following: int = at + 4 + length
        has_request = is_open(number, at)
        if not is_possible(length) or not (has_request or stop is not None):
            return False
        if has_request and stop is not None:
            return bool(following + 4 > stop or is_possible(headers.LENGTH.unpack_from(view, following)[0]))
        if following + headers.RESPONSE.size > end:
            if window.is_last or length > _RESPONSE_BYTES_MAX:
                return following == end
            return following + headers.RESPONSE.size
        length, next_number = headers.RESPONSE.unpack_from(view, following)
        rises = 0 < (next_number - number) & _MASK <= _ID_STEP_MAX
        return is_possible(length) and (rises or is_open(next_number, following))

    def candidates(at: int, end: int) -> Array:
        starts = window.starts[slice(*window.starts.searchsorted((at, end - headers.RESPONSE.size + 1)))]
        if not open_since:
            return starts
        data = np.frombuffer(view, np.uint8)[at:end]
        places = headers.may_be_responses(data, frame_bytes_max, open_ids()) + at
        return np.union1d(starts, places)

    @cache
    def open_ids() -> Array:
        return np.array([*open_since], np.int32)

    return _first(window, headers.RESPONSE.size, candidates, judge)


def _first(
    window: Window,
    head_bytes: int,
    candidates: Callable[[int, int], Array],
    judge: Callable[[int, int | None], Verdict],
) -> Found:
    """Return the first candidate that is accepted, or postponed; `judge` is given where a segment that starts ends."""
    starts, end = window.starts, window.end
    stop = end - head_bytes + 1
    for at in _places(window.at, stop, candidates, head_bytes):
        index = int(starts.searchsorted(at))
        segment_end = None
        if index < len(starts) and starts[index] == at:
            segment_end = int(starts[index + 1]) if index + 1 < len(starts) else end
        verdict = judge(at, segment_end)
        if verdict is True:
            return Found(at, at)
        if verdict is not False and not window.is_last:
            return Found(None, at, verdict)
    return Found(None, end if window.is_last else max(window.at, stop), end + 1)


def _places(at: int, end: int, candidates: Callable[[int, int], Array], head_bytes: int) -> Iterator[int]:
    """Yield the candidates in a range, searched for in parts: most searches find something at once."""
    if at < end:
        yield at
    at, size = at + 1, _BLOCK_BYTES_MIN
    while at < end:
        yield from candidates(at, min(at + size, end) + head_bytes - 1).tolist()
        at += size
        size = min(size * 4, _BLOCK_BYTES_MAX)

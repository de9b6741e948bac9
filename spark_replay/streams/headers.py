"""Recognise frames by their first bytes: whether they can be a frame at all, and header versions.

Inside a stream that is being read, a frame only needs to be possible: an API or version unknown to this codec is still
a frame. When searching for frames (after a gap, at a start midway), it must be plausible: a known API in a known
version, and a client id that fits and is text. A version that only older releases have must be readable as well.
"""

from __future__ import annotations

from functools import cache
from struct import Struct

import numpy as np
from mockraft.spark_replay.arrow_columns import Array
from mockraft.spark_replay.streams.old_requests import every_message, is_old_request
from mockraft.spark_replay.walks import API_KEY_MAX, API_VERSION_MAX, REQUEST_BYTES_MIN, RESPONSE_BYTES_MIN
from mockraft.wire import api_keys, messages

LENGTH = Struct(">i")
RESPONSE = Struct(">ii")
REQUEST = Struct(">ihhi")
REQUEST_START = Struct(">ihhih")
CLIENT_ID_BYTES_MAX = 1024
_NOT_READ = -2
_TLS_RECORDS = tuple(bytes((kind, 3)) for kind in (0x14, 0x15, 0x16, 0x17))


@cache
def _versions(api_key: int) -> range:
    """The newest release's versions of an API; all possible ones for ApiVersions: clients start with their newest."""
    if api_key == api_keys.API_VERSIONS:
        return range(API_VERSION_MAX + 1)
    if api_key not in messages.REQUESTS:
        return range(0)
    request = messages.request(api_key)
    return range(request.min_version, request.max_version + 1)


def header_versions(api_key: Array, api_version: Array, is_response: Array) -> Array:
    """Return the header version of each frame, -1 if it is unknown."""
    known = (api_key >= 0) & (api_key <= API_KEY_MAX) & (api_version >= 0) & (api_version <= API_VERSION_MAX)
    number = np.where(known, api_key.astype(np.int64) * (API_VERSION_MAX + 1) + api_version, 0)
    table, side = _header_table(), is_response.astype(np.int64)
    found = table[number, side]
    if (found == _NOT_READ).any():
        for each in np.unique(number[found == _NOT_READ]).tolist():
            table[each] = _header_versions(*divmod(each, API_VERSION_MAX + 1))
        found = table[number, side]
    return np.where(known, found, np.int8(-1))


@cache
def _header_table() -> Array:
    """Return the header versions of requests and responses by API and version, where they have been read."""
    return np.full(((API_KEY_MAX + 1) * (API_VERSION_MAX + 1), 2), _NOT_READ, np.int8)


def _header_versions(api_key: int, api_version: int) -> tuple[int, int]:
    if api_key in messages.REQUESTS:
        request = messages.request(api_key)
        if request.min_version <= api_version <= request.max_version:
            of_response = messages.response_header_version(api_key, api_version)
            return messages.request_header_version(api_key, api_version), of_response
    found = every_message()
    if api_key not in found.requests:
        return -1, -1
    return found.request_header_version(api_key, api_version), found.response_header_version(api_key, api_version)


def is_tls(data: bytes | memoryview) -> bool:
    """Return True if bytes start like a TLS record."""
    return bytes(data[:2]) in _TLS_RECORDS


def is_plausible_request(data: bytes | memoryview, frame_bytes_max: int) -> bool:
    """Return True if a segment that starts with `data` starts with a request, judging by the segment alone."""
    if len(data) < REQUEST_START.size:
        return False
    length, key, version, _, name_bytes = REQUEST_START.unpack_from(data)
    if not 10 <= length <= frame_bytes_max or not 0 <= key <= API_KEY_MAX:
        return False
    versions = _versions(key)
    if version in versions:
        if not _is_client_id(data, name_bytes, min(CLIENT_ID_BYTES_MAX, length - 10)):
            return False
    elif version >= versions.stop > 0 or not is_old_request(data, key, version):
        return False
    # A frame that ends inside the segment must be followed by another.
    rest = len(data) - 4 - length
    return rest < REQUEST_START.size or is_possible_request(data[4 + length :], frame_bytes_max)


def _is_client_id(data: bytes | memoryview, size: int, size_max: int) -> bool:
    """Return True if a request may have a client id of that size: null is -1."""
    name = bytes(data[14 : 14 + max(size, 0)])
    return -1 <= size <= size_max and name.isascii() and name.decode("ascii").isprintable()


def is_possible_request(data: bytes | memoryview, frame_bytes_max: int) -> bool:
    """Return True if `data` (at least 12 bytes) can be the start of a request of any Kafka version."""
    length, key, version, _ = REQUEST.unpack_from(data)
    return bool(
        REQUEST_BYTES_MIN <= length <= frame_bytes_max and 0 <= key <= API_KEY_MAX and 0 <= version <= API_VERSION_MAX
    )


def plausible_starts(data: Array, at: Array, end: Array, frame_bytes_max: int, is_response: bool) -> Array:
    """Return which of the segments [at, end) may start with a frame, by length and API."""
    fits = np.flatnonzero(end - at >= (8 if is_response else REQUEST_START.size))
    at = at[fits]
    if not at.size:
        return fits
    length = (
        (data[at].astype(np.int64) << 24)
        | (data[at + 1].astype(np.int64) << 16)
        | (data[at + 2].astype(np.int64) << 8)
        | data[at + 3]
    )
    is_one = (length >= (RESPONSE_BYTES_MIN if is_response else 10)) & (length <= frame_bytes_max)
    if not is_response:
        is_one &= (data[at + 4] == 0) & (data[at + 6] == 0)
    chosen: Array = fits[is_one]
    return chosen


def without_response(data: Array, at: Array, size: Array, api_version: Array, name_bytes: Array) -> Array:
    """Return which Produce requests (frames at `at`) have acks 0 and so no response.

    A request whose tags or transactional id have a length of more than one byte is taken as one with a response.
    """
    flexible = api_version >= 9
    at_id = at + 10 + np.maximum(name_bytes, 0) + flexible
    last = at + size - 4
    readable = at_id + 4 <= last
    where = np.where(readable, at_id, at)
    tags = np.where(flexible & readable, data[where - flexible], 0)
    compact = data[where].astype(np.int64)
    classic = ((data[where].astype(np.int64) << 8) | data[where + 1]).astype(np.int16).astype(np.int64)
    id_bytes = np.where(flexible, np.maximum(compact, 1), 2 + np.maximum(classic, 0))
    has_id = api_version >= 3
    acks = where + np.where(has_id, id_bytes, 0)
    fits = readable & (tags == 0) & (~flexible | (compact < 0x80)) & (acks + 2 <= at + size)
    acks = np.where(fits, acks, at)
    without: Array = fits & (data[acks] == 0) & (data[acks + 1] == 0)
    return without

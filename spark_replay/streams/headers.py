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
PROOF_BYTES_MAX = 1 << 12
"""Bytes of a frame that show at most whether it is a request."""
# How many versions LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown had, which 4.0 dropped.
_OF_ZOOKEEPER = {4: 8, 5: 5, 6: 9, 7: 4}
_TLS_RECORDS = tuple(bytes((kind, 3)) for kind in (0x14, 0x15, 0x16, 0x17))


@cache
def _versions(api_key: int) -> int:
    """Return how many versions of an API any release has served, from 0 on: each up to its newest one."""
    if api_key == api_keys.API_VERSIONS:
        # Clients start with their newest.
        return API_VERSION_MAX + 1
    if api_key in messages.REQUESTS:
        return messages.request(api_key).max_version + 1
    return _OF_ZOOKEEPER.get(api_key, 0)


@cache
def _known_versions() -> Array:
    """Return which versions of which APIs any release has served, as a table."""
    counts = np.array([_versions(key) for key in range(API_KEY_MAX + 1)])
    known: Array = counts[:, None] > np.arange(API_VERSION_MAX + 1)
    return known


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


def plausible_request(data: bytes | memoryview, frame_bytes_max: int) -> bool | int:
    """Return whether `data` starts with the header of a known request, or how many bytes are needed to tell."""
    if len(data) < REQUEST_START.size:
        return REQUEST_START.size
    length, key, version, _, name_bytes = REQUEST_START.unpack_from(data)
    if not 10 <= length <= frame_bytes_max or not 0 <= version < _versions(key):
        return False
    # Sessions of ZooKeeper begin as Produce 0 without a client id does.
    if key == version == 0 and name_bytes <= 0:
        return False
    if not -1 <= name_bytes <= min(CLIENT_ID_BYTES_MAX, length - 10):
        return False
    name = bytes(data[14 : 14 + max(name_bytes, 0)])
    if not name.isascii() or not name.decode("ascii").isprintable():
        return False
    return True if len(name) >= name_bytes else 14 + name_bytes


def proven_request(data: bytes | memoryview, frame_bytes_max: int, *, is_all: bool = False) -> bool | int:
    """As `plausible_request`, but a version that only older releases have must be readable.

    With `is_all` no bytes are missing: those that are there decide. It costs too much for each byte of a capture.
    """
    if len(data) >= REQUEST_START.size:
        length, key, version, *_ = REQUEST_START.unpack_from(data)
        if 10 <= length <= frame_bytes_max and 0 <= version < _versions(key) and _is_old(key, version):
            needed = min(4 + length, PROOF_BYTES_MAX)
            return needed if len(data) < needed and not is_all else is_old_request(data[:needed], key, version)
    return plausible_request(data, frame_bytes_max)


def _is_old(api_key: int, api_version: int) -> bool:
    return api_key not in messages.REQUESTS or api_version < messages.request(api_key).min_version


def is_plausible_request(data: bytes | memoryview, frame_bytes_max: int) -> bool:
    """Return True if a segment that starts with `data` starts with a request, judging by the segment alone."""
    if len(data) < REQUEST_START.size or not proven_request(data, frame_bytes_max, is_all=True):
        return False
    # A frame that ends inside the segment must be followed by another.
    after = data[4 + LENGTH.unpack_from(data)[0] :]
    return len(after) < REQUEST_START.size or is_possible_request(after, frame_bytes_max)


def is_possible_request(data: bytes | memoryview, frame_bytes_max: int) -> bool:
    """Return True if `data` (at least 12 bytes) can be the start of a request of any Kafka version."""
    length, key, version, _ = REQUEST.unpack_from(data)
    return bool(
        REQUEST_BYTES_MIN <= length <= frame_bytes_max and 0 <= key <= API_KEY_MAX and 0 <= version <= API_VERSION_MAX
    )


def may_be_requests(data: Array, frame_bytes_max: int) -> Array:
    """Return the positions at which a known API and version, and possible lengths of frame and client id, stand."""
    count = len(data) - REQUEST_START.size + 1
    at = np.flatnonzero((data[4 : 4 + count] == 0) & (data[6 : 6 + count] == 0) & (data[7 : 7 + count] < 0x40))
    at = at[_known_versions()[data[at + 5], data[at + 7]]]
    length = int32(data, at)
    name_bytes = (data[at + 12].astype(np.int32) << 8 | data[at + 13]).astype(np.int16)
    fits = (length >= 10) & (length <= frame_bytes_max) & (name_bytes >= -1) & (name_bytes <= length - 10)
    places: Array = at[fits]
    return places


def may_be_responses(data: Array, frame_bytes_max: int, ids: Array) -> Array:
    """Return the positions at which a possible length and one of `ids` stand."""
    count = len(data) - RESPONSE.size + 1
    # The first byte of a length is seldom possible.
    at = np.flatnonzero(data[:count] <= frame_bytes_max >> 24)
    length = int32(data, at)
    at = at[(length >= RESPONSE_BYTES_MIN) & (length <= frame_bytes_max)]
    places: Array = at[np.isin(int32(data, at + 4), ids)]
    return places


def int32(data: Array, at: Array) -> Array:
    """Return the signed numbers of four bytes at `at`."""
    high = (data[at].astype(np.uint32) << 24) | (data[at + 1].astype(np.uint32) << 16)
    read: Array = (high | (data[at + 2].astype(np.uint32) << 8) | data[at + 3]).view(np.int32)
    return read


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

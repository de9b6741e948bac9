"""Sans-IO Kafka connection: frames, headers and correlation ids.

A frame is an int32 length and that many bytes; a request is header and body, a response is header and body. The header
version follows from the message version by Kafka's rule (`ApiMessageType`); the response header of ApiVersions is
always version 0.

As in h11 and websockets, received bytes are passed in and bytes to send are returned. The owner of the socket moves
them.
"""

from __future__ import annotations

import sys
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mockraft.wire import api_keys, messages
from mockraft.wire.errors import UnsupportedVersionError, WireError
from mockraft.wire.messages.request_header import RequestHeader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mockraft.wire.message import Message, MessageLookup

M = TypeVar("M", bound="Message")

FRAME_BYTES_MAX = 104_857_600
"""Kafka's default of `socket.request.max.bytes`."""

SOFTWARE_NAME = "apache-kafka-java"
SOFTWARE_VERSION = api_keys.RELEASE
"""Version of the client software that our connections name in ApiVersions."""
API_VERSIONS_MAX = messages.request(api_keys.API_VERSIONS).max_version
"""Version of the first ApiVersions request of a connection, as in Kafka's clients of that version."""

CONTROLLER_ENDPOINTS = 2
"""The endpoint type with which DescribeCluster asks for controllers (KIP-919)."""

HEADER_TAGS_MAX = 1_000
"""Maximum number of tagged fields in a request header; Kafka reads 10,000 since 4.2.2 and 4.4, any number before."""

_LENGTH = Struct(">i")
_ROUTE = Struct(">hh")
_HEADER = Struct(">hhih")
_RESPONSE_HEADERS = (Struct(">ii"), Struct(">iix"))
"""Length and header of a response, by header version; there are no tagged fields."""
_tuple_new = tuple.__new__


class FrameReader:
    """Splits received bytes into frames, in whatever chunks they arrive.

    Complete frames before a bad length are still returned; the WireError is raised by the next call and is available in
    `failure` at once. It has `limit_name`, the property with the limit. A started frame is kept in one growing buffer,
    so input in single bytes costs no more than its size. A call returns `frames_max` frames at most; `has_more` if the
    bytes after them may be more frames, which a call without data returns.
    """

    __slots__ = ("_partial", "failure", "frame_bytes_max", "has_more", "limit_name", "refused_length")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX, limit_name: str = "") -> None:
        self.frame_bytes_max = frame_bytes_max
        self.limit_name = limit_name
        self.failure: WireError | None = None
        self.has_more = False
        self.refused_length = 0
        self._partial = bytearray()

    @property
    def partial_bytes(self) -> int:
        """Number of bytes buffered for an incomplete frame, including its length."""
        return len(self._partial)

    @property
    def awaited_bytes(self) -> int:
        """Total size of the started frame, including its length; 0 between frames."""
        if not self._partial:
            return 0
        if len(self._partial) < 4:
            return 4
        return 4 + int(_LENGTH.unpack_from(self._partial)[0])

    def receive_data(self, data: bytes, frames_max: int = sys.maxsize) -> list[bytes]:
        """Add received bytes and return the frames that are now complete, without their lengths.

        Raises WireError for a length below 0 or above `frame_bytes_max`; no more frames can be read after that.
        """
        if self.failure is not None:
            raise self.failure
        partial = self._partial
        size = len(data) - 4
        if not partial and 0 < size <= self.frame_bytes_max and _LENGTH.unpack_from(data)[0] == size:
            return [data[4:]]
        if partial:
            partial += data
            if len(partial) < 4 or len(partial) < 4 + self._length(partial, 0):
                if self.failure is not None:
                    raise self.failure
                return []
            data = bytes(partial)
            self._partial = bytearray()
        self.has_more = False
        frames: list[bytes] = []
        offset, end = 0, len(data)
        while end - offset >= 4:
            if len(frames) >= frames_max:
                self.has_more = True
                break
            frame_end = offset + 4 + self._length(data, offset)
            if self.failure is not None:
                if frames:
                    return frames
                raise self.failure
            if frame_end > end:
                break
            frames.append(data[offset + 4 : frame_end])
            offset = frame_end
        if offset < end:
            self._partial += data[offset:]
        return frames

    def _length(self, data: bytes | bytearray, offset: int) -> int:
        length = int(_LENGTH.unpack_from(data, offset)[0])
        if length < 0:
            self.failure = WireError(f"a frame of negative length {length}")
            return 0
        if length > self.frame_bytes_max:
            self.refused_length = length
            name = f" ({self.limit_name})" if self.limit_name else ""
            self.failure = WireError(f"a frame of {length} bytes; the limit is {self.frame_bytes_max}{name}")
            return 0
        return length


OUTER_SHARE: Final = 4
"""The outer arrays of a request may have a fourth of its elements, and the structs in arrays of these another one: each
has an answer or a record of its own, as topics and partitions have."""


ARRAY_LENGTH_MAX: Final = 1_000_000
"""Elements of one array that Kafka's readers accept since 4.2.2 and 4.4.0 (MessageUtil.MAX_ARRAY_LENGTH)."""

TAGGED_FIELD_COUNT_MAX: Final = 10_000
"""Tagged fields of one struct that they accept (MessageUtil.MAX_TAGGED_FIELD_COUNT)."""


class TooManyElementsError(WireError):
    """A request has more elements than the server allows."""

    kind = "request_elements_max"


class ElementBudget:
    """The number of elements that the reader of one message may still make, counted before they are made.

    Elements are those of arrays at any depth and unknown tagged fields. The smallest take one byte and become objects
    of a hundred, so that without a limit a request of 8 MiB would take a second and a gigabyte to read. With
    `is_bounded` each array and each struct's tagged fields have Kafka's limits, too (MessageUtil).
    """

    __slots__ = ("_elements_max", "_is_bounded", "_left", "_shares", "exceeded")

    def __init__(self, elements_max: int, *, is_bounded: bool = False) -> None:
        self._elements_max = elements_max
        self._is_bounded = is_bounded
        self._left = elements_max
        self._shares = [-(-elements_max // OUTER_SHARE)] * 2
        self.exceeded = ""
        """What there were too many of."""

    def spend(self, count: int, level: int = 3) -> None:
        """Take `count` elements. Raises WireError if fewer are left; then `exceeded` is set.

        `level` is 0 for tagged fields, 1 for an outer array, 2 for one of structs in the elements of such.
        """
        if self._is_bounded and count > (ARRAY_LENGTH_MAX if level else TAGGED_FIELD_COUNT_MAX):
            raise WireError(f"{count} {'elements' if level else 'tagged fields'}: Kafka reads fewer")
        self._left -= count
        if self._left < 0:
            self.exceeded = f"{self._elements_max} elements, request_elements_max={self._elements_max}"
        elif level in (1, 2):
            self._shares[level - 1] -= count
            if self._shares[level - 1] < 0:
                of = "elements in its outer arrays" if level == 1 else "structs in the arrays of those in outer arrays"
                self.exceeded = f"{-(-self._elements_max // OUTER_SHARE)} {of}, a quarter of "
                self.exceeded += f"request_elements_max={self._elements_max}"
        if self.exceeded:
            raise WireError(f"more than {self.exceeded}")


class Request(NamedTuple):
    """The header of a received request and the offset of its body in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    frame: bytes
    body_offset: int


def endpoint_of(text: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[address]:port`. Raises ValueError."""
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]"), int(port)


def parse_request(frame: bytes, messages: MessageLookup = messages) -> Request:
    """Read the header of a request frame (Kafka's RequestHeader.parse), but not the body.

    `messages` may be an Overlay. Raises WireError for an unknown API key and for a malformed header.
    """
    if len(frame) < 4:
        raise WireError(f"a request of {len(frame)} bytes has no API key and version")
    if len(frame) > 10:
        # The header that nearly all requests have: a client id, no tagged fields.
        api_key, api_version, correlation_id, size = _HEADER.unpack_from(frame)
        end = 10 + size
        if 10 <= end < len(frame) and not frame[end] and messages.request_header_version(api_key, api_version) == 2:
            try:
                client_id = frame[10:end].decode()
            except UnicodeDecodeError:
                pass  # reported below, with its offset
            else:
                # As Request(…), without the call of a Python function.
                return _tuple_new(Request, (api_key, api_version, correlation_id, client_id, frame, end + 1))
    api_key, api_version = _ROUTE.unpack_from(frame)
    header_version = messages.request_header_version(api_key, api_version)
    header, body_offset = RequestHeader.read_from(frame, header_version, 0, ElementBudget(HEADER_TAGS_MAX).spend)
    return Request(api_key, api_version, header.correlation_id, header.client_id, frame, body_offset)


def read_request_body(request: Request, request_class: type[M], elements_max: int, *, is_bounded: bool = False) -> M:
    """Read the body of a request that has at most so many elements, with the shares of OUTER_SHARE.

    `is_bounded` is as in ElementBudget. Raises TooManyElementsError for more, before they are made, and WireError for
    malformed bytes.
    """
    frame, version, offset = request.frame, request.api_version, request.body_offset
    outer_max = -(-elements_max // OUTER_SHARE)
    counted_from = min(outer_max, TAGGED_FIELD_COUNT_MAX) if is_bounded else outer_max
    if len(frame) <= counted_from:  # an element takes at least one byte
        return request_class.read_from(frame, version, offset)[0]
    budget = ElementBudget(elements_max, is_bounded=is_bounded)
    try:
        return request_class.read_from(frame, version, offset, budget.spend)[0]
    except WireError as wrong:
        if not budget.exceeded:
            raise
        about = f"{request_class.__name__} of client {request.client_id!r}"
        raise TooManyElementsError(f"{about} has more than {budget.exceeded}") from wrong


def version_for(request: type[Message] | Message, offered: Mapping[int, tuple[int, int]]) -> int:
    """Return the newest version of a request that both sides support; `offered` are the (min, max) by API key.

    Raises UnsupportedVersionError.
    """
    versions = offered.get(request.api_key)
    if versions is None:
        raise UnsupportedVersionError(f"the node does not support {api_keys.name(request.api_key)}")
    version = min(versions[1], request.max_version)
    if version < max(versions[0], request.min_version):
        raise UnsupportedVersionError(
            f"the node offers {api_keys.name(request.api_key)} {versions[0]}-{versions[1]}, "
            f"this client speaks {request.min_version}-{request.max_version}"
        )
    return int(version)


def worded(request: Message, overlay: MessageLookup) -> Message:
    """Return one of Kafka's requests as a message of an Overlay."""
    # Imported here: without a proposal the generator need not be in memory.
    from mockraft.wire.recast import recast

    overlaid = overlay.request(request.api_key)
    return request if isinstance(request, overlaid) else recast(request, overlaid)


def write_request(message: Message, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return a request as sent on the wire, including its length."""
    api_key = message.api_key
    is_flexible = api_version >= message.flexible_from
    if is_flexible and client_id is not None and len(name := client_id.encode()) < 1 << 15:
        # The header that nearly all requests have: a client id, no tagged fields.
        header = b"%b%b\0" % (_HEADER.pack(api_key, api_version, correlation_id, len(name)), name)
    else:
        header = RequestHeader(
            request_api_key=api_key, request_api_version=api_version, correlation_id=correlation_id, client_id=client_id
        ).write(2 if is_flexible else 1)
    body = message.write(api_version)
    return b"".join((_LENGTH.pack(len(header) + len(body)), header, body))


def write_response(body: bytes, correlation_id: int, header_version: int) -> bytes:
    """Return a response as sent on the wire, including its length, from its encoded body."""
    header = _RESPONSE_HEADERS[header_version]
    return header.pack(header.size - 4 + len(body), correlation_id) + body


def read_response(frame: bytes, api_key: int, api_version: int) -> Any:
    """Read a response frame whose correlation id is known and whose header has no tagged fields."""
    offset = 4 + messages.response_header_version(api_key, api_version)
    return read_response_body(frame, offset, api_key, api_version)


def read_response_body(
    frame: bytes, offset: int, api_key: int, api_version: int, messages: MessageLookup = messages
) -> Any:
    """Read a response body starting at `offset`; `messages` may be an Overlay.

    An ApiVersions response may be version 0 whatever was requested: servers report error 35 (UNSUPPORTED_VERSION) so.
    """
    message_class = messages.response(api_key)
    body = frame[offset:]
    if api_key == api_keys.API_VERSIONS and api_version > 0 and body[:2] == b"\0\x23":
        return message_class.read(body, 0)
    return message_class.read(body, api_version)

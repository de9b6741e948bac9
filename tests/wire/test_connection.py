import random
import struct
import time

import pytest
from mockraft.wire import messages
from mockraft.wire.connection import (
    FRAME_BYTES_MAX,
    FrameReader,
    parse_request,
    read_response_body,
    write_request,
    write_response,
)
from mockraft.wire.errors import WireError
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

from ..rows import each_row

API_VERSIONS_FRAME = bytes.fromhex("00120004000000010004333030300012") + b"apache-kafka-java\x06" + b"4.3.1\x00"
"""The first bytes that a 4.3.1 controller sends."""


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@each_row("frames", [[b""], [b"a"], [b"abc", b"", b"defgh"], [b"x" * 70_000, b"y"]])
@each_row("slice_bytes", [1, 2, 3, 5, 1 << 20])
def test_frames_are_the_same_however_they_were_sliced(frames: list[bytes], slice_bytes: int) -> None:
    data = framed(*frames)
    reader = FrameReader()
    received = []
    for offset in range(0, len(data), slice_bytes):
        received += reader.receive_data(data[offset : offset + slice_bytes])
    assert received == frames
    assert reader.partial_bytes == 0
    assert reader.awaited_bytes == 0


def test_random_slices_give_the_same_frames() -> None:
    rng = random.Random(7)
    frames = [rng.randbytes(rng.randrange(0, 300)) for _ in range(200)]
    data = framed(*frames)
    for _ in range(20):
        reader, received, offset = FrameReader(), [], 0
        while offset < len(data):
            end = offset + rng.randrange(0, 400)
            received += reader.receive_data(data[offset:end])
            offset = end
        assert received == frames


def test_reports_the_buffered_part_of_a_frame() -> None:
    reader = FrameReader()
    assert reader.receive_data(b"\0\0") == []
    assert (reader.partial_bytes, reader.awaited_bytes) == (2, 4)
    assert reader.receive_data(b"\0\x05ab") == []
    assert (reader.partial_bytes, reader.awaited_bytes) == (6, 9)


@each_row("length", [-1, -(2**31), 101, 2**31 - 1])
@each_row("slice_bytes", [1, 4, 100])
def test_refuses_a_length_out_of_bounds(length: int, slice_bytes: int) -> None:
    data = struct.pack(">i", length) + b"abcdef"
    reader = FrameReader(frame_bytes_max=100)
    with pytest.raises(WireError, match=r"negative length|the limit is 100"):  # noqa: PT012
        for offset in range(0, len(data), slice_bytes):
            reader.receive_data(data[offset : offset + slice_bytes])
    assert reader.failure is not None
    with pytest.raises(WireError):
        reader.receive_data(b"\0\0\0\0")


def test_frames_ahead_of_a_bad_length_are_handed_out_first() -> None:
    reader = FrameReader()
    assert reader.receive_data(framed(b"one", b"two") + b"\xff\xff\xff\xff") == [b"one", b"two"]
    assert reader.failure is not None
    with pytest.raises(WireError, match="negative length -1"):
        reader.receive_data(b"")


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    assert FrameReader(frame_bytes_max=5).receive_data(framed(b"12345")) == [b"12345"]
    assert FRAME_BYTES_MAX == 100 * 1024 * 1024


def test_single_bytes_cost_no_more_than_their_number() -> None:
    def seconds(size: int) -> float:
        data = framed(bytes(size))
        reader = FrameReader()
        started = time.process_time()
        for offset in range(len(data)):
            reader.receive_data(data[offset : offset + 1])
        return time.process_time() - started

    small, large = min(seconds(20_000) for _ in range(3)), min(seconds(200_000) for _ in range(2))
    assert large < 40 * small


def test_reads_the_header_of_a_captured_request() -> None:
    request = parse_request(API_VERSIONS_FRAME)
    assert request[:4] == (18, 4, 1, "3000")
    body = ApiVersionsRequest.read(request.frame[request.body_offset :], request.api_version)
    assert (body.client_software_name, body.client_software_version) == ("apache-kafka-java", "4.3.1")


def test_writes_a_captured_request() -> None:
    message = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.1")
    assert write_request(message, 4, 1, "3000") == framed(API_VERSIONS_FRAME)


def test_writes_a_heartbeat_like_a_broker() -> None:
    frame = bytes.fromhex("003f00020000000200013100000000010000000000000011000000000000001001000000")[:-1]
    request = parse_request(frame)
    body = BrokerHeartbeatRequest.read(frame[request.body_offset :], 2)
    assert (body.broker_id, body.broker_epoch, body.current_metadata_offset, body.want_fence) == (1, 17, 16, True)
    assert write_request(body, 2, 2, "1") == framed(frame)


def test_a_heartbeat_response_has_the_tag_byte_of_a_flexible_header() -> None:
    body = BrokerHeartbeatResponse(is_fenced=True).write(1)
    assert write_response(body, 2, messages.response_header_version(63, 1)) == framed(
        bytes.fromhex("00000002 00 00000000 0000 00 01 00 00")
    )


@each_row("frame", [b"", b"\0", b"\0\x12\0", b"\0\x12\0\0", b"\0\x12\0\0\0\0\0", b"\0\x12\0\x04\0\0\0\1\0\5a"])
def test_refuses_a_header_that_ends_too_early(frame: bytes) -> None:
    with pytest.raises(WireError):
        parse_request(frame)


@each_row("api_key", [-1, 4, 6, 999, 32767])
def test_refuses_an_api_key_that_kafka_has_no_request_for(api_key: int) -> None:
    with pytest.raises(WireError, match=f"api key {api_key}"):
        parse_request(struct.pack(">hhih", api_key, 0, 1, -1))


def test_a_version_that_is_too_high_still_has_a_readable_header() -> None:
    assert parse_request(struct.pack(">hhihB", 18, 99, 5, -1, 0))[:4] == (18, 99, 5, None)


@each_row("version", range(5))
def test_api_versions_responses_have_header_version_0(version: int) -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)])
    frame = write_response(response.write(version), 9, messages.response_header_version(18, version))[4:]
    assert frame[:6] == b"\0\0\0\x09\0\0"
    assert read_response_body(frame, 4, 18, version) == response


def test_an_api_versions_error_is_read_in_version_0() -> None:
    response = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=4)])
    frame = write_response(response.write(0), 1, 0)[4:]
    assert read_response_body(frame, 4, 18, 4) == response


def test_a_reader_returns_no_more_frames_than_asked_for() -> None:
    reader = FrameReader()
    frames = [bytes([n]) for n in range(5)]
    data = b"".join(b"\0\0\0\1" + each for each in frames) + b"\0\0"
    assert reader.receive_data(data, 2) == frames[:2]
    assert reader.has_more
    assert reader.receive_data(b"\0\1\5", 3) == frames[2:]
    assert reader.has_more
    assert reader.receive_data(b"", 3) == [b"\5"]
    assert not reader.has_more

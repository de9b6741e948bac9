"""Frames to messages: every row stays, with its decode status."""

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from mockraft.spark_replay.decoding import decode_batches, decode_frames
from mockraft.spark_replay.decoding.verdicts import first_difference
from mockraft.spark_replay.schemas import FRAMES, MESSAGES
from mockraft.wire.messages.api_versions_response import ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic

from .conftest import frame_table, request_frame, response_frame


def only(messages: pa.RecordBatch) -> dict[str, Any]:
    (row,) = messages.to_pylist()
    return dict(row)


@pytest.mark.parametrize(("name", "rows"), [("controller-4.3.1", 1726), ("brokers-4.3.1", 931)])
def test_every_frame_of_a_real_capture_is_read_and_written_again(captured: Any, name: str, rows: int) -> None:
    table = pa.Table.from_batches(decode_frames(frames) for frames in captured[name])
    assert table.schema == MESSAGES
    assert Counter(table["decode_status"].to_pylist()) == {"ok": rows}
    assert Counter(table["roundtrip"].to_pylist()) == {True: rows}
    assert table["first_diff_offset"].null_count == table["error"].null_count == rows
    assert Counter(map(str, table["unknown_tags"].to_pylist())) == {"[]": rows}
    assert all(json.loads(body) is not None for body in table["body"].to_pylist())


def test_message_keeps_the_frame_columns_and_gets_its_api_name() -> None:
    frames = frame_table([request_frame(BrokerHeartbeatRequest(broker_id=7), 2)])
    row = only(decode_frames(frames))
    assert {name: row[name] for name in FRAMES.names if name != "frame"} == {
        name: value for name, value in only(frames).items() if name != "frame"
    }
    assert row["api_name"] == "BrokerHeartbeat"
    assert json.loads(row["body"])["brokerId"] == 7
    assert " " not in row["body"]


def test_omits_bodies_on_request() -> None:
    row = only(decode_frames(frame_table([request_frame(BrokerHeartbeatRequest(), 2)]), body="none"))
    assert (row["decode_status"], row["roundtrip"], row["body"]) == ("ok", True, None)


def test_rejects_unknown_body_argument() -> None:
    with pytest.raises(ValueError, match="body must be json or none, not 'xml'"):
        decode_frames(frame_table([]), body="xml")  # type: ignore[arg-type]


def test_no_frames_are_no_messages() -> None:
    assert decode_frames(frame_table([])).num_rows == 0


def test_undecodable_frame_is_a_row_with_reason() -> None:
    data, _, _, _ = request_frame(BrokerHeartbeatRequest(), 2)
    messages = decode_frames(
        frame_table(
            [
                (data, 63, 2, False),
                (data, 9999, 0, False),
                (data, -1, -1, True),
                (data, 63, 99, False),
                (data[:-5], 63, 2, False),
                (data + b"more", 63, 2, False),
                (b"", 63, 2, False),
                (None, 63, 2, False),
                (data, None, None, False),
            ]
        )
    ).to_pylist()
    assert [row["decode_status"] for row in messages] == [
        "ok",
        "unknown_api",
        "unknown_api",
        "unknown_version",
        "error",
        "error",
        "error",
        "truncated",
        "opaque",
    ]
    assert [row["frame_no"] for row in messages] == [*range(9)]
    assert [row["roundtrip"] for row in messages] == [True] + [None] * 8
    assert messages[1]["api_name"] is None
    assert messages[3]["error"] == "BrokerHeartbeatRequest has versions 0 to 2"
    assert messages[5]["error_offset"] == len(data)
    assert messages[5]["error"] == "BrokerHeartbeatRequest v2: 4 bytes too many"


def test_an_error_is_placed_in_the_frame_not_in_the_body() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="abc")])
    data, key, version, _ = request_frame(request, 4, client_id="client")
    at = data.index(b"abc")
    row = only(decode_frames(frame_table([(data[:at] + b"a\xff" + data[at + 2 :], key, version, False)])))
    assert row["decode_status"] == "error"
    assert "not UTF-8" in row["error"]
    assert at <= row["error_offset"] <= at + 3


def test_bytes_that_the_codec_writes_differently_are_found() -> None:
    data, key, version, _ = response_frame(BrokerHeartbeatResponse(is_fenced=True), 1)
    at = len(data) - 2 - 1
    assert data[at] == 1
    row = only(decode_frames(frame_table([(data[:at] + b"\x07" + data[at + 1 :], key, version, True)])))
    assert (row["decode_status"], row["roundtrip"], row["first_diff_offset"]) == ("ok", False, at)


def test_reports_unknown_tags_of_header_and_body() -> None:
    header = b"\x00\x00\x00\x01" + b"\x01\x05\x01x"
    body = BrokerHeartbeatResponse(unknown_tagged_fields=[(7, b"seven"), (300, b"")]).write(1)
    row = only(decode_frames(frame_table([(header + body, 63, 1, True)])))
    assert (row["decode_status"], row["roundtrip"], row["unknown_tags"]) == ("ok", True, [5, 7, 300])


@pytest.mark.parametrize("version", [3, 4, 5])
def test_an_answer_to_a_version_that_the_server_lacks_is_read_as_version_0(version: int) -> None:
    data, _, _, _ = response_frame(ApiVersionsResponse(error_code=35), 0)
    row = only(decode_frames(frame_table([(data, 18, version, True)])))
    assert (row["decode_status"], row["roundtrip"]) == ("ok", True)
    assert json.loads(row["body"]) == {"errorCode": 35, "apiKeys": []}


def test_batches_are_cut_so_that_little_is_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [request_frame(BrokerHeartbeatRequest(broker_id=n), 2) for n in range(10)]
    one = len(rows[0][0])
    monkeypatch.setattr("mockraft.spark_replay.decoding.message_table.BATCH_BYTES_MAX", 3 * one)
    parts = list(decode_batches([frame_table(rows), frame_table([]), frame_table(rows[:1])]))
    assert [part.num_rows for part in parts] == [3, 3, 3, 1, 1]
    monkeypatch.setattr("mockraft.spark_replay.decoding.message_table.BATCH_BYTES_MAX", 1)
    parts = list(decode_batches([frame_table(rows)]))
    assert [part.num_rows for part in parts] == [1] * 10
    assert [json.loads(part["body"][0].as_py())["brokerId"] for part in parts] == [*range(10)]


@pytest.mark.parametrize(
    ("written", "data", "at"),
    [(b"", b"", 0), (b"abc", b"abd", 2), (b"xbc", b"abc", 0), (b"ab", b"abc", 2), (b"abc", b"", 0), (b"a", b"b", 0)],
)
def test_the_first_difference_of_two_texts(written: bytes, data: bytes, at: int) -> None:
    assert first_difference(written, data) == at


def test_a_message_of_too_many_values_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mockraft.spark_replay.decoding.verdicts.LARGE_BODY_BYTES", 100)
    monkeypatch.setattr("mockraft.spark_replay.decoding.verdicts.VALUES_MAX", 60)
    small = request_frame(MetadataRequest(topics=[MetadataRequestTopic(name="t" * 90)] * 10), 4)
    large = request_frame(MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 40), 4)
    uuids = request_frame(BrokerHeartbeatRequest(offline_log_dirs=[bytes(16)] * 80), 2)
    broken = small[0][:-1], *small[1:]
    verdicts = decode_frames(frame_table([small, large, uuids, broken]))
    assert verdicts["decode_status"].to_pylist() == ["ok", "error", "error", "error"]
    errors = verdicts["error"].to_pylist()
    assert errors[1] == errors[2] == "too many values in one message"
    assert "end" in errors[3]

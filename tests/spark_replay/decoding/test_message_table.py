"""Frames to messages: every row stays with its decode status, and pieces of snapshots come in any order."""

import json
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.codegen.every_release import every_release
from mockraft.spark_replay.decoding import decode_batches, decode_frames
from mockraft.spark_replay.decoding.frame_shapes import SHAPES_BYTES_MAX, ShapeTable
from mockraft.spark_replay.decoding.snapshot_chunks import PIECE_BYTES, Chunk, Incomplete, SnapshotChunks
from mockraft.spark_replay.decoding.verdicts import first_difference
from mockraft.spark_replay.schemas import FRAMES, MESSAGES
from mockraft.vectors.bodies import random_body
from mockraft.wire.json_form import from_json
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.api_versions_response import ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.fetch_request import FetchRequest, ReplicaState
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockraft.wire.overlay import using

from .conftest import AnyRow, Row, frame_table, request_frame, response_frame


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
    answer, _, _, _ = response_frame(BrokerHeartbeatResponse(), 2)
    rows: dict[str, list[AnyRow]] = {
        "ok": [(data, 63, 2, False)],
        "unknown_api": [(data, 9999, 0, False), (data, -1, -1, True)],
        "unknown_version": [(data, 63, 99, False)],
        "error": [(data[:-5], 63, 2, False), (answer + b"more", 63, 2, True), (b"", 63, 2, False)],
        "truncated": [(None, 63, 2, False)],
        "opaque": [(data, None, None, False)],
    }
    messages = decode_frames(frame_table([row for listed in rows.values() for row in listed])).to_pylist()
    assert [row["decode_status"] for row in messages] == [status for status, listed in rows.items() for _ in listed]
    assert [row["frame_no"] for row in messages] == [*range(9)]
    assert [row["roundtrip"] for row in messages] == [True] + [None] * 8
    assert messages[1]["api_name"] is None
    assert messages[3]["error"] == "BrokerHeartbeatRequest has versions 0 to 2"
    assert messages[5]["error_offset"] == len(answer)
    assert messages[5]["error"] == "BrokerHeartbeatResponse v2: 4 bytes too many"


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


# Bytes that mean something somewhere: null, true, the ends of a varint and of ASCII, what JSON escapes.
TELLING = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF, 0x22, 0x5C, 0x1F)


def verify_equal(frames: pa.RecordBatch, body: str = "json") -> pa.RecordBatch:
    """Return the messages of the frames, after checking that both paths give the same."""
    together = decode_frames(frames, body)  # type: ignore[arg-type]
    alone = decode_frames(frames, body, by_shape=False)  # type: ignore[arg-type]
    for index, (one, other) in enumerate(zip(together.to_pylist(), alone.to_pylist(), strict=True)):
        assert one == other, frames.column("frame")[index].as_py().hex()
    return together


def hits(table: ShapeTable) -> int:
    return sum(shape.hits for known in table._sizes.values() for shape in known.shapes)


def changed(row: Row, at: int, data: bytes) -> Row:
    return (row[0][:at] + data + row[0][at + len(data) :])[: len(row[0])], *row[1:]


def mutants(row: Row, rng: Random, count: int) -> list[Row]:
    found = []
    for _ in range(count):
        at = rng.randrange(len(row[0]))
        one = bytes((rng.choice((*TELLING, row[0][at] ^ 1, rng.randrange(256))),))
        found.append(changed(row, at, rng.choice((one, one, one, bytes(4), b"\xff" * 4, rng.randbytes(8)))))
    return found


@pytest.mark.parametrize("body", ["json", "none"])
def test_real_captures_are_judged_by_shape_as_one_by_one(
    captured: dict[str, list[pa.RecordBatch]], table: ShapeTable, body: str
) -> None:
    frames = pa.Table.from_batches(captured["controller-4.3.1"]).combine_chunks().to_batches()[0]
    messages = verify_equal(frames, body)
    assert messages["roundtrip"].true_count == 1726
    assert hits(table) > 0.8 * 1726


@given(st.data())
@settings(max_examples=40)
def test_shapes_agree_on_changed_bytes_of_a_real_frame(captured_rows: list[Row], data: Any) -> None:
    row = data.draw(st.sampled_from(captured_rows))
    edits = st.tuples(st.integers(0, len(row[0]) - 1), st.binary(min_size=1, max_size=9))
    changes = data.draw(st.lists(edits, max_size=12))
    verify_equal(frame_table([row] * 6 + [changed(row, *change) for change in changes]))


def test_every_byte_of_frequent_frames_may_change(captured_rows: list[Row], table: ShapeTable) -> None:
    short = {(*row[1:], len(row[0])): row for row in captured_rows if len(row[0]) < 48}
    for row in list(short.values())[::3]:
        rows = [changed(row, at, bytes((value,))) for at in range(len(row[0])) for value in TELLING]
        verify_equal(frame_table([row] * 5 + rows), "none")
    assert len(short) > 10
    assert hits(table) > 300


@pytest.mark.parametrize("part", range(12))
def test_shapes_agree_on_changed_bytes_of_every_message_in_every_version(table: ShapeTable, part: int) -> None:
    rng = Random(part)
    rows: list[Row] = []
    every = every_release()
    for name in sorted({*every.requests.values(), *every.responses.values()})[part::12]:
        cls: Any = every.by_name(name)
        for version in range(cls.min_version, cls.max_version + 1):
            if (name, version) == ("ControlledShutdownRequest", 0):
                continue  # its header has no client id
            with using(every):
                body = random_body(name, version, rng, rng.choice(("plain", "mixed")))
            message = from_json(cls, body, version)
            row = (request_frame if name.endswith("Request") else response_frame)(message, version)
            if len(row[0]) < 2000:
                rows += [row] * 4 + mutants(row, rng, 12)
    verdicts = verify_equal(frame_table(rows), rng.choice(("json", "none")))
    assert len({*verdicts["decode_status"].to_pylist()}) > 1
    assert hits(table) > len(rows) / 8


def test_versions_that_the_newest_release_has_dropped_are_decoded() -> None:
    asked = every_release().by_name("ListOffsetsRequest")(), every_release().by_name("ControlledShutdownRequest")()
    without_client_id = bytes.fromhex("0007 0000 00000001 00000003")
    rows = [request_frame(asked[0], 0), request_frame(asked[1], 3), (without_client_id, 7, 0, False)]
    assert [
        (row["api_name"], row["decode_status"], row["body"]) for row in decode_frames(frame_table(rows)).to_pylist()
    ] == [
        ("ListOffsets", "ok", '{"replicaId":0,"topics":[]}'),
        ("ControlledShutdown", "ok", '{"brokerId":0,"brokerEpoch":-1}'),
        ("ControlledShutdown", "ok", '{"brokerId":3}'),
    ]


def test_frames_differing_only_in_values_share_a_shape(table: ShapeTable) -> None:
    rows = [
        request_frame(BrokerHeartbeatRequest(broker_id=n, broker_epoch=n * n), 1, client_id=f"{n:04}")
        for n in range(500)
    ]
    verdicts = verify_equal(frame_table(rows))
    assert verdicts["roundtrip"].true_count == 500
    assert hits(table) == 499


@pytest.mark.parametrize("byte", [2, 0x80, 0xFF])
def test_a_bool_that_is_neither_0_nor_1_is_no_round_trip(byte: int) -> None:
    row = response_frame(BrokerHeartbeatResponse(is_fenced=True), 1)
    at = len(row[0]) - 3
    verdicts = verify_equal(frame_table([row] * 6 + [changed(row, at, bytes((byte,)))]))
    assert verdicts["roundtrip"].to_pylist() == [True] * 6 + [False]
    assert verdicts["first_diff_offset"][6].as_py() == at


def test_text_that_is_not_ascii_is_judged_by_itself() -> None:
    def asked(topic: str) -> Row:
        row: Row = request_frame(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
        return row

    plain, umlaut, quoted = asked("topic"), asked("töpic"[:4]), asked('to"ic')
    broken = changed(plain, plain[0].index(b"topic"), b"\xfftopi")
    verdicts = verify_equal(frame_table([plain] * 6 + [umlaut] * 6 + [quoted, broken] * 6))
    assert verdicts["decode_status"].to_pylist() == ["ok"] * 12 + ["ok", "error"] * 6


def test_a_tagged_field_that_holds_its_default_is_no_round_trip() -> None:
    row = request_frame(FetchRequest(replica_state=ReplicaState(replica_id=1, replica_epoch=5)), 17)
    at = row[0].index((1).to_bytes(4) + (5).to_bytes(8))
    default = changed(row, at, b"\xff" * 12)
    other = changed(row, at, b"\xff" * 4 + (9).to_bytes(8))
    verdicts = verify_equal(frame_table([row] * 6 + [default, other]))
    assert verdicts["roundtrip"].to_pylist() == [True] * 6 + [False, True]


def test_shapes_agree_on_floats_of_any_bits() -> None:
    op = OpData(key="rate", value=1024.5)
    request = AlterClientQuotasRequest(entries=[EntryData(entity=[EntityData(entity_type="user")], ops=[op])])
    row = request_frame(request, 1)
    at = row[0].index(b"\x05rate") + 5
    starts = ["7ff000", "fff000", "7ff800", "800000", "000000", "001000", "402400"]
    bits = [*(start.ljust(16, "0") for start in starts), "7ff0000000000001"]
    rows = [changed(row, at, bytes.fromhex(text)) for text in bits]
    verdicts = verify_equal(frame_table([row] * 6 + rows * 2))
    assert {*verdicts["decode_status"].to_pylist()} == {"ok"}


def test_unused_shapes_take_no_memory(table: ShapeTable) -> None:
    rng = Random(1)
    for _ in range(30):
        names = ["".join(rng.choices("ab", k=rng.randrange(40))) for _ in range(60)]
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        decode_frames(frame_table([request_frame(request, 9)] * 4), "none")
    assert table._bytes == sum(shape.size for known in table._sizes.values() for shape in known.shapes)
    assert 0 < table._bytes < SHAPES_BYTES_MAX


def test_the_shapes_used_longest_ago_go_first(table: ShapeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mockraft.spark_replay.decoding.frame_shapes.SHAPES_BYTES_MAX", 20_000)
    for length in range(100):
        row = request_frame(BrokerHeartbeatRequest(), 1, client_id="c" * length)
        decode_frames(frame_table([row] * 5), "none")
    sizes: list[Any] = [key[-1] for key in table._sizes]
    assert 1 < len(sizes) < 20
    assert sizes == [*range(sizes[0], sizes[0] + len(sizes))]
    assert table._bytes <= 20_000


FRAME = pa.record_batch({"frame_no": [1]})
SIZE = 10_000


def test_many_small_pieces_are_given_up_by_the_memory_that_they_take() -> None:
    chunks = SnapshotChunks(kept_bytes_max=100 * PIECE_BYTES)
    given_up = [
        found
        for position in range(SIZE, 0, -2)
        for found in chunks.add(("snapshot",), Chunk(FRAME, position, b"x"), SIZE)
    ]
    assert all(isinstance(each, Incomplete) and each.held_bytes <= 100 for each in given_up)
    assert len(given_up) == SIZE // 2 // 100


def test_pieces_that_overlap_are_joined() -> None:
    data, chunks = bytes(range(200)), SnapshotChunks()
    cuts = [(100, 150), (20, 30), (90, 140), (0, 120), (150, 200)]
    pieces = [found for low, high in cuts for found in chunks.add((1,), Chunk(FRAME, low, data[low:high]), 200)]
    assert b"".join(each.data for each in pieces if isinstance(each, Chunk)) == data
    assert list(chunks.finish()) == []
    assert chunks._kept_bytes == 0


def test_nothing_is_kept_of_a_whole_snapshot() -> None:
    chunks = SnapshotChunks(kept_bytes_max=3 * PIECE_BYTES)
    for _ in range(10):
        pieces = [found for position in (4, 2, 0) for found in chunks.add((1,), Chunk(FRAME, position, b"xx"), 6)]
        assert [each.data for each in pieces if isinstance(each, Chunk)] == [b"xxxxxx"]
    assert chunks._kept_bytes == 0

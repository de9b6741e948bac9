"""Judging frames by shape gives the same results as one by one, whatever their bytes."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft.spark_replay.decoding import decode_frames, message_table
from mockraft.spark_replay.decoding.shapes import SHAPES_BYTES_MAX, ShapeTable
from mockraft.wire import messages
from mockraft.wire.json_form import from_json
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.fetch_request import FetchRequest, ReplicaState
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic

from ...wire.conftest import random_body
from .conftest import frame_table, request_frame, response_frame

Row = tuple[bytes, int, int, bool]
# Bytes that mean something somewhere: null, true, the ends of a varint and of ASCII, what JSON escapes.
TELLING = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF, 0x22, 0x5C, 0x1F)


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> ShapeTable:
    """Start every test with an empty shape table."""
    fresh = ShapeTable()
    monkeypatch.setattr(message_table, "KNOWN_SHAPES", fresh)
    return fresh


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


def mutants(row: Row, chance: Random, count: int) -> list[Row]:
    found = []
    for _ in range(count):
        at = chance.randrange(len(row[0]))
        one = bytes((chance.choice((*TELLING, row[0][at] ^ 1, chance.randrange(256))),))
        found.append(changed(row, at, chance.choice((one, one, one, bytes(4), b"\xff" * 4, chance.randbytes(8)))))
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
@settings(max_examples=40, deadline=None)
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
    chance = Random(part)
    rows: list[Row] = []
    for name in sorted({*messages.REQUESTS.values(), *messages.RESPONSES.values()})[part::12]:
        cls: Any = messages.by_name(name)
        for version in range(cls.min_version, cls.max_version + 1):
            message = from_json(cls, random_body(name, version, chance, chance.choice(("plain", "mixed"))), version)
            row = (request_frame if name.endswith("Request") else response_frame)(message, version)
            if len(row[0]) < 2000:
                rows += [row] * 4 + mutants(row, chance, 12)
    verdicts = verify_equal(frame_table(rows), chance.choice(("json", "none")))
    assert len({*verdicts["decode_status"].to_pylist()}) > 1
    assert hits(table) > len(rows) / 8


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
    bits = [
        "7ff0000000000000",
        "fff0000000000000",
        "7ff0000000000001",
        "7ff8000000000000",
        "8000000000000000",
        "0" * 16,
    ]
    rows = [changed(row, at, bytes.fromhex(text)) for text in [*bits, "0010000000000000", "4024000000000000"]]
    verdicts = verify_equal(frame_table([row] * 6 + rows * 2))
    assert {*verdicts["decode_status"].to_pylist()} == {"ok"}


def test_unused_shapes_take_no_memory(table: ShapeTable) -> None:
    chance = Random(1)
    for _ in range(30):
        names = ["".join(chance.choices("ab", k=chance.randrange(40))) for _ in range(60)]
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        decode_frames(frame_table([request_frame(request, 9)] * 4), "none")
    assert table._bytes == sum(shape.size for known in table._sizes.values() for shape in known.shapes)
    assert 0 < table._bytes < SHAPES_BYTES_MAX


def test_the_shapes_used_longest_ago_go_first(table: ShapeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mockraft.spark_replay.decoding.shapes.SHAPES_BYTES_MAX", 20_000)
    for length in range(100):
        row = request_frame(BrokerHeartbeatRequest(), 1, client_id="c" * length)
        decode_frames(frame_table([row] * 5), "none")
    sizes: list[Any] = [key[-1] for key in table._sizes]
    assert 1 < len(sizes) < 20
    assert sizes == [*range(sizes[0], sizes[0] + len(sizes))]
    assert table._bytes <= 20_000

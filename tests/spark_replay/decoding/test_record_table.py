"""Records in Produce, Fetch and FetchSnapshot, those of the metadata log as JSON, and messages that Envelopes carry."""

import base64
import gc
import itertools
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from crc32c import crc32c
from mockraft import Controller
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches, decode_forwarded_batches, decode_record_batches
from mockraft.spark_replay.schemas import FORWARDED, FRAMES, RECORDS
from mockraft.wire import messages, metadata_log_frame, record_batch, records
from mockraft.wire.messages import fetch_response as fetch
from mockraft.wire.messages import fetch_snapshot_response as snapshots
from mockraft.wire.messages import incremental_alter_configs_request as alter
from mockraft.wire.messages import produce_request as produce
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData

from ...bombs import CODECS, EMPTY_RECORD, bomb, compressed_batch
from ...budgets import sample
from .conftest import Row, frame_table, request_frame, response_frame

METADATA = bytes(15) + b"\1"
KAFKA_BATCHES = Path(__file__).with_name("kafka_batches.txt").read_text().splitlines()[1:]
OLD_MESSAGES = Path(__file__).with_name("old_messages.txt").read_text().splitlines()[1:]


def fetched(data: bytes, topic_id: bytes = METADATA, version: int = 17) -> Row:
    topic = fetch.FetchableTopicResponse(
        topic_id=topic_id if version > 12 else bytes(16),
        topic="" if version > 12 else "__cluster_metadata",
        partitions=[fetch.PartitionData(records=data)],
    )
    return response_frame(messages.FetchResponse(responses=[topic]), version)


def produced(data: bytes, version: int) -> Row:
    partition = produce.PartitionProduceData(index=4, records=data)
    name, topic_id = ("", bytes(range(16))) if version > 12 else ("orders", bytes(16))
    topic = produce.TopicProduceData(name=name, topic_id=topic_id, partition_data=[partition])
    return request_frame(messages.ProduceRequest(topic_data=[topic]), version)


def snapshot_piece(position: int, data: bytes) -> Row:
    partition = snapshots.PartitionSnapshot(
        snapshot_id=snapshots.SnapshotId(end_offset=40, epoch=2),
        size=len(SNAPSHOT),
        position=position,
        unaligned_records=data,
    )
    topic = snapshots.TopicSnapshot(name="__cluster_metadata", partitions=[partition])
    return response_frame(messages.FetchSnapshotResponse(topics=[topic]), 1)


def decode_records(frames: pa.RecordBatch, **options: Any) -> pa.RecordBatch:
    return pa.concat_batches([*decode_record_batches([frames], **options)])


def _varint(number: int) -> bytes:
    number *= 2
    return bytes((number,)) if number < 0x80 else bytes((number & 0x7F | 0x80, number >> 7))


def batch(*values: bytes, base_offset: int = 7) -> bytes:
    return record_batch.encode(list(values), base_offset=base_offset, leader_epoch=3, timestamp_ms=1_000)


def fence(broker: int) -> bytes:
    return metadata_log_frame.encode(records.FenceBrokerRecord(id=broker, epoch=5), 0)


def test_the_log_of_a_real_controller_is_whole(captured: dict[str, list[pa.RecordBatch]]) -> None:
    table = pa.Table.from_batches(decode_record_batches(captured["controller-4.3.1"]))
    assert table.schema == RECORDS
    assert table["error"].null_count == table.num_rows == 1275
    assert sorted(pc.unique(table["offset"]).to_pylist()) == [*range(644)]
    rows: list[dict[str, Any]] = table.select(["offset", "leader_epoch", "record", "body"]).to_pylist()
    of_log = {row["offset"]: row for row in rows}
    kinds = Counter(row["record"] for row in of_log.values())
    assert (kinds["RegisterBrokerRecord"], kinds["LeaderChangeMessage"], kinds["TopicRecord"]) == (5, 2, 4)
    assert json.loads(of_log[338]["body"]) == {"brokerId": 2, "brokerEpoch": 38, "fenced": 1}
    assert [row["leader_epoch"] for offset, row in sorted(of_log.items()) if offset in (0, 492, 493)] == [1, 1, 2]


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_records_have_offset_epoch_and_time_of_their_batch(version: int) -> None:
    rows = decode_records(frame_table([fetched(batch(fence(1), fence(2)), version=version)])).to_pylist()
    places = [(row["offset"], row["leader_epoch"], row["timestamp_ms"], row["record"], row["body"]) for row in rows]
    assert places == [
        (7, 3, 1_000, "FenceBrokerRecord", '{"id":1,"epoch":5}'),
        (8, 3, 1_000, "FenceBrokerRecord", '{"id":2,"epoch":5}'),
    ]


def test_messages_without_records_have_no_rows() -> None:
    rows = [fetched(b""), request_frame(messages.FetchRequest(), 17), request_frame(messages.ProduceRequest(), 9)]
    assert decode_records(frame_table(rows)).num_rows == 0


def test_records_of_other_topics_have_key_value_and_headers() -> None:
    rows = decode_records(frame_table([fetched(batch(fence(1)), topic_id=bytes(range(16)))])).to_pylist()
    (row,) = rows
    assert (row["topic"], row["topic_id"], row["offset"]) == (None, "AAECAwQFBgcICQoLDA0ODw", 7)
    assert (row["key"], row["value"], row["headers"], row["record"], row["body"]) == (None, fence(1), [], None, None)


@pytest.mark.parametrize("line", KAFKA_BATCHES, ids=lambda line: line.split()[0])
@pytest.mark.parametrize("version", [3, 9, 13])
def test_batches_of_kafka_s_producer_are_read_in_each_compression(line: str, version: int) -> None:
    codec, data = line.split()
    rows = decode_records(frame_table([produced(base64.b64decode(data), version)])).to_pylist()
    assert [row["offset"] for row in rows] == [*range(100, 120)]
    assert [row["timestamp_ms"] for row in rows] == [*range(1000, 1020)]
    assert [row["key"] for row in rows[:3]] == [b"k0", None, b"k2"]
    assert rows[7]["value"] == b"value 7 " + 60 * b"x"
    assert rows[7]["headers"] == [{"key": "trace", "value": b"t7"}, {"key": "empty", "value": None}]
    of_batch = ("topic", "partition", "is_response", "api_key", "compression", "producer_id", "producer_epoch", "error")
    expected = (None if version == 13 else "orders", 4, False, 0, codec, 7, 2, None)
    assert {tuple(row[name] for name in of_batch) for row in rows} == {expected}


@pytest.mark.parametrize("line", OLD_MESSAGES, ids=lambda line: "-".join(line.split()[:2]))
def test_messages_of_old_clients_are_read_in_each_format_and_compression(line: str) -> None:
    magic, codec, data = line.split()
    messages_bytes = base64.b64decode(data)
    frames = frame_table([produced(messages_bytes, 3), fetched(messages_bytes + messages_bytes[:30], version=4)])
    rows = [row for row in decode_records(frames).to_pylist() if row["api_key"] == 0]
    assert decode_records(frames).num_rows == 2 * len(rows)
    times = [-1] * 20 if magic == "0" else [*range(1000, 1020)]
    assert [(row["offset"], row["timestamp_ms"]) for row in rows] == list(zip(range(100, 120), times, strict=True))
    contents = [(b"k0", b"value 0 xxxxxxxxxx"), (None, b"value 1 xxxxxxxxxx")]
    assert [(row["key"], row["value"]) for row in rows][:2] == contents
    assert (rows[19]["value"], rows[19]["compression"], rows[19]["producer_id"]) == (None, codec, None)
    broken = bytes((*messages_bytes[:-1], messages_bytes[-1] ^ 1))
    last = decode_records(frame_table([produced(broken, 3)])).to_pylist()[-1]
    assert "CRC" in last["error"]


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_a_row_with_the_reason_and_little_memory(codec: str) -> None:
    frames = frame_table([produced(bomb(codec) + compressed_batch(codec, EMPTY_RECORD), 9)])
    gc.collect()
    before = pa.total_allocated_bytes()
    found = decode_record_batches([frames], record_bytes_max=50_000)
    rows = [row for part in found for row in part.to_pylist()]
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert "it has more than 50000 bytes (record_bytes_max)" in rows[0]["error"]
    assert [(row["offset"], row["value"], row["error"]) for row in rows[1:]] == [(0, None, None)]


@pytest.mark.parametrize(
    ("topics", "offsets"),
    [
        ((), [100, 7, 7]),
        (("orders",), [100]),
        (("AAECAwQFBgcICQoLDA0ODw",), [7]),
        (("__cluster_metadata", "orders"), [100, 7]),
        (("other",), []),
    ],
)
def test_only_wanted_topics_are_read_by_name_or_id(topics: tuple[str, ...], offsets: list[int]) -> None:
    _, data = KAFKA_BATCHES[0].split()
    frames = [
        produced(base64.b64decode(data), 9),
        fetched(batch(fence(1)), topic_id=bytes(range(16))),
        fetched(batch(fence(1))),
    ]
    rows = decode_records(frame_table(frames), topics=topics).to_pylist()
    firsts = [row["offset"] for row in rows if row["offset"] in (7, 100)]
    assert sorted(firsts) == sorted(offsets)
    assert len(rows) == len(offsets) + 19 * (100 in offsets)


def test_many_small_records_come_in_several_batches() -> None:
    records_ = b"".join(EMPTY_RECORD[:3] + _varint(number) + EMPTY_RECORD[4:] for number in range(64))
    data = b"".join(compressed_batch("zstd", records_, 64) for _ in range(1000))
    found = list(decode_record_batches([frame_table([produced(data, 9)])]))
    assert sum(part.num_rows for part in found) == 64_000
    assert max(part.num_rows for part in found) <= 8192


@pytest.mark.parametrize("codec", CODECS)
def test_broken_compressed_bytes_are_a_row_with_the_reason(codec: str) -> None:
    whole = pa.compress(EMPTY_RECORD * 30, codec=codec, asbytes=True)
    for packed in (whole[: len(whole) // 2], b"\xff" * 40, b"\x82SNAPPY\0" + bytes(8) + b"\0\0\1\0", b""):
        rows = decode_records(frame_table([produced(compressed_batch(codec, b"", packed=packed), 9)])).to_pylist()
        assert [row["offset"] for row in rows] == [0]
        assert "record" in rows[0]["error"]


def test_any_changed_byte_gives_rows_and_no_crash() -> None:
    rng = Random(1)
    lines = [base64.b64decode(line.split()[1]) for line in KAFKA_BATCHES]
    rows = []
    for _ in range(300):
        data = bytearray(rng.choice(lines))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        # The checksum of the changed bytes, so that what is behind it is reached.
        data[17:21] = crc32c(bytes(data[21:])).to_bytes(4)
        rows.append(produced(bytes(data[: rng.choice((len(data), rng.randrange(len(data)))) or 1]), 9))
    found = decode_records(frame_table(rows))
    assert {*found["frame_no"].to_pylist()} == {*range(300)}
    assert found["error"].null_count < found.num_rows


def test_a_broken_batch_leaves_those_behind_it() -> None:
    broken = bytearray(batch(fence(1)))
    broken[-1] ^= 1
    rows = decode_records(frame_table([produced(bytes(broken) + batch(fence(2)), 9)])).to_pylist()
    assert [(row["position"], row["offset"], bool(row["error"])) for row in rows] == [
        (0, None, True),
        (len(broken), 7, False),
    ]


def test_a_batch_cut_off_in_a_produce_request_is_an_error() -> None:
    rows = decode_records(frame_table([produced(batch(fence(1))[:-1], 9)])).to_pylist()
    assert [row["error"].endswith("are given") for row in rows] == [True]


def test_transaction_markers_are_typed() -> None:
    marker = record_batch.encode_control(
        [(record_batch.control_key(1), b"\0\0\0\0\0\5")], base_offset=3, leader_epoch=0, timestamp_ms=1
    )
    (row,) = decode_records(frame_table([fetched(marker, topic_id=bytes(range(16)))])).to_pylist()
    assert (row["record"], row["body"]) == ("EndTxnMarker", '{"type":"COMMIT","coordinatorEpoch":5}')


SNAPSHOT = b"".join(batch(fence(number), fence(number + 1), base_offset=number) for number in range(0, 40, 2))
ORDERS = {"forwards": lambda cuts: cuts, "backwards": lambda cuts: cuts[::-1]}


@pytest.mark.parametrize(
    ("order", "piece", "at_once"), sample([*itertools.product(ORDERS, [100, 7, len(SNAPSHOT)], [True, False])], 4)
)
def test_snapshot_is_read_from_pieces_cut_anywhere(order: str, piece: int, at_once: bool) -> None:
    cuts = [(at, SNAPSHOT[at : at + piece]) for at in range(0, len(SNAPSHOT), piece)]
    rows = [snapshot_piece(at, data) for at, data in ORDERS[order](cuts)]
    frames = [frame_table(rows)] if at_once else [frame_table([row]) for row in rows]
    found = pa.Table.from_batches(decode_record_batches(frames)).to_pylist()
    assert [(row["offset"], row["error"]) for row in found] == [(number, None) for number in range(40)]
    assert {(row["snapshot"], row["topic"]) for row in found} == {
        ("00000000000000000040-0000000002", "__cluster_metadata")
    }
    assert [row["position"] for row in found[::2]] == [*range(0, len(SNAPSHOT), len(SNAPSHOT) // 20)]
    assert json.loads(found[1]["body"]) == {"id": 1, "epoch": 5}


def test_snapshot_with_a_missing_piece_is_read_up_to_it() -> None:
    rows = [snapshot_piece(at, SNAPSHOT[at : at + 300]) for at in range(0, len(SNAPSHOT), 300) if at != 600]
    found = decode_records(frame_table(rows)).to_pylist()
    assert [row["offset"] for row in found[:-1]] == [*range(2 * (600 // (len(SNAPSHOT) // 20)))]
    held = len(SNAPSHOT) - 900
    assert found[-1]["error"] == (
        f"snapshot 00000000000000000040-0000000002: bytes 600 to {len(SNAPSHOT)} are not all in the capture; "
        f"{held} bytes further on cannot be read without them"
    )
    assert found[-1]["frame_no"] == len(rows) - 1


def test_bytes_that_cannot_be_read_are_a_row_with_the_reason() -> None:
    whole = batch(fence(1))
    cut, broken = whole + whole[:40], whole[:-1] + bytes((whole[-1] ^ 1,))
    unknown = batch(b"\x01\x7f\x00", fence(2))
    rows = decode_records(frame_table([fetched(cut), fetched(broken), fetched(unknown)])).to_pylist()
    assert [(row["frame_no"], row["offset"], row["record"]) for row in rows] == [
        (0, 7, "FenceBrokerRecord"),
        (1, None, None),
        (2, 7, None),
        (2, 8, "FenceBrokerRecord"),
    ]
    assert "CRC" in rows[1]["error"]
    assert "127" in rows[2]["error"]


def test_secrets_of_records_are_hidden() -> None:
    config = records.ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value="hunter2")
    frames = frame_table([fetched(batch(metadata_log_frame.encode(config, 0)))])
    assert '"value":"[hidden]"' in decode_records(frames)["body"][0].as_py()
    assert '"value":"hunter2"' in decode_records(frames, show_secrets=True)["body"][0].as_py()
    assert decode_records(frames)["value"][0].as_py() is None


def test_snapshot_of_a_real_run_has_the_state_that_the_log_had(tmp_path: Path) -> None:
    names = {f"topic-{number}" for number in range(50)}
    with Controller.sync(brokers=1) as controller:
        for name in sorted(names):
            controller.state.create_topic(name)
        controller.state.snapshot()
        controller.start_broker(2)
        controller.write_journal(tmp_path / "run.pcapng")
    rows = pa.Table.from_batches(decode_record_batches(read_frames(tmp_path / "run.pcapng"))).to_pylist()
    assert {row["error"] for row in rows} == {None}
    for is_snapshot in (True, False):
        of_kind = [
            row for row in rows if (row["snapshot"] is not None) == is_snapshot and row["record"] == "TopicRecord"
        ]
        assert {json.loads(row["body"])["name"] for row in of_kind} == names
    kinds = [row["record"] for row in rows if row["snapshot"]]
    assert (kinds[0], kinds[-1]) == ("SnapshotHeaderRecord", "SnapshotFooterRecord")


Envelope = dict[str, Any]
PRINCIPAL = b"\0\0" + DefaultPrincipalData(type="User", name="alice").write(0)


def frames_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    row = {"conn_id": 1, "incarnation": 1, "truncated": False, "api_key": 58, "api_version": 0, "correlation_id": 9}
    return pa.RecordBatch.from_pylist([row | {"size": len(each["frame"])} | each for each in rows], schema=FRAMES)


def envelope(data: bytes, frame_no: int = 0, principal: bytes = PRINCIPAL, host: bytes = b"\x0a\0\0\1") -> Envelope:
    body = messages.EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=host)
    frame = request_frame(body, 0)[0]
    return {"is_response": False, "frame_no": frame_no, "pair_status": "paired", "frame": frame}


def reply(data: bytes | None, to: int = 0, error: int = 0) -> dict[str, Any]:
    frame = response_frame(messages.EnvelopeResponse(response_data=data, error_code=error), 0)[0]
    return {"is_response": True, "frame_no": to, "request_frame_no": to, "pair_status": "paired", "frame": frame}


def opened(*batches: pa.RecordBatch, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.Table.from_batches(
        decode_forwarded_batches(batches, **options), FORWARDED
    ).to_pylist()
    return rows


DELETE = request_frame(messages.DeleteTopicsRequest(timeout_ms=5), 6, "admin")[0]
DELETED = response_frame(messages.DeleteTopicsResponse(throttle_time_ms=3), 6)[0]


def test_each_envelope_of_a_real_capture_has_a_decoded_row(captured: dict[str, list[pa.RecordBatch]]) -> None:
    frames = captured["controller-4.3.1"]
    table = pa.Table.from_batches(decode_forwarded_batches(frames))
    assert pc.all(table["roundtrip"]).as_py()
    link = ["conn_id", "incarnation", "frame_no", "is_response"]
    envelopes = pa.Table.from_batches(decode_batches(frames)).filter(pc.field("api_name") == "Envelope")
    assert sorted(table.select(link).to_pylist(), key=str) == sorted(envelopes.select(link).to_pylist(), key=str)
    assert {*zip(table["principal"].to_pylist(), table["client_host"].to_pylist(), strict=True)} == {
        ("User:ANONYMOUS", "127.0.0.1")
    }
    assert table.filter(pc.field("api_name") == "CreateTopics").num_rows == 4


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("at_once", [True, False])
def test_response_is_decoded_as_its_request_s_api(order: int, at_once: bool) -> None:
    rows = [envelope(DELETE), reply(DELETED)][::order]
    batches = [frames_of(rows)] if at_once else [frames_of([row]) for row in rows]
    request, response = sorted(opened(*batches), key=lambda row: row["is_response"])
    assert (request["api_name"], request["client_id"], request["correlation_id"]) == ("DeleteTopics", "admin", 1)
    assert (request["principal"], request["client_host"]) == ("User:alice", "10.0.0.1")
    assert (response["api_name"], response["api_version"]) == ("DeleteTopics", 6)
    assert response["envelope_correlation_id"] == 9
    assert response["body"] == '{"throttleTimeMs":3,"responses":[]}'
    assert (response["principal"], response["client_host"]) == ("User:alice", "10.0.0.1")


def test_what_cannot_be_opened_is_a_row_with_the_reason() -> None:
    cut = envelope(DELETE[:-2], 0)
    strange = envelope(b"\x7f\xff\0\0garbage", 1, principal=b"\0\7", host=b"abc")
    rows = opened(frames_of([cut, strange, envelope(b"", 2), reply(DELETED, to=9)]))
    assert [row["decode_status"] for row in rows] == ["error", "unknown_api", "unknown_api", "unknown_api"]
    assert (rows[1]["principal"], rows[1]["client_host"]) == (None, None)


def test_envelope_refused_with_an_error_carries_no_response() -> None:
    rows = opened(frames_of([envelope(DELETE), reply(None, error=31)]))
    assert [row["is_response"] for row in rows] == [False]


def test_secrets_of_carried_messages_are_hidden() -> None:
    config = alter.AlterableConfig(name="ssl.key.password", value="hunter2")
    resource = alter.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    request = request_frame(messages.IncrementalAlterConfigsRequest(resources=[resource]), 1)[0]
    frames = frames_of([envelope(request)])
    assert "hunter2" not in opened(frames)[0]["body"]
    assert "hunter2" in opened(frames, show_secrets=True)[0]["body"]

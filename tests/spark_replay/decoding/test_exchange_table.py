"""Each request beside its response, and fields of decoded messages as columns."""

import json
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mockraft.spark_replay.decoding import decode_frames, field_columns, pair_exchanges_table
from mockraft.spark_replay.schemas import EXCHANGES, FRAMES
from mockraft.wire.errors import WireError
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

from .conftest import frame_table, request_frame


def frame(number: int, is_response: bool = False, status: str = "paired", **fields: Any) -> dict[str, Any]:
    """A row of FRAMES: the request of that number, or the response to it."""
    api = {"api_key": 63, "api_version": 1, "correlation_id": 1000 + number, "is_response": is_response}
    times = {"ts_last_ns": 10 * number + (5 if is_response else 0), "latency_ns": 5 if is_response else None}
    numbers = {"conn_id": 1, "incarnation": 1, "frame_no": number, "request_frame_no": number, "pair_status": status}
    data = {"client_id": None if is_response else "me", "size": 3, "frame": b"res" if is_response else b"req"}
    return {**numbers, **api, **times, **data, **fields}


def batches(rows: list[dict[str, Any]], size: int = 1000) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(rows[at : at + size], schema=FRAMES) for at in range(0, len(rows), size)]


def exchanges(rows: list[dict[str, Any]], size: int = 1000, **options: Any) -> list[dict[str, Any]]:
    found = pa.Table.from_batches(pair_exchanges_table(batches(rows, size), **options), EXCHANGES).to_pylist()
    return sorted(found, key=lambda row: (row["conn_id"], row["incarnation"], row["request_frame_no"]))


def test_request_and_response_stand_side_by_side() -> None:
    (row,) = exchanges([frame(4), frame(4, True, frame_no=9)])
    assert (row["request_frame_no"], row["response_frame_no"]) == (4, 9)
    assert (row["request"], row["response"]) == (b"req", b"res")
    assert (row["request_ts_ns"], row["response_ts_ns"], row["latency_ns"]) == (40, 45, 5)
    assert (row["api_key"], row["api_version"], row["correlation_id"], row["client_id"]) == (63, 1, 1004, "me")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_exchanges_do_not_depend_on_order_and_batches(size: int) -> None:
    rows = [
        frame(number, is_response, conn_id=connection, incarnation=incarnation)
        for number in range(5)
        for connection in (1, 2)
        for incarnation in (1, 2)
        for is_response in (False, True)
    ]
    whole = exchanges(rows)
    Random(size).shuffle(rows)
    assert exchanges(rows, size) == whole
    assert len(whole) == 20


def test_a_request_without_a_response_is_a_row_unless_it_is_not_wanted() -> None:
    rows = [frame(0, status="no_response"), frame(1, status="acks0"), frame(2), frame(2, True), frame(3)]
    assert [(row["request_frame_no"], row["response"]) for row in exchanges(rows)] == [
        (0, None),
        (1, None),
        (2, b"res"),
        (3, None),
    ]
    assert [row["request_frame_no"] for row in exchanges(rows, unanswered=False)] == [2]


def test_a_response_without_a_request_is_in_no_exchange() -> None:
    assert exchanges([frame(0, True, "no_request", request_frame_no=None), frame(1, True)]) == []


def test_gaps_are_given_up_after_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mockraft.spark_replay.decoding.exchange_table.WAITING_BYTES_MAX", 300)
    rows = [frame(number) for number in range(1000)]
    found = list(pair_exchanges_table(batches(rows, 50)))
    assert sum(batch.num_rows for batch in found) == 1000
    assert len(found) > 2


def test_real_captures_have_an_exchange_for_every_request(captured: dict[str, list[pa.RecordBatch]]) -> None:
    for frames in captured.values():
        table = pa.Table.from_batches(pair_exchanges_table(frames), EXCHANGES)
        requests = sum(pc.sum(pc.invert(batch["is_response"])).as_py() for batch in frames)
        answered = sum(
            pc.sum(pc.and_(batch["is_response"], pc.equal(batch["pair_status"], "paired"))).as_py() for batch in frames
        )
        assert table.num_rows == requests
        assert table.num_rows - table["response"].null_count == answered
        assert pc.min(table["latency_ns"]).as_py() > 0


HEARTBEAT = "BrokerHeartbeatRequest"


def test_columns_of_captured_heartbeats_are_the_fields_of_their_messages(captured: Any) -> None:
    frames = pa.Table.from_batches(captured["controller-4.3.1"]).combine_chunks().to_batches()[0]
    names = ["brokerId", "brokerEpoch", "currentMetadataOffset", "wantFence"]
    columns = field_columns(frames, HEARTBEAT, names)
    messages = decode_frames(frames).to_pylist()
    wanted = [row for row, message in enumerate(messages) if message["api_key"] == 63 and not message["is_response"]]
    assert columns["row"].to_pylist() == wanted
    assert len(wanted) == 163
    bodies = [json.loads(messages[row]["body"]) for row in wanted]
    assert columns.select(names).to_pylist() == [{name: body[name] for name in names} for body in bodies]


def test_captured_fetches_have_text_and_uuids_and_parts_of_arrays(captured: Any) -> None:
    frames = pa.Table.from_batches(captured["controller-4.3.1"]).combine_chunks().to_batches()[0]
    paths = ["clusterId", "replicaState.replicaId", "topics[0].topicId", "topics[0].partitions[0].fetchOffset"]
    columns = field_columns(frames, "FetchRequest", paths).to_pylist()
    messages = decode_frames(frames)["body"]
    assert len(columns) == 609
    for row in columns:
        body = json.loads(messages[row["row"]].as_py())
        assert row["topics[0].topicId"] == body["topics"][0]["topicId"]
        assert row["topics[0].partitions[0].fetchOffset"] == body["topics"][0]["partitions"][0]["fetchOffset"]
        assert row["replicaState.replicaId"] == body["replicaState"]["replicaId"]
        assert row["clusterId"] == body.get("clusterId")


def test_frames_that_cannot_be_read_have_no_row() -> None:
    row = request_frame(BrokerHeartbeatRequest(broker_id=7, want_fence=True), 2)
    bad_bool = (row[0][:-2] + b"\x05" + row[0][-1:], *row[1:])
    frames = frame_table([(row[0][:-1], *row[1:]), row, (None, 63, 2, False), bad_bool, (row[0], 63, 9, False)])
    columns = field_columns(frames, HEARTBEAT, ["brokerId", "wantShutDown"])
    assert columns.to_pylist() == [
        {"row": 1, "brokerId": 7, "wantShutDown": False},
        {"row": 3, "brokerId": 7, "wantShutDown": True},
    ]


def test_fields_not_on_the_wire_are_null() -> None:
    dirs = BrokerHeartbeatRequest(offline_log_dirs=[bytes(range(16))])
    frames = frame_table([request_frame(dirs, 1), request_frame(BrokerHeartbeatRequest(), 1), request_frame(dirs, 1)])
    columns = field_columns(frames, HEARTBEAT, ["offlineLogDirs[0]", "offlineLogDirs[1]"])
    assert columns["offlineLogDirs[0]"].to_pylist() == ["AAECAwQFBgcICQoLDA0ODw", None, "AAECAwQFBgcICQoLDA0ODw"]
    assert columns["offlineLogDirs[1]"].null_count == 3


def test_texts_of_any_letters_come_as_they_are() -> None:
    names = ["plain", "tést", 'q"t"s', "plain"] * 4
    requests = [CreateTopicsRequest(topics=[CreatableTopic(name=name)]) for name in names]
    frames = frame_table([request_frame(request, 7) for request in requests])
    columns = field_columns(frames, "CreateTopicsRequest", ["topics[0].name", "timeoutMs"])
    assert columns["topics[0].name"].to_pylist() == names
    assert columns["timeoutMs"].type == pa.int32()


def test_no_frames_are_no_rows_of_the_same_columns() -> None:
    columns = field_columns(frame_table([]), HEARTBEAT, ["brokerId"])
    assert (columns.num_rows, columns.schema.names) == (0, ["row", "brokerId"])


@pytest.mark.parametrize(
    ("message", "path", "what"),
    [
        ("Heartbeats", "brokerId", "there is no message"),
        (HEARTBEAT, "brokerID", "no such field"),
        (HEARTBEAT, "brokerId[0]", "no array at this path"),
        (HEARTBEAT, "offlineLogDirs[0][0]", "no array at this path"),
        (HEARTBEAT, "offlineLogDirs", "not a single value"),
        (HEARTBEAT, "brokerId.x", "no such field"),
        (HEARTBEAT, "broker id", "is not a field"),
        ("FetchRequest", "replicaState", "not a single value"),
        ("FetchRequest", "topics.topic", "not a single value"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(message: str, path: str, what: str) -> None:
    with pytest.raises(WireError, match=what):
        field_columns(frame_table([]), message, [path])

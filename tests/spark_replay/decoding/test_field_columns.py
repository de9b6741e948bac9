"""Fields as columns: the values of decoded messages, without decoding them."""

import json
from typing import Any

import pyarrow as pa
import pytest
from mockraft.spark_replay.decoding import decode_frames, field_columns
from mockraft.wire.errors import WireError
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

from .conftest import frame_table, request_frame

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

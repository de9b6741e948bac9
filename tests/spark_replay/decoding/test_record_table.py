"""The metadata log in Fetch responses: each record with its offset, type and JSON."""

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mockraft.spark_replay.decoding import decode_record_batches, decode_records
from mockraft.spark_replay.schemas import RECORDS
from mockraft.wire import messages, metadata_log_frame, record_batch, records
from mockraft.wire.messages import fetch_response as fetch

from .conftest import Row, frame_table, request_frame, response_frame

METADATA = bytes(15) + b"\1"


def fetched(data: bytes, topic_id: bytes = METADATA, version: int = 17) -> Row:
    topic = fetch.FetchableTopicResponse(
        topic_id=topic_id if version > 12 else bytes(16),
        topic="" if version > 12 else "__cluster_metadata",
        partitions=[fetch.PartitionData(records=data)],
    )
    return response_frame(messages.FetchResponse(responses=[topic]), version)


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


def test_other_topics_and_requests_have_no_rows() -> None:
    rows = [
        fetched(batch(fence(1)), topic_id=bytes(range(16))),
        fetched(b""),
        request_frame(messages.FetchRequest(), 17),
    ]
    assert decode_records(frame_table(rows)).num_rows == 0


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

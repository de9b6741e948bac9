"""Messages counted by decode result."""

from typing import Any

import pyarrow as pa
import pytest
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches
from mockraft.spark_replay.schemas import MESSAGES

pytestmark = pytest.mark.spark

PORT = 19093
HEARTBEAT = {"client": "10.0.0.1", "client_port": 5, "api_key": 63, "api_version": 2, "api_name": "BrokerHeartbeat"}


def message(frame_no: int, **columns: object) -> dict[str, object]:
    return HEARTBEAT | {"frame_no": frame_no, "is_response": False, "decode_status": "ok", "roundtrip": True} | columns


def counted(*batches: list[dict[str, object]]) -> list[dict[str, Any]]:
    from mockraft.spark_replay.spark.coverage import count_messages

    found = count_messages(pa.RecordBatch.from_pylist(rows, MESSAGES) for rows in batches)
    rows = [row for batch in found for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["is_response"], row["decode_status"]))


def test_kinds_are_counted_over_batches_with_the_first_failing_example() -> None:
    rows = counted(
        [message(1), message(9, roundtrip=False, first_diff_offset=12), message(2, is_response=True)],
        [message(3), message(4, roundtrip=False, first_diff_offset=40)],
        [message(5, decode_status="error", roundtrip=None, error_offset=7, error="no such tag")],
        [message(6, decode_status="unknown_api", roundtrip=None)],
    )
    assert [(row["decode_status"], row["frames"], row["not_roundtrip"], row["example"]) for row in rows] == [
        ("error", 1, 0, "10.0.0.1:5 frame 5 offset 7 no such tag"),
        ("ok", 4, 2, "10.0.0.1:5 frame 4 offset 40"),
        ("unknown_api", 1, 0, "10.0.0.1:5 frame 6"),
        ("ok", 1, 0, None),
    ]


def test_empty_input_has_no_kinds() -> None:
    assert counted() == counted([]) == []


def test_workers_decode_their_frames_like_one_process(spark: Any, controller_capture: str) -> None:
    from mockraft.spark_replay.spark import tables
    from mockraft.spark_replay.spark.coverage import count_messages, coverage, fails

    messages = list(decode_batches(read_frames(controller_capture, [PORT]), body="none"))
    alone = [row for batch in count_messages(iter(messages)) for row in batch.to_pylist()]
    reassembled = tables.frames_table(spark, controller_capture, ports=[PORT], splitBytes="100k")
    found = coverage(tables.messages_table(reassembled, with_bodies=False))
    assert {row[:7] for row in found} == {tuple(row.values())[:7] for row in alone}
    assert sum(row.frames for row in found) == 1726
    assert not any(fails(row) for row in found)
    assert coverage(tables.messages(tables.frames(spark, controller_capture, ports=[PORT]), body="none")) == found


def test_undecodable_known_messages_fail(spark: Any) -> None:
    from mockraft.spark_replay.spark.coverage import Coverage, coverage, fails
    from mockraft.spark_replay.spark.worker_table import WorkerTable

    rows = spark.range(3).limit(0)
    assert coverage(WorkerTable(rows, _two_messages, MESSAGES)) == []
    found = coverage(WorkerTable(spark.range(2, numPartitions=2), _two_messages, MESSAGES))
    assert found == [
        Coverage("BrokerHeartbeat", 63, 2, False, "error", 2, 0, "10.0.0.1:5 frame 2 offset 3 short"),
        Coverage("BrokerHeartbeat", 63, 2, False, "ok", 2, 0, ""),
    ]
    assert [fails(row) for row in found] == [True, False]


def _two_messages(batches: Any) -> Any:
    for _ in batches:
        error = message(2, decode_status="error", roundtrip=None, error_offset=3, error="short")
        yield pa.RecordBatch.from_pylist([message(1), error], MESSAGES)

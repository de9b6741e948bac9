"""Each request beside its response."""

from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mockraft.spark_replay.decoding import pair_exchanges_table
from mockraft.spark_replay.schemas import EXCHANGES, FRAMES


def frame(number: int, is_response: bool = False, status: str = "paired", **fields: Any) -> dict[str, Any]:
    """A row of FRAMES: the request of that number, or the response to it."""
    api = {"api_key": 63, "api_version": 1, "correlation_id": 1000 + number, "is_response": is_response}
    times = {"ts_last_ns": 10 * number + (5 if is_response else 0), "latency_ns": 5 if is_response else None}
    numbers = {"conn_id": 1, "incarnation": 1, "frame_no": number, "request_frame_no": number, "pair_status": status}
    data = {"client_id": None if is_response else "me", "size": 3, "frame": b"res" if is_response else b"req"}
    return {**numbers, **api, **times, **data, **fields}


def batches(rows: list[dict[str, Any]], size: int = 1000) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(rows[at : at + size], schema=FRAMES) for at in range(0, len(rows), size)]


def exchanges(rows: list[dict[str, Any]], size: int = 1000) -> list[dict[str, Any]]:
    found = pa.Table.from_batches(pair_exchanges_table(batches(rows, size)), EXCHANGES).to_pylist()
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


def test_a_request_without_a_response_is_a_row() -> None:
    rows = [frame(0, status="no_response"), frame(1, status="acks0"), frame(2), frame(2, True), frame(3)]
    assert [(row["request_frame_no"], row["response"]) for row in exchanges(rows)] == [
        (0, None),
        (1, None),
        (2, b"res"),
        (3, None),
    ]


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

"""Rows of the tables of a report, with defaults."""

from typing import Any

import pyarrow as pa
from mockraft.spark_replay import schemas

SECOND = 1_000_000_000
HEARTBEAT, FETCH, REGISTRATION = 63, 1, 62
METADATA = '{"topicId":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":[{"currentLeader":{"leaderId":%d,"leaderEpoch":%d}}]}'
_ENDS = {"client": "10.0.0.1", "client_port": 40_000, "server": "10.0.0.9", "server_port": 9093}
_API = {"api_key": HEARTBEAT, "api_version": 1, "header_version": 2, "correlation_id": 1}
_FRAME = {"frame_no": 0, "is_response": False, "ts_last_ns": SECOND, "size": 10, "truncated": False, "after_gap": False}
_STATUS = {"pair_status": "paired", "decode_status": "ok", "roundtrip": True, "unknown_tags": []}
_PLAIN: dict[str, Any] = {"conn_id": 1, "incarnation": 1, **_ENDS, **_API, **_FRAME, **_STATUS}


def batch(schema: pa.Schema, rows: list[dict[str, Any]], **plain: Any) -> pa.RecordBatch:
    """Return rows with defaults from `plain`."""
    return pa.RecordBatch.from_pylist([{**plain, **row} for row in rows], schema=schema)


def messages(*rows: dict[str, Any]) -> pa.RecordBatch:
    return batch(schemas.MESSAGES, list(rows), **_PLAIN)


def heartbeat(at_s: float, broker: int = 1, conn_id: int = 1) -> dict[str, Any]:
    return {"conn_id": conn_id, "ts_last_ns": round(at_s * SECOND), "body": f'{{"brokerId":{broker},"brokerEpoch":5}}'}


def answer(at_s: float, *, is_fenced: bool) -> dict[str, Any]:
    body = f'{{"errorCode":0,"isFenced":{str(is_fenced).lower()}}}'
    return {"is_response": True, "body": body, "ts_last_ns": round(at_s * SECOND), "latency_ns": 1_000_000}


def fetch(at_s: float, epoch: int, leader: int = 3000) -> dict[str, Any]:
    """A response to a fetch of the metadata log."""
    body = METADATA % (leader, epoch)
    return {"api_key": FETCH, "api_version": 18, "is_response": True, "ts_last_ns": round(at_s * SECOND), "body": body}


def logged(at_s: float, offset: int, record: str, body: str) -> dict[str, Any]:
    """A record of the metadata log."""
    place = {"topic": "__cluster_metadata", "offset": offset, "leader_epoch": 4}
    return place | {"timestamp_ms": round(at_s * 1000), "record": record, "body": body}


_PLACE = {"run_id": "r1", "session": "s", "number": 0, "conn_id": 1, "incarnation": 1, "request_frame_no": 0}
_EXCHANGE: dict[str, Any] = {**_PLACE, "api_key": HEARTBEAT, "api_version": 1}


def results(*rows: dict[str, Any]) -> pa.RecordBatch:
    same = {"mode": "causal", "status": "ok", "raw_equal": True, "equal": True}
    times = {"captured_latency_ns": 1_000_000, "latency_ns": 2_000_000}
    return batch(schemas.REPLAY_RESULTS, list(rows), **_EXCHANGE, **same, **times)


def diffs(*rows: dict[str, Any]) -> pa.RecordBatch:
    change = {"path": "isFenced", "kind": "changed", "rule": "", "expected": "false", "actual": "true"}
    return batch(schemas.DIFFS, list(rows), **_EXCHANGE, **change)


def registered(at_s: float, broker: int, error_code: int = 0, conn_id: int = 5) -> list[dict[str, Any]]:
    """A registration and its response."""
    common = {"api_key": REGISTRATION, "conn_id": conn_id, "ts_last_ns": round(at_s * SECOND)}
    response = {"is_response": True, "body": f'{{"throttleTimeMs":0,"errorCode":{error_code},"brokerEpoch":7}}'}
    return [{**common, "body": f'{{"brokerId":{broker},"clusterId":"c"}}'}, {**common, **response}]

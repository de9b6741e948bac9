"""Messages that Envelopes carry: opened, decoded, and linked with the Envelope."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mockraft.spark_replay.decoding import decode_batches, decode_forwarded_batches
from mockraft.spark_replay.schemas import FORWARDED, FRAMES
from mockraft.wire import messages
from mockraft.wire.messages import incremental_alter_configs_request as alter
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData

from .conftest import request_frame, response_frame

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

import base64
from pathlib import Path
from random import Random
from typing import Any

import pytest
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.wire import api_keys, explain, metadata_log_frame, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.explain import Explanation
from mockraft.wire.records import FeatureLevelRecord, NoOpRecord

from ..rows import each_row

CAPTURES = Path(__file__).parents[1] / "captures"
HEARTBEAT_RESPONSE = bytes.fromhex("00000000 004d 01 00 00 00")


def covered(explanation: Explanation) -> int:
    """Return the number of bytes that the lines cover, each once and in order."""
    end = 0
    for line in explanation.lines:
        assert line.offset == end, (explanation.title, line)
        end += line.length
    return end


def values(explanation: Explanation) -> dict[str, str]:
    return {line.path: line.value for line in explanation.lines}


def whole(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame


def test_explains_every_byte() -> None:
    explanation = explain.explain_body("BrokerHeartbeatResponse", 1, HEARTBEAT_RESPONSE)
    assert explanation.error is None
    assert [(line.offset, line.length, line.path, line.type, line.value) for line in explanation.lines] == [
        (0, 4, "throttleTimeMs", "int32", "0"),
        (4, 2, "errorCode", "int16", "77 STALE_BROKER_EPOCH"),
        (6, 1, "isCaughtUp", "bool", "true"),
        (7, 1, "isFenced", "bool", "false"),
        (8, 1, "shouldShutDown", "bool", "false"),
        (9, 1, "tags", "tag count", "no tagged fields"),
    ]
    assert "throttle" in explanation.lines[0].about


def test_every_body_is_covered_byte_by_byte(sample_bytes: Any) -> None:
    for (name, version), data in sample_bytes.items():
        explanation = explain.explain_body(name, version, data)
        assert explanation.error is None
        assert covered(explanation) == len(data)


def test_broken_bodies_are_explained_up_to_the_break(sample_bytes: Any) -> None:
    for (name, version), data in sample_bytes.items():
        cut = data[: len(data) // 2]
        if len(cut) == len(data):
            continue
        explanation = explain.explain_body(name, version, cut)
        assert explanation.error is not None
        assert explanation.error.offset is not None
        assert covered(explanation) <= explanation.error.offset <= len(cut)


@each_row("capture", ["controller-4.3.1", "brokers-4.3.1"])
def test_every_captured_frame_is_covered_byte_by_byte(capture: str) -> None:
    for exchange in read_exchanges(CAPTURES / f"{capture}.pcap"):
        if exchange.request is None or exchange.response is None:
            continue
        request, response = whole(exchange.request), whole(exchange.response)
        for data, explanation in (
            (request, explain.explain_request(request)),
            (response, explain.explain_response(exchange.api_key, exchange.api_version, response)),
        ):
            assert explanation.error is None
            assert covered(explanation) == len(data)


def test_opens_the_metadata_records_inside_a_fetch_response() -> None:
    fetches = (e for e in read_exchanges(CAPTURES / "controller-4.3.1.pcap") if e.api_key == 1 and e.response)
    paths = {
        path.rpartition(".value.")[2]: value
        for exchange in fetches
        if exchange.response
        for path, value in values(explain.explain_response(1, exchange.api_version, whole(exchange.response))).items()
        if ".records.batch[" in path
    }
    assert paths["recordType"].partition(" ")[2].endswith("Record")
    assert {"voters[0].voterId", "kRaftVersion", "incarnationId", "partitionId", "featureLevel"} <= set(paths)


def test_explains_batches_and_framed_records() -> None:
    framed = [metadata_log_frame.encode(NoOpRecord(), 0)]
    framed.append(metadata_log_frame.encode(FeatureLevelRecord(name="kraft.version", feature_level=1), 0))
    data = record_batch.encode(framed, base_offset=13, leader_epoch=2, timestamp_ms=1_700_000_000_000)
    explanation = explain.explain_batches_of(data + data)
    assert explanation.error is None
    assert covered(explanation) == 2 * len(data)
    said = values(explanation)
    assert said["batch[0].baseTimestamp"] == "1700000000000 2023-11-14 22:13:20.000Z"
    assert said["batch[1].record[1].value.name"] == '"kraft.version"'
    alone = explain.explain_framed_record(framed[0])
    assert (alone.title, values(alone)["recordType"]) == ("NoOpRecord v0, framed", "20 NoOpRecord")


def test_explains_messages_of_old_clients() -> None:
    lines = (Path(__file__).parents[1] / "spark_replay/decoding/old_messages.txt").read_text().splitlines()[1:]
    for magic, codec, text in map(str.split, lines):
        data = base64.b64decode(text)
        explanation = explain.explain_batches_of(data)
        assert (explanation.error, covered(explanation)) == (None, len(data))
        assert values(explanation)["batch[0].magic"] == magic
        assert ("batch[19].value" in values(explanation)) == (codec == "none")


def test_records_that_are_no_batches_stay_closed() -> None:
    body = bytes.fromhex("ffff 0001 00000000 00000001 0001 74 00000001 00000000 00000005") + b"hello"
    explanation = explain.explain_body("ProduceRequest", 3, body)
    assert explanation.error is None
    assert explanation.lines[-1].value == "5 bytes"
    assert covered(explanation) == len(body)


def test_batch_truncated_by_a_fetch_limit_is_explained_up_to_its_end() -> None:
    batch = record_batch.encode([b"x" * 50], base_offset=0, leader_epoch=1, timestamp_ms=5)
    cut = explain.explain_batches_of(batch + batch[:30])
    assert cut.error is not None
    assert cut.error.offset == len(batch) + 8
    assert covered(cut) >= len(batch)


@each_row(
    ("data", "field", "what"),
    [
        ("0000", "size", "a frame starts with 4 bytes of size"),
        ("00000002 0012", "header", "the bytes end before"),
        ("00000008 7fff0000 00000000", "header", "no request with the api key 32767"),
        ("00000008 00120063 00000000", "header", "no version 99"),
        ("00000008 00120003 00000000", "header.clientId", "the bytes end"),
        ("000000ff 00120000 00000000 ffff", "size", "says 255 bytes, 10 follow"),
    ],
)
def test_a_malformed_frame_is_explained_up_to_the_fault(data: str, field: str, what: str) -> None:
    error = explain.explain_request(bytes.fromhex(data)).error
    assert error is not None
    assert error.field == field
    assert what in error.what


def test_an_unknown_message_is_refused_at_once() -> None:
    with pytest.raises(WireError):
        explain.explain_body("NoSuchRequest", 0, b"")
    with pytest.raises(WireError):
        explain.explain_response(9999, 0, b"")


def test_opens_the_request_inside_an_envelope() -> None:
    envelopes = (
        e.request for e in read_exchanges(CAPTURES / "controller-4.3.1.pcap") if e.api_key == api_keys.ENVELOPE
    )
    said: dict[str, str] = {}
    for request in envelopes:
        assert request is not None
        explanation = explain.explain_request(whole(request))
        assert covered(explanation) == len(explanation.data)
        said |= values(explanation)
    assert said["requestData"].endswith(" bytes")
    assert said["requestData.header.requestApiKey"].startswith(tuple("0123456789"))
    assert {"requestData.resources[0].configs[0].name", "requestData.topics[0].numPartitions"} <= set(said)


def test_mutated_frames_and_batches_are_explained_without_a_crash() -> None:
    rng = Random(8)
    exchanges = [e for e in read_exchanges(CAPTURES / "controller-4.3.1.pcap") if e.request and e.response]
    for exchange in rng.sample(exchanges, 100):
        for frame in (exchange.request, exchange.response):
            assert frame is not None
            for _ in range(10):
                data = bytearray(whole(frame))
                data[rng.randrange(4, len(data))] = rng.randrange(256)
                if frame is exchange.request:
                    explanation = explain.explain_request(bytes(data))
                else:
                    explanation = explain.explain_response(exchange.api_key, exchange.api_version, bytes(data))
                end = covered(explanation)
                assert end == len(data) if explanation.error is None else end <= len(data)
